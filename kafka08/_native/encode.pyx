# cython: language_level=3, boundscheck=False, wraparound=False
"""``plain_entries`` of ``producer.encoding`` as machine code."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

cdef extern from "crc32.h" nogil:
    void crc32_setup()
    uint32_t crc32_of(const uint8_t *, size_t)

cdef extern from "big_endian.h" nogil:
    uint8_t *put_32(uint8_t *, int64_t)

crc32_setup()

cdef enum:
    SIZE_AT = 8
    CRC_AT = 12
    MAGIC_AT = 16
    KEY_LENGTH_AT = 18
    KEY_AT = 22
    LOG_OVERHEAD = 12
    RECORD_OVERHEAD = 26  # an entry without key and value


cdef uint8_t *put_field(uint8_t *at, uint8_t *end, field) except NULL:
    """A length and the bytes after it; returns where they end."""
    cdef Py_buffer view
    if field is None:
        return put_32(at, -1)
    PyObject_GetBuffer(field, &view, PyBUF_SIMPLE)
    try:
        if view.len > end - at - 4:
            raise ValueError("a key or value changed its size")
        at = put_32(at, view.len)
        memcpy(at, view.buf, view.len)
        return at + view.len
    finally:
        PyBuffer_Release(&view)


def entries(values, keys, bint numbered):
    cdef Py_ssize_t count = len(values), total = count * RECORD_OVERHEAD, index
    cdef uint8_t *at
    cdef uint8_t *end
    cdef uint8_t *stop
    for value in values:
        if value is not None:
            total += len(value)
    if keys is not None:
        for key in keys:
            if key is not None:
                total += len(key)
    made = PyBytes_FromStringAndSize(NULL, total)
    at = <uint8_t *>PyBytes_AS_STRING(made)
    end = at + total
    for index in range(count):
        stop = put_field(at + KEY_LENGTH_AT, end, None if keys is None else keys[index])
        stop = put_field(stop, end, values[index])
        if stop - at - LOG_OVERHEAD > 0x7FFFFFFF:
            raise OverflowError("a record of 2 GiB and more")
        memset(at, 0, SIZE_AT)
        if numbered:
            put_32(at + 4, index)
        put_32(at + SIZE_AT, stop - at - LOG_OVERHEAD)
        at[MAGIC_AT] = at[MAGIC_AT + 1] = 0
        put_32(at + CRC_AT, crc32_of(at + MAGIC_AT, stop - at - MAGIC_AT))
        at = stop
    if at != end:
        raise ValueError("a key or value changed its size")
    return made
