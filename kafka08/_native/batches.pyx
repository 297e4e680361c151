# cython: language_level=3, boundscheck=False, wraparound=False
"""``plain_records`` of ``message.record_sets`` as machine code."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    # A record without key, value and headers takes at most so many bytes: attributes and a count
    # of one byte, a timestamp delta of ten, three lengths and an offset delta of five each.
    RECORD_OVERHEAD = 32


cdef inline uint64_t zigzag(int64_t number) noexcept nogil:
    return (<uint64_t>number << 1) ^ <uint64_t>(number >> 63)


cdef inline int64_t varint_size(int64_t number) noexcept nogil:
    cdef uint64_t bits = zigzag(number)
    cdef int64_t size = 1
    while bits > 0x7F:
        bits >>= 7
        size += 1
    return size


cdef inline uint8_t *put_varint(uint8_t *at, int64_t number) noexcept nogil:
    cdef uint64_t bits = zigzag(number)
    while bits > 0x7F:
        at[0] = <uint8_t>(bits | 0x80)
        bits >>= 7
        at += 1
    at[0] = <uint8_t>bits
    return at + 1


cdef inline int64_t field_size(field) except -1:
    """The size of a length and the bytes after it."""
    cdef int64_t size
    if field is None:
        return 1
    size = len(field)
    return size + varint_size(size)


cdef uint8_t *put_raw(uint8_t *at, uint8_t *end, field) except NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(field, &view, PyBUF_SIMPLE)
    try:
        if view.len > end - at:
            raise ValueError("a key or value changed its size")
        memcpy(at, view.buf, view.len)
        return at + view.len
    finally:
        PyBuffer_Release(&view)


cdef uint8_t *put_field(uint8_t *at, uint8_t *end, field) except NULL:
    if field is None:
        return put_varint(at, -1)
    return put_raw(put_varint(at, len(field)), end, field)


def records(values, keys, times, headers):
    cdef Py_ssize_t count = len(values), index
    cdef int64_t total = count * RECORD_OVERHEAD, first, delta, size
    cdef uint8_t *start
    cdef uint8_t *at
    cdef uint8_t *end
    cdef uint8_t *stop
    for column in (values, keys, headers):
        if column is not None:
            for cell in column:
                if cell is not None:
                    total += len(cell)
    first = times[0] if count else 0
    made = bytearray(total)
    start = at = made
    end = at + total
    for index in range(count):
        key = None if keys is None else keys[index]
        value = values[index]
        packed = None if headers is None else headers[index]
        delta = <int64_t>times[index] - first
        size = 1 + varint_size(delta) + varint_size(index) + field_size(key) + field_size(value)
        size += len(packed) if packed else 1
        if size > 0x7FFFFFFF:
            raise OverflowError("a record of 2 GiB and more")
        at = put_varint(at, size)
        stop = at + size
        at[0] = 0
        at = put_varint(put_varint(at + 1, delta), index)
        at = put_field(put_field(at, end, key), end, value)
        if packed:
            at = put_raw(at, end, packed)
        else:
            at[0] = 0
            at += 1
        if at != stop:
            raise ValueError("a key or value changed its size")
    return bytes(made[: at - start])
