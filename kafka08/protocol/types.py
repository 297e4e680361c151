"""Wire types: what the annotations of a schema class mean in bytes, in each version of its API.

A request or response is a ``NamedTuple`` whose annotations are its schema: ``partition: int32``
is an ``int`` to a type checker and four big-endian bytes to the compiler in ``codec``. A field
of type ``list[X]`` is an array: an int32 count, then the elements; a field whose type is another
``NamedTuple`` is laid out in place. ``Annotated[int32, Doc("...")]`` adds the text that
docs/protocol.md shows. ``fields_of`` reads the annotations. Other modules turn them into code or
text. Modules with many schemas do not have the annotations of their fields as text, each of which
would be compiled and kept: 0.2 MB in all.

One class stands for all versions of a request or response. ``Since`` and ``Until`` say in which
versions a field is on the wire; where it is not, it has its default. The wire order is the text
order, except for fields with ``Since(..., before="...")``: Python wants fields with defaults
last, and the values that version 0 has stay in front.
"""

from __future__ import annotations

from functools import cache
from struct import calcsize
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

Schema: TypeAlias = Any
"""A schema class: a subclass of NamedTuple whose annotations are wire types."""

# A message set below this size is cheaper to copy than to send as a chunk of its own.
COPY_BELOW = 2048


# Kinds: what stands on the wire


class Fixed(NamedTuple):
    """A fixed-width integer; ``code`` is its struct format character (big-endian)."""

    code: str
    name: str


class Text(NamedTuple):
    """int16 byte length, then UTF-8. Length < 0 is null; bad UTF-8 is read with U+FFFD.

    A null where ``nullable`` is false reads as the empty string, or, with ``strict``, not at all.
    The length of a ``compact`` string is an unsigned varint, one more than the length; 0 is null.
    """

    nullable: bool
    name: str
    strict: bool = False
    compact: bool = False


class Records(NamedTuple):
    """int32 byte length, then that many bytes, which are not decoded. -1 is null if ``nullable``.
    A ``compact`` length is like that of a compact string.

    Decoding yields a slice of the frame; encoding accepts anything with ``len()``: bytes, a
    memoryview, or a slice of a log file, which is sent to the socket unread.
    """

    name: str
    nullable: bool = False
    compact: bool = False


class Array(NamedTuple):
    """int32 count, then the elements; a ``compact`` count is like that of a compact string.

    A negative count reads as None if ``nullable``, not at all if ``strict``, else as no elements.
    """

    element: Fixed | Text | Records | Array | Struct
    strict: bool = False
    nullable: bool = False
    compact: bool = False


class Struct(NamedTuple):
    """Another schema class in one of its versions, laid out in place."""

    schema: Schema
    version: int = 0


class Tags(NamedTuple):
    """The tagged fields that end a structure in flexible versions: skipped, and none written.

    An unsigned varint count, then for each the varints tag and size, and that many bytes.
    """


Kind = Fixed | Text | Records | Array | Struct | Tags


# Marks: what an annotation adds


class Since(NamedTuple):
    """The field exists from ``version`` on. On the wire it is in front of the field ``before``."""

    version: int
    before: str = ""


class Until(NamedTuple):
    """The field exists up to and with ``version``."""

    version: int


class Nullable(NamedTuple):
    """The field can be null (None) from version ``since`` on."""

    since: int = 0


class Compact(NamedTuple):
    """The length of the string, array or bytes is compact from version ``since`` on."""

    since: int = 0


class Strict(NamedTuple):
    """Marks arrays and strings whose negative length violates the protocol.

    Without it 0.8.2.2 reads a negative count as no elements and a negative string length as null.
    """


class Trailing(NamedTuple):
    """The last field of a request that some clients leave out: a frame that ends before it is read
    with the default of the field."""


class Doc(NamedTuple):
    """A field's description in docs/protocol.md."""

    text: str


