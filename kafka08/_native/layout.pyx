# cython: language_level=3, boundscheck=False, wraparound=False
"""``plain_decoder`` and ``plain_encoder`` of ``protocol.codec`` as machine code; it is
complete without this.

Bytes are never read or copied past what is left: ``_need`` stands before each step.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.long cimport PyLong_AsLongLong
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_Check, PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from kafka08.errors import ProtocolError
from kafka08.protocol.types import (
    COPY_BELOW, Array, Fixed, Records, Struct, Text, fields_of, minimum_size
)

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    ctypedef object (*allocator)(type, Py_ssize_t)
    ctypedef struct TypeSlots "PyTypeObject":
        allocator tp_alloc

cdef enum:
    FIXED, BOOLEAN, TEXT, RECORDS, ARRAY, STRUCT

cdef enum:
    SHARED_ITEMS = 8192


cdef class _Node:
    """One value of a schema: how its bytes are laid out."""

    cdef int kind
    cdef Py_ssize_t minimum  # the fewest bytes it takes; of an integer its width
    cdef bint nullable, strict
    cdef type schema
    cdef tuple nodes  # the fields of a structure
    cdef _Node element  # of an array

    def __init__(self, kind):
        self.minimum = minimum_size(kind)
        if isinstance(kind, Fixed):
            self.kind = BOOLEAN if kind.code == "?" else FIXED
        elif isinstance(kind, Text):
            self.kind, self.nullable, self.strict = TEXT, kind.nullable, kind.strict
        elif isinstance(kind, Records):
            self.kind = RECORDS
        elif isinstance(kind, Array):
            self.kind, self.strict, self.element = ARRAY, kind.strict, _Node(kind.element)
        else:
            self.kind, self.schema = STRUCT, kind.schema
            self.nodes = tuple([_Node(field.kind) for field in fields_of(kind.schema)])


cdef tuple _nodes(schemas):
    return tuple([_Node(Struct(schema)) for schema in schemas])


# Bytes to values

cdef struct Cursor:
    const unsigned char *start
    Py_ssize_t at
    Py_ssize_t end


cdef int _need(Cursor *c, Py_ssize_t size) except -1:
    if size > c.end - c.at:
        raise ProtocolError(f"{size - (c.end - c.at)} bytes are missing")
    return 0


cdef int _negative(int64_t size) except -1:
    raise ProtocolError(f"a length of {size}")


cdef int64_t _integer(Cursor *c, Py_ssize_t width) except? -1:
    _need(c, width)
    cdef const unsigned char *at = c.start + c.at
    cdef uint64_t value = <uint64_t><int64_t><signed char>at[0]
    cdef Py_ssize_t index
    for index in range(1, width):
        value = value << 8 | at[index]
    c.at += width
    return <int64_t>value


cdef object _read(_Node node, Cursor *c, frame):
    cdef int64_t size
    cdef Py_ssize_t index
    cdef list items
    if node.kind == FIXED:
        return _integer(c, node.minimum)
    if node.kind == STRUCT:
        return _read_struct(node, c, frame)
    if node.kind == BOOLEAN:
        size = _integer(c, 1)
        if size != 0 and size != 1:
            raise ProtocolError(f"{size} is not a boolean")
        return size == 1
    size = _integer(c, node.minimum)
    if node.kind == ARRAY:
        if size < 0 and node.strict:
            _negative(size)
        items = []
        if size > 0:
            _need(c, size * node.element.minimum)
        for index in range(size):
            items.append(_read(node.element, c, frame))
            if not (index + 1) % SHARED_ITEMS:
                with nogil:  # other threads get their turn
                    pass
        return items
    if size < 0:
        if node.strict or node.kind == RECORDS:
            _negative(size)
        return None if node.nullable else ""
    _need(c, size)
    index = c.at
    c.at += size
    if node.kind == RECORDS:
        return frame[index : c.at]
    return PyUnicode_DecodeUTF8(<const char *>c.start + index, size, "replace")


cdef object _read_struct(_Node node, Cursor *c, frame):
    cdef object made = (<TypeSlots *><PyObject *>node.schema).tp_alloc(
        node.schema, len(node.nodes)
    )
    cdef Py_ssize_t index
    for index in range(len(node.nodes)):
        value = _read(<_Node>node.nodes[index], c, frame)
        Py_INCREF(value)
        PyTuple_SET_ITEM(made, index, value)
    return made


def decoder(schemas):
    """f(memoryview, position) -> (value of each schema..., end)."""
    cdef tuple nodes = _nodes(schemas)

    def decode(frame, Py_ssize_t position):
        cdef Py_buffer view
        cdef Cursor c
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        c.start, c.at, c.end = <const unsigned char *>view.buf, position, view.len
        try:
            values = [_read(<_Node>node, &c, frame) for node in nodes]
        finally:
            PyBuffer_Release(&view)
        values.append(c.at)
        return tuple(values)

    return decode


# Values to bytes

cdef class _Sink:
    """Bytes on their way into ``parts``."""

    cdef unsigned char *data
    cdef Py_ssize_t size, room
    cdef list parts

    def __cinit__(self):
        self.parts = []

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef unsigned char *more(self, Py_ssize_t size) except NULL:
        cdef Py_ssize_t room = self.room
        cdef unsigned char *data
        if self.size + size > room:
            room = max(2 * room, self.size + size, <Py_ssize_t>256)
            data = <unsigned char *>PyMem_Realloc(self.data, room)
            if data == NULL:
                raise MemoryError
            self.data, self.room = data, room
        self.size += size
        return self.data + self.size - size

    cdef int cut(self) except -1:
        """End the current chunk: the bytes written so far become one part."""
        if self.size:
            self.parts.append((<char *>self.data)[: self.size])
            self.size = 0
        return 0


cdef int _put_integer(_Sink sink, Py_ssize_t width, int64_t value) except -1:
    cdef int64_t beyond = value if width == 8 else value >> (8 * width - 1)
    if width < 8 and beyond != 0 and beyond != -1:
        raise ProtocolError(f"{value} does not fit {width} bytes")
    cdef unsigned char *at = sink.more(width)
    cdef Py_ssize_t index
    for index in range(width):
        at[index] = <unsigned char>(<uint64_t>value >> (8 * (width - 1 - index)) & 0xFF)
    return 0


cdef int _put_bytes(_Sink sink, data) except -1:
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len:
            memcpy(sink.more(view.len), view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int _write(_Node node, value, _Sink sink) except -1:
    cdef Py_ssize_t size, index
    if node.kind == FIXED:
        return _put_integer(sink, node.minimum, PyLong_AsLongLong(value))
    if node.kind == STRUCT:
        if not PyTuple_Check(value) or len(<tuple>value) != len(node.nodes):
            raise ProtocolError(f"{value!r} is not a {node.schema.__name__}")
        for index in range(len(node.nodes)):
            _write(<_Node>node.nodes[index], (<tuple>value)[index], sink)
        return 0
    if node.kind == BOOLEAN:
        return _put_integer(sink, 1, 1 if value else 0)
    if node.kind == TEXT:
        if value is None and node.nullable:
            return _put_integer(sink, 2, -1)
        # A lone surrogate becomes "?", as in Java's getBytes.
        data = value.encode("utf-8", "replace")
        _put_integer(sink, 2, len(data))
        return _put_bytes(sink, data)
    size = len(value)
    _put_integer(sink, 4, size)
    if node.kind == ARRAY:
        for index in range(size):
            _write(node.element, value[index], sink)
            if not (index + 1) % SHARED_ITEMS:
                with nogil:
                    pass
    elif size < COPY_BELOW and isinstance(value, (bytes, bytearray, memoryview)):
        _put_bytes(sink, value)
    elif size:
        sink.cut()
        sink.parts.append(value)
    return 0


def encoder(schemas):
    """f(value of each schema...) -> chunks in wire order."""
    cdef tuple nodes = _nodes(schemas)
    names = ", ".join(schema.__name__ for schema in schemas)

    def encode(*values):
        cdef _Sink sink = _Sink()
        cdef Py_ssize_t index
        if len(values) != len(nodes):
            raise TypeError(f"{len(values)} values for {names}")
        try:
            for index in range(len(nodes)):
                _write(<_Node>nodes[index], values[index], sink)
        except (OverflowError, TypeError, AttributeError, ProtocolError) as error:
            raise ProtocolError(f"cannot encode {names}: {error}") from error
        sink.cut()
        return sink.parts

    return encode
