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
from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.string cimport memcpy

from kafka08.errors import ProtocolError
from kafka08.protocol.types import (
    COPY_BELOW, Array, Fixed, Records, Struct, Tags, Text, fields_of, minimum_size
)

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    ctypedef object (*allocator)(type, Py_ssize_t)
    ctypedef struct TypeSlots "PyTypeObject":
        allocator tp_alloc

cdef enum:
    FIXED, BOOLEAN, TEXT, RECORDS, ARRAY, STRUCT, TAGS

cdef enum:
    SHARED_ITEMS = 8192


cdef class _Node:
    """One value of a schema: how its bytes are laid out."""

    cdef int kind
    cdef Py_ssize_t minimum  # the fewest bytes it takes; of an integer its width
    cdef Py_ssize_t width  # of the length in front of it; 0 if that is compact
    cdef bint nullable, strict
    cdef bint trailing  # of a field: a frame may end before it
    cdef object default  # of a field
    cdef Py_ssize_t place  # of a field in its tuple
    cdef type schema
    cdef tuple nodes  # the fields of a structure
    cdef tuple absent  # places and values of the fields that this version does not have
    cdef Py_ssize_t size  # of a structure's tuple
    cdef _Node element  # of an array

    def __init__(self, kind, Py_ssize_t place=0):
        self.minimum = minimum_size(kind)
        self.place = place
        if isinstance(kind, Fixed):
            self.kind = BOOLEAN if kind.code == "?" else FIXED
        elif isinstance(kind, Struct):
            self.kind = STRUCT
            self._of_structure(kind)
        elif isinstance(kind, Tags):
            self.kind = TAGS
        else:
            self._of_length(kind)

    def _of_length(self, kind):
        self.nullable = kind.nullable
        self.width = 0 if kind.compact else 2 if isinstance(kind, Text) else 4
        if isinstance(kind, Records):
            self.kind, self.strict = RECORDS, True
            return
        self.strict = kind.strict
        if isinstance(kind, Text):
            self.kind = TEXT
        else:
            self.kind, self.element = ARRAY, _Node(kind.element)

    def _of_structure(self, kind):
        self.schema = kind.schema
        fields = fields_of(kind.schema, kind.version)
        self.nodes = tuple([_field(field, kind.schema) for field in fields])
        there = {field.name for field in fields}
        self.absent = tuple([
            (place, kind.schema._field_defaults[name])
            for place, name in enumerate(kind.schema._fields)
            if name not in there
        ])
        self.size = len(kind.schema._fields)


cdef _Node _field(field, schema):
    cdef _Node node = _Node(field.kind, field.place)
    node.trailing = field.trailing
    node.default = schema._field_defaults.get(field.name)
    return node


cdef tuple _nodes(layouts):
    return tuple([_Node(layout) for layout in layouts])


# Bytes to values

cdef struct Cursor:
    const unsigned char *start
    Py_ssize_t at
    Py_ssize_t end
    int64_t elements, room  # that all arrays together may have, and may still have


cdef int _need(Cursor *c, Py_ssize_t size) except -1:
    if size > c.end - c.at:
        raise ProtocolError(f"{size - (c.end - c.at)} bytes are missing")
    return 0


cdef int _take(Cursor *c, int64_t count) except -1:
    c.room -= count
    if c.room < 0:
        raise ProtocolError(f"more than {c.elements} elements in its arrays")
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


cdef int64_t _varint(Cursor *c) except -1:
    """An unsigned varint of at most five bytes."""
    cdef int64_t value = 0
    cdef int shift
    for shift in range(0, 35, 7):
        _need(c, 1)
        value |= <int64_t>(c.start[c.at] & 0x7F) << shift
        c.at += 1
        if c.start[c.at - 1] < 0x80:
            return value
    raise ProtocolError("a varint of more than five bytes")


cdef int _skip_tags(Cursor *c) except -1:
    cdef int64_t count = _varint(c)
    cdef int64_t size
    _need(c, 2 * count)
    while count:
        _varint(c)
        size = _varint(c)
        _need(c, size)
        c.at += size
        count -= 1
    return 0


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
    if node.kind == TAGS:
        _skip_tags(c)
        return None
    size = _integer(c, node.width) if node.width else _varint(c) - 1
    if size < 0:
        if node.nullable:
            return None
        if node.strict:
            _negative(size)
        return [] if node.kind == ARRAY else ""
    if node.kind == ARRAY:
        items = []
        _need(c, size * node.element.minimum)
        _take(c, size)
        for index in range(size):
            items.append(_read(node.element, c, frame))
            if not (index + 1) % SHARED_ITEMS:
                with nogil:  # other threads get their turn
                    pass
        return items
    _need(c, size)
    index = c.at
    c.at += size
    if node.kind == RECORDS:
        return frame[index : c.at]
    return PyUnicode_DecodeUTF8(<const char *>c.start + index, size, "replace")


cdef object _read_struct(_Node node, Cursor *c, frame):
    cdef object made = (<TypeSlots *><PyObject *>node.schema).tp_alloc(node.schema, node.size)
    cdef Py_ssize_t index
    cdef _Node field
    for index in range(len(node.nodes)):
        field = <_Node>node.nodes[index]
        if field.trailing and c.at == c.end:
            value = field.default
        else:
            value = _read(field, c, frame)
        Py_INCREF(value)
        PyTuple_SET_ITEM(made, field.place, value)
    for index, value in node.absent:
        Py_INCREF(value)
        PyTuple_SET_ITEM(made, index, value)
    return made


def decoder(layouts):
    """f(memoryview, position, elements) -> (value of each layout..., end)."""
    cdef tuple nodes = _nodes(layouts)

    def decode(frame, Py_ssize_t position, int64_t elements=INT64_MAX):
        cdef Py_buffer view
        cdef Cursor c
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        c.start, c.at, c.end = <const unsigned char *>view.buf, position, view.len
        c.elements = c.room = elements
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


cdef int _put_length(_Node node, Py_ssize_t size, _Sink sink) except -1:
    """``size`` -1 stands for null."""
    if node.width:
        return _put_integer(sink, node.width, size)
    size += 1
    while size > 0x7F:
        sink.more(1)[0] = <unsigned char>(size & 0x7F | 0x80)
        size >>= 7
    sink.more(1)[0] = <unsigned char>size
    return 0


cdef int _write(_Node node, value, _Sink sink) except -1:
    cdef Py_ssize_t size, index
    cdef _Node field
    if node.kind == FIXED:
        return _put_integer(sink, node.minimum, PyLong_AsLongLong(value))
    if node.kind == STRUCT:
        if not PyTuple_Check(value) or len(<tuple>value) != node.size:
            raise ProtocolError(f"{value!r} is not a {node.schema.__name__}")
        for index in range(len(node.nodes)):
            field = <_Node>node.nodes[index]
            _write(field, (<tuple>value)[field.place], sink)
        return 0
    if node.kind == BOOLEAN:
        return _put_integer(sink, 1, 1 if value else 0)
    if node.kind == TAGS:
        sink.more(1)[0] = 0
        return 0
    if value is None and node.nullable:
        return _put_length(node, -1, sink)
    if node.kind == TEXT:
        # A lone surrogate becomes "?", as in Java's getBytes.
        data = value.encode("utf-8", "replace")
        _put_length(node, len(data), sink)
        return _put_bytes(sink, data)
    size = len(value)
    _put_length(node, size, sink)
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


def encoder(layouts):
    """f(value of each layout...) -> chunks in wire order."""
    cdef tuple nodes = _nodes(layouts)
    names = ", ".join(layout.schema.__name__ for layout in layouts)

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