class Field(NamedTuple):
    """One field of a schema class: its name, its wire type, its description or ''.

    ``place`` is its index in the tuple. It is on the wire in the versions ``since`` to ``until``.
    A frame may end before it if it is ``trailing``.
    """

    name: str
    kind: Kind
    doc: str
    place: int
    since: int
    until: int | None
    trailing: bool = False

    def exists_in(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)


@cache
def fields_of(schema: Schema, version: int = 0) -> tuple[Field, ...]:
    """The fields on the wire in ``version``, in wire order."""
    return tuple(field for field in all_fields(schema, version) if field.exists_in(version))


@cache
def all_fields(schema: Schema, version: int) -> tuple[Field, ...]:
    """The fields of every version in wire order, with the wire types that they have in ``version``.

    TypeError for annotations of no wire type, and for a trailing field that is not the last.
    KeyError for fields without a default that some version or frame does not have.
    """
    hints = get_type_hints(schema, include_extras=True)
    placed: list[Field] = []
    for index, name in enumerate(schema._fields):
        marks = _marks(hints[name])
        since = next((mark for mark in marks if isinstance(mark, Since)), Since(0))
        until = next((mark.version for mark in marks if isinstance(mark, Until)), None)
        doc = next((mark.text for mark in marks if isinstance(mark, Doc)), "")
        trailing = any(isinstance(mark, Trailing) for mark in marks)
        kind = _kind(hints[name], version)
        field = Field(name, kind, doc, index, since.version, until, trailing)
        if not field.exists_in(0) or until is not None or trailing:
            schema._field_defaults[name]
        names = [other.name for other in placed]
        placed.insert(names.index(since.before) if since.before else len(placed), field)
    if any(field.trailing for field in placed[:-1]):
        raise TypeError(f"a field of {schema.__name__} after one that may be left out")
    return tuple(placed)


def _marks(hint: object) -> tuple[Any, ...]:
    return tuple(getattr(hint, "__metadata__", ()))


def _kind(hint: Any, version: int) -> Kind:
    marks = _marks(hint)
    kinds = {type(mark): mark for mark in marks}
    nullable = Nullable in kinds and version >= kinds[Nullable].since
    compact = Compact in kinds and version >= kinds[Compact].since
    strict = Strict in kinds
    for mark in marks:
        if isinstance(mark, Text):
            return Text(mark.nullable or nullable, mark.name, strict and not nullable, compact)
        if isinstance(mark, Records):
            return mark._replace(nullable=nullable, compact=compact)
        if isinstance(mark, (Fixed, Tags)):
            return mark
    plain = hint.__origin__ if marks else hint
    if isinstance(plain, UnionType):
        plain = next(kind for kind in get_args(plain) if kind is not type(None))
    if get_origin(plain) is list:
        element = _kind(get_args(plain)[0], version)
        if isinstance(element, Tags):
            raise TypeError("an array of tagged fields")
        return Array(element, strict and not nullable, nullable, compact)
    if not hasattr(plain, "_fields"):
        raise TypeError(f"{plain!r} has no wire type")
    return Struct(plain, version)


def minimum_size(kind: Kind) -> int:
    """The smallest number of bytes of a value of that kind."""
    if isinstance(kind, Fixed):
        return calcsize(">" + kind.code)
    if isinstance(kind, Struct):
        return sum(minimum_size(field.kind) for field in fields_of(*kind) if not field.trailing)
    if isinstance(kind, Tags) or kind.compact:
        return 1
    return 2 if isinstance(kind, Text) else 4


int8 = Annotated[int, Fixed("b", "int8")]
int16 = Annotated[int, Fixed("h", "int16")]
int32 = Annotated[int, Fixed("i", "int32")]
int64 = Annotated[int, Fixed("q", "int64")]
boolean = Annotated[bool, Fixed("?", "boolean")]
string = Annotated[str, Text(False, "string")]
strict_string = Annotated[string, Strict()]
nullable_string = Annotated[str | None, Text(True, "nullable string")]
blob = Annotated[bytes | memoryview, Records("bytes")]
tagged_fields = Annotated[None, Tags()]
