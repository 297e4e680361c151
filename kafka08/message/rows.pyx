# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What ``runs`` does to each row of a table, as machine code; it is complete without this.

Nothing is checked here: a table lies at ``position`` of ``buffer``, ``rows`` rows of ``width``
bytes, all of them inside.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

cdef extern from *:
    """
    #define big_endian_64(x) __builtin_bswap64((uint64_t)(x))
    #define swapped_32(x) __builtin_bswap32(x)
    #if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "for little-endian machines"
    #endif
    """
    int64_t big_endian_64(int64_t)
    uint32_t swapped_32(uint32_t)

cdef enum:
    SHARED_ROWS = 512


def uniform_rows(buffer, Py_ssize_t position, Py_ssize_t rows, Py_ssize_t width, bytes size):
    """How many rows, from the first on, have the four bytes ``size`` as their size and no codec."""
    cdef Py_buffer view
    cdef Py_ssize_t row = 0
    cdef const unsigned char *wanted = size
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    cdef const unsigned char *at = <const unsigned char *>view.buf + position
    if rows < SHARED_ROWS:
        row = _uniform(at, rows, width, wanted)
    else:
        # Much is looked at piece by piece, so other threads get their turn here: no compiled
        # loop around this lets them in.
        with nogil:
            row = _uniform(at, rows, width, wanted)
    PyBuffer_Release(&view)
    return row


cdef Py_ssize_t _uniform(
    const unsigned char *at, Py_ssize_t rows, Py_ssize_t width, const unsigned char *wanted
) noexcept nogil:
    cdef Py_ssize_t row = 0
    while row < rows and not memcmp(at + 8, wanted, 4) and not at[17]:
        row += 1
        at += width
    return row


def chain(buffer, Py_ssize_t position, Py_ssize_t rows, Py_ssize_t width):
    """Move each row's crc, low byte first, over what follows its message; the last one, for
    which there is no room, is returned. The rest between two messages becomes constant."""
    cdef Py_buffer view
    cdef uint32_t crc, following
    cdef Py_ssize_t row
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    cdef unsigned char *at = <unsigned char *>view.buf + position
    memcpy(&crc, at + 12, 4)
    for row in range(rows - 1):
        at += width
        memcpy(&following, at + 12, 4)
        crc = swapped_32(crc)
        memcpy(at, &crc, 4)
        memset(at + 4, 0, 4)
        memset(at + 12, 0, 4)
        crc = following
    PyBuffer_Release(&view)
    return swapped_32(crc)


def unchain(
    buffer, Py_ssize_t position, Py_ssize_t rows, Py_ssize_t width, uint32_t last, int64_t first
):
    """Put the crcs back after ``chain``, and number the rows from ``first``."""
    cdef Py_buffer view
    cdef uint32_t crc
    cdef int64_t offset
    cdef Py_ssize_t row
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    cdef unsigned char *at = <unsigned char *>view.buf + position
    for row in range(rows):
        if row + 1 < rows:
            memcpy(&crc, at + width, 4)
        else:
            crc = last
        crc = swapped_32(crc)
        memcpy(at + 12, &crc, 4)
        offset = big_endian_64(first + row)
        memcpy(at, &offset, 8)
        at += width
    PyBuffer_Release(&view)
