"""Wire types of 0.8.2.2: what an ``Annotated`` alias of a schema field means in bytes.

A request or response is a ``NamedTuple`` whose annotations are its schema: ``partition: int32``
is an ``int`` to a type checker and four big-endian bytes to the compiler in ``codec``. A field
of type ``list[X]`` is an array: an int32 count, then the elements; a field whose type is another
``NamedTuple`` is laid out in place. ``Annotated[int32, Doc("...")]`` adds the text that
docs/protocol.md shows.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple


class Fixed(NamedTuple):
    """A fixed-width integer; ``code`` is its struct format character (big-endian)."""

    code: str
    name: str


class Text(NamedTuple):
    """int16 byte length, then UTF-8. Length < 0 is null; bad UTF-8 is read with U+FFFD."""

    nullable: bool
    name: str


class Records(NamedTuple):
    """int32 byte length, then that many bytes, which nobody decodes here.

    Decoding yields a slice of the frame; encoding accepts anything with ``len()``: bytes, a
    memoryview, or a slice of a log file, which travels to the socket as it is.
    """

    name: str


class Doc(NamedTuple):
    """A field's description in docs/protocol.md."""

    text: str


int8 = Annotated[int, Fixed("b", "int8")]
int16 = Annotated[int, Fixed("h", "int16")]
int32 = Annotated[int, Fixed("i", "int32")]
int64 = Annotated[int, Fixed("q", "int64")]
boolean = Annotated[bool, Fixed("?", "boolean")]
string = Annotated[str, Text(False, "string")]
nullable_string = Annotated[str | None, Text(True, "nullable string")]
