"""Schema classes turned into functions: bytes to values and back.

For each class the source of one decoder and one encoder is generated and compiled at first use;
where ``layout`` has been compiled, it walks the schema instead.
Neighbouring fixed-size fields, length words included, share one ``struct.Struct``; nested
structures and arrays are laid out in the same function. Message sets are never looked into.
Knows nothing of headers, frames or API keys.

The rules a decoder keeps: no index past the buffer is believed (every fixed read is checked by
``struct``, the end once more on return, so that strings need no check of their own), no array is
begun whose elements cannot fit in what is left, and nothing but ProtocolError comes out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sized
from itertools import repeat, starmap
from typing import Any, NoReturn, TypeVar

from kafka08.errors import ProtocolError
from kafka08.protocol.types import (
    COPY_BELOW,
    Array,
    Fixed,
    Kind,
    Records,
    Struct,
    Text,
    fields_of,
    minimum_size,
)

native: Any = None
try:
    from kafka08.protocol import layout as native
except ImportError:
    pass

Buffer = bytes | bytearray | memoryview
Schema = TypeVar("Schema")


def decode(schema: type[Schema], buffer: Buffer, position: int = 0) -> tuple[Schema, int]:
    """Read one ``schema`` at ``position``; returns it and the position behind it.

    Message sets are slices of ``buffer``, writable when it is. ProtocolError for bytes that are
    too short or break a rule of the schema.
    """
    value, end = decoders[schema,](memoryview(buffer), position)
    return value, end


def encode(value: Any) -> bytes:
    """The bytes of a schema value whose message sets are all bytes-like.

    ProtocolError for a value that does not fit its field, such as None for a string that cannot
    be null, or a string of more than 32767 bytes.
    """
    return b"".join(encode_parts(value))


def encode_parts(value: Any) -> list[Any]:
    """The same as chunks in wire order, without copying large message sets.

    A message set that is not bytes-like (a slice of a log file) stays the object it is; an empty
    one leaves nothing behind but its length.
    """
    parts: list[Any] = encoders[type(value),](value)
    return parts


class _Compiled(dict[tuple[Any, ...], Callable[..., Any]]):
    """Functions by the schema classes they are for, compiled when first asked for."""

    def __init__(self, compiler: Callable[[tuple[Any, ...]], Callable[..., Any]]) -> None:
        super().__init__()
        self.compiler = compiler

    def __missing__(self, schemas: tuple[Any, ...]) -> Callable[..., Any]:
        function = self[schemas] = self.compiler(schemas)
        return function


def _compile_decoder(schemas: tuple[Any, ...]) -> Callable[..., Any]:
    source = _Source("def generated(buf, pos):")
    source.emit("end = len(buf)")
    source.emit("try:")
    source.depth += 1
    writer = _DecodeWriter(source)
    values = [writer.value(Struct(schema)) for schema in schemas]
    writer.flush()
    source.depth -= 1
    source.emit("except struct_error as error: raise ProtocolError(str(error)) from error")
    source.emit("if pos > end: short(pos - end)")
    source.emit(f"return {', '.join(values)}, pos")
    return source.compile("decoder of " + ", ".join(schema.__name__ for schema in schemas))


def _compile_encoder(schemas: tuple[Any, ...]) -> Callable[..., Any]:
    source = _Source("")
    names = [source.fresh("value") for _ in schemas]
    source.lines = [f"def generated({', '.join(names)}):"]
    source.emit("out = []; parts = []; append = out.append")
    source.emit("try:")
    source.depth += 1
    writer = _EncodeWriter(source)
    for name, schema in zip(names, schemas, strict=True):
        writer.value(Struct(schema), name)
    writer.flush()
    source.depth -= 1
    title = ", ".join(schema.__name__ for schema in schemas)
    source.emit("except (struct_error, AttributeError) as error:")
    source.emit(f'    raise ProtocolError(f"cannot encode {title}: {{error}}") from error')
    source.emit("if out: parts.append(b''.join(out))")
    source.emit("return parts")
    return source.compile(f"encoder of {title}")


# (schema, ...) -> f(buffer, position) -> (value of each schema..., end), read back to back.
decoders = _Compiled(_compile_decoder if native is None else native.decoder)

# (schema, ...) -> f(value of each schema...) -> chunks in wire order.
encoders = _Compiled(_compile_encoder if native is None else native.encoder)


def _fixed_codes(kind: Kind) -> str | None:
    """The struct codes of a structure made of integers alone, else None."""
    if not isinstance(kind, Struct):
        return None
    codes = ""
    for field in fields_of(kind.schema):
        if not isinstance(field.kind, Fixed) or field.kind.code == "?":
            return None
        codes += field.kind.code
    return codes


class _Source:
    """The text of one generated function, and the constants it names."""

    def __init__(self, head: str) -> None:
        self.lines = [head]
        self.depth = 1
        self.names = 0
        self.constants: dict[str, Any] = {
            "ProtocolError": ProtocolError,
            "any_pack": struct.pack,
            "any_unpack": struct.unpack_from,
            "negative": _negative,
            "new": tuple.__new__,
            "put_records": _put_records,
            "repeat": repeat,
            "short": _short,
            "starmap": starmap,
            "struct_error": struct.error,
        }

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def constant(self, prefix: str, value: Any) -> str:
        name = self.fresh(prefix)
        self.constants[name] = value
        return name

    def compile(self, title: str) -> Callable[..., Any]:
        text = "\n".join(self.lines)
        exec(compile(text, f"<{title}>", "exec"), self.constants)
        function: Callable[..., Any] = self.constants["generated"]
        return function


class _DecodeWriter:
    """Writes the reading of values; ``pending`` are the fixed fields of the next unpack."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.emit = source.emit
        self.pending: list[tuple[str, str]] = []

    def value(self, kind: Kind) -> str:
        """Write what reads one value; returns the expression it is found under afterwards."""
        if isinstance(kind, Fixed):
            return self.fixed(kind)
        if isinstance(kind, Text):
            return self.text(kind)
        if isinstance(kind, Records):
            return self.records()
        if isinstance(kind, Array):
            return self.array(kind)
        schema = self.source.constant(kind.schema.__name__, kind.schema)
        values = "".join(f"{self.value(field.kind)}, " for field in fields_of(kind.schema))
        return f"new({schema}, ({values}))"

    def word(self, code: str, prefix: str) -> str:
        name = self.source.fresh(prefix)
        self.pending.append((code, name))
        return name

    def flush(self) -> None:
        if not self.pending:
            return
        codec = struct.Struct(">" + "".join(code for code, _ in self.pending))
        unpack = self.source.constant("unpack", codec.unpack_from)
        self.emit(f"{''.join(f'{name}, ' for _, name in self.pending)} = {unpack}(buf, pos)")
        self.emit(f"pos += {codec.size}")
        self.pending.clear()

    def fixed(self, kind: Fixed) -> str:
        if kind.code != "?":
            return self.word(kind.code, "n")
        name = self.word("b", "flag")
        self.flush()
        self.emit(f"if {name} not in (0, 1): raise ProtocolError(f'{{{name}}} is no boolean')")
        return f"{name} == 1"

    def text(self, kind: Text) -> str:
        size = self.word("h", "size")
        self.flush()
        name = self.source.fresh("text")
        self.emit(f"if {size} >= 0:")
        self.emit(f"    {name} = str(buf[pos : pos + {size}], 'utf-8', 'replace')")
        self.emit(f"    pos += {size}")
        null = f"negative({size})" if kind.strict else f"{name} = {None if kind.nullable else ''!r}"
        self.emit(f"else: {null}")
        return name

    def records(self) -> str:
        size = self.word("i", "size")
        self.flush()
        name = self.source.fresh("records")
        self.emit(f"if {size} < 0: negative({size})")
        self.emit(f"{name} = buf[pos : pos + {size}]")
        self.emit(f"pos += {size}")
        return name

    def array(self, kind: Array) -> str:
        count = self.word("i", "count")
        self.flush()
        name = self.source.fresh("items")
        if kind.strict:
            self.emit(f"if {count} < 0: negative({count})")
        self.emit(f"if {count} > 0:")
        self.source.depth += 1
        needed = f"{count} * {minimum_size(kind.element)}"
        self.emit(f"if {needed} > end - pos: short({needed} - end + pos)")
        self.elements(kind.element, name, count)
        self.source.depth -= 1
        self.emit(f"else: {name} = []")
        return name

    def elements(self, element: Kind, name: str, count: str) -> None:
        if isinstance(element, Fixed):
            self.emit(f"{name} = list(any_unpack(f'>{{{count}}}{element.code}', buf, pos))")
            self.emit(f"pos += {count} * {minimum_size(element)}")
            return
        self.emit(f"{name} = []")
        self.emit(f"for _ in repeat(None, {count}):")
        self.source.depth += 1
        codes = _fixed_codes(element)
        if codes is not None and isinstance(element, Struct):
            codec = struct.Struct(">" + codes)
            unpack = self.source.constant("unpack", codec.unpack_from)
            schema = self.source.constant(element.schema.__name__, element.schema)
            self.emit(f"{name}.append(new({schema}, {unpack}(buf, pos)))")
            self.emit(f"pos += {codec.size}")
        else:
            value = self.value(element)
            self.flush()
            self.emit(f"{name}.append({value})")
        self.source.depth -= 1


