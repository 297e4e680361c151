"""Wire types of 0.8.2.2: what an ``Annotated`` alias of a schema field means in bytes.

A request or response is a ``NamedTuple`` whose annotations are its schema: ``partition: int32``
is an ``int`` to a type checker and four big-endian bytes to the compiler in ``codec``. A field
of type ``list[X]`` is an array: an int32 count, then the elements; a field whose type is another
``NamedTuple`` is laid out in place. ``Annotated[int32, Doc("...")]`` adds the text that
docs/protocol.md shows. ``fields_of`` reads the annotations. Other modules turn them into code or
text.
"""

from __future__ import annotations

from functools import cache
from struct import calcsize
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

# A message set below this size is cheaper to copy than to send as a chunk of its own.
COPY_BELOW = 2048


class Fixed(NamedTuple):
    """A fixed-width integer; ``code`` is its struct format character (big-endian)."""

    code: str
    name: str


class Text(NamedTuple):
    """int16 byte length, then UTF-8. Length < 0 is null; bad UTF-8 is read with U+FFFD.

    A null where ``nullable`` is false reads as the empty string, or, with ``strict``, not at all.
    """

    nullable: bool
    name: str
    strict: bool = False


class Records(NamedTuple):
    """int32 byte length, then that many bytes, which are not decoded.

    Decoding yields a slice of the frame; encoding accepts anything with ``len()``: bytes, a
    memoryview, or a slice of a log file, which is sent to the socket unread.
    """

    name: str


class Strict(NamedTuple):
    """Marks arrays and strings whose negative length violates the protocol.

    Without it 0.8.2.2 reads a negative count as no elements and a negative string length as null.
    """


class Doc(NamedTuple):
    """A field's description in docs/protocol.md."""

    text: str


class Array(NamedTuple):
    """int32 count, then the elements."""

    element: Fixed | Text | Records | Array | Struct
    strict: bool


class Struct(NamedTuple):
    """Another schema class, laid out in place."""

    schema: Any


Kind = Fixed | Text | Records | Array | Struct


class Field(NamedTuple):
    """One field of a schema class: its name, its wire type, its description or ''."""

    name: str
    kind: Kind
    doc: str


@cache
def fields_of(schema: Any) -> tuple[Field, ...]:
    """The fields of a schema class in wire order. TypeError for annotations of no wire type."""
    hints = get_type_hints(schema, include_extras=True)
    return tuple(Field(name, _kind(hints[name]), _doc(hints[name])) for name in schema._fields)


def _kind(hint: Any) -> Kind:
    marks = getattr(hint, "__metadata__", ())
    strict = any(isinstance(mark, Strict) for mark in marks)
    for mark in marks:
        if isinstance(mark, Text):
            return mark._replace(strict=strict)
        if isinstance(mark, (Fixed, Records)):
            return mark
    plain = hint.__origin__ if marks else hint
    if get_origin(plain) is list:
        return Array(_kind(get_args(plain)[0]), strict)
    if not hasattr(plain, "_fields"):
        raise TypeError(f"{plain!r} has no wire type")
    return Struct(plain)


def minimum_size(kind: Kind) -> int:
    """The smallest number of bytes of a value of that kind."""
    if isinstance(kind, Fixed):
        return calcsize(">" + kind.code)
    if isinstance(kind, Struct):
        return sum(minimum_size(field.kind) for field in fields_of(kind.schema))
    return 2 if isinstance(kind, Text) else 4


def _doc(hint: Any) -> str:
    marks = getattr(hint, "__metadata__", ())
    return next((mark.text for mark in marks if isinstance(mark, Doc)), "")


int8 = Annotated[int, Fixed("b", "int8")]
int16 = Annotated[int, Fixed("h", "int16")]
int32 = Annotated[int, Fixed("i", "int32")]
int64 = Annotated[int, Fixed("q", "int64")]
boolean = Annotated[bool, Fixed("?", "boolean")]
string = Annotated[str, Text(False, "string")]
strict_string = Annotated[string, Strict()]
nullable_string = Annotated[str | None, Text(True, "nullable string")]
