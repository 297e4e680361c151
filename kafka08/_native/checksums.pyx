# cython: language_level=3, boundscheck=False, wraparound=False
"""``crc32`` and ``crc32c`` of ``message.crc`` as machine code."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint8_t, uint32_t

cdef extern from "crc32.h" nogil:
    void crc32_setup()
    uint32_t crc32_after(uint32_t, const uint8_t *, size_t)

cdef extern from "crc32c.h" nogil:
    void crc32c_setup()
    uint32_t crc32c_after(uint32_t, const uint8_t *, size_t)

cdef enum:
    LITTLE = 65536

crc32_setup()
crc32c_setup()

ctypedef uint32_t (*Checksum)(uint32_t, const uint8_t *, size_t) noexcept nogil


cdef uint32_t checksum(Checksum after, data, uint32_t crc) except? 0:
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    # For little data the lock is kept: another thread could hold it for long.
    if view.len < LITTLE:
        crc = after(crc, <const uint8_t *>view.buf, view.len)
    else:
        with nogil:
            crc = after(crc, <const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return crc


def crc32(data, uint32_t value=0):
    return checksum(crc32_after, data, value)


def crc32c(data, uint32_t value=0):
    return checksum(crc32c_after, data, value)