class _EncodeWriter:
    """Writes the writing of values; ``pending`` are the fixed fields of the next pack.

    Chunks go to ``out``. At a message set that is to stay a chunk of its own, what ``out`` holds
    moves to ``parts`` as one chunk, and the message set after it.
    """

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.emit = source.emit
        self.pending: list[tuple[str, str]] = []

    def value(self, kind: Kind, name: str) -> None:
        """Write what appends the value found under ``name``."""
        if isinstance(kind, Fixed):
            self.pending.append((kind.code, name))
        elif isinstance(kind, Text):
            self.text(kind, name)
        elif isinstance(kind, Records):
            self.pending.append(("i", f"len({name})"))
            self.flush()
            self.emit(f"put_records({name}, out, parts)")
        elif isinstance(kind, Array):
            self.array(kind.element, name)
        else:
            fields = fields_of(kind.schema)
            names = [self.source.fresh(field.name) for field in fields]
            self.emit(f"{''.join(f'{name}, ' for name in names)} = {name}")
            for field, inner in zip(fields, names, strict=True):
                self.value(field.kind, inner)

    def flush(self) -> None:
        if not self.pending:
            return
        codec = struct.Struct(">" + "".join(code for code, _ in self.pending))
        pack = self.source.constant("pack", codec.pack)
        self.emit(f"append({pack}({', '.join(name for _, name in self.pending)}))")
        self.pending.clear()

    def text(self, kind: Text, name: str) -> None:
        # A lone surrogate becomes "?", as Java's getBytes has it.
        data = self.source.fresh("data")
        if not kind.nullable:
            self.emit(f"{data} = {name}.encode('utf-8', 'replace')")
            self.pending.append(("h", f"len({data})"))
        else:
            size = self.source.fresh("size")
            self.emit(f"if {name} is None: {size} = -1; {data} = b''")
            self.emit(f"else: {data} = {name}.encode('utf-8', 'replace'); {size} = len({data})")
            self.pending.append(("h", size))
        self.flush()
        self.emit(f"append({data})")

    def array(self, element: Kind, name: str) -> None:
        self.pending.append(("i", f"len({name})"))
        self.flush()
        codes = _fixed_codes(element)
        if isinstance(element, Fixed):
            self.emit(f"append(any_pack(f'>{{len({name})}}{element.code}', *{name}))")
        elif codes is not None:
            pack = self.source.constant("pack", struct.Struct(">" + codes).pack)
            self.emit(f"out.extend(starmap({pack}, {name}))")
        else:
            inner = self.source.fresh("item")
            self.emit(f"for {inner} in {name}:")
            self.source.depth += 1
            self.value(element, inner)
            self.flush()
            self.source.depth -= 1


def _put_records(records: Sized, out: list[Any], parts: list[Any]) -> None:
    plain = isinstance(records, (bytes, bytearray, memoryview))
    if plain and len(records) < COPY_BELOW:
        out.append(records)
    elif len(records):
        parts.append(b"".join(out))
        out.clear()
        parts.append(records)


def _negative(size: int) -> NoReturn:
    raise ProtocolError(f"a length of {size}")


def _short(missing: int) -> NoReturn:
    raise ProtocolError(f"{missing} bytes are missing")
