# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""``PlainOffsetMap`` of ``log.offset_map`` as machine code.

An open hash table of 24 bytes a slot, a fifth of them empty: 16 bytes stand for the key (SipHash-2-4
with 128 bits, keyed with the secret), 8 hold the offset plus one. It grows by doubling.
"""


from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafka08.message.entry import impossible_lengths

cdef extern from "big_endian.h" nogil:
    int64_t int64_at(const uint8_t *)
    int32_t int32_at(const uint8_t *)

cdef extern from *:
    """
    #if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    #define from_little_64(x) (x)
    #else
    #define from_little_64(x) __builtin_bswap64((uint64_t)(x))
    #endif
    #define scaled(hash, slots) ((size_t)(((unsigned __int128)(hash) * (slots)) >> 64))
    """
    uint64_t from_little_64(uint64_t) nogil
    size_t scaled(uint64_t, size_t) nogil

cdef enum:
    SIZE_AT = 8
    KEY_LENGTH_AT = 18
    KEY_AT = 22
    LOG_OVERHEAD = 12
    MIN_MESSAGE_SIZE = 14
    FIRST_SLOTS = 1024



cdef struct Slot:
    uint64_t high, low, following  # the digest, and the offset plus one


cdef struct Fields:
    int64_t offset, end
    const uint8_t *key
    int32_t key_length
    bint is_tombstone


cdef inline uint64_t rotated(uint64_t x, int bits) noexcept nogil:
    return x << bits | x >> (64 - bits)


cdef inline void stir(uint64_t *v, int rounds) noexcept nogil:
    cdef int i
    for i in range(rounds):
        v[0] += v[1]
        v[1] = rotated(v[1], 13) ^ v[0]
        v[0] = rotated(v[0], 32)
        v[2] += v[3]
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] += v[3]
        v[3] = rotated(v[3], 21) ^ v[0]
        v[2] += v[1]
        v[1] = rotated(v[1], 17) ^ v[2]
        v[2] = rotated(v[2], 32)


cdef Slot digest(const uint64_t *secret, const uint8_t *key, size_t size) noexcept nogil:
    cdef uint64_t v[4]
    cdef uint64_t word = 0
    cdef size_t at = 0
    cdef Slot found
    v[0] = secret[0] ^ <uint64_t>0x736F6D6570736575ULL
    v[1] = secret[1] ^ <uint64_t>0x646F72616E646F6DULL ^ 0xEE
    v[2] = secret[0] ^ <uint64_t>0x6C7967656E657261ULL
    v[3] = secret[1] ^ <uint64_t>0x7465646279746573ULL
    while size - at >= 8:
        memcpy(&word, key + at, 8)
        word = from_little_64(word)
        v[3] ^= word
        stir(v, 2)
        v[0] ^= word
        at += 8
    word = <uint64_t>size << 56
    while at < size:
        word |= <uint64_t>key[at] << 8 * (at & 7)
        at += 1
    v[3] ^= word
    stir(v, 2)
    v[0] ^= word
    v[2] ^= 0xEE
    stir(v, 4)
    found.high = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    stir(v, 4)
    found.low = v[0] ^ v[1] ^ v[2] ^ v[3]
    found.following = 0
    return found


cdef bint read(const uint8_t *data, int64_t position, int64_t stop, Fields *f) noexcept nogil:
    """Read the fields of the plain entry at ``position``; false if its lengths are impossible."""
    cdef const uint8_t *at = data + position
    cdef int64_t value
    cdef int32_t value_length
    if stop - position < LOG_OVERHEAD + MIN_MESSAGE_SIZE:
        return False
    f.offset = int64_at(at)
    f.end = position + LOG_OVERHEAD + int32_at(at + SIZE_AT)
    if f.end > stop or f.end < position + LOG_OVERHEAD + MIN_MESSAGE_SIZE:
        return False
    f.key = at + KEY_AT
    f.key_length = int32_at(at + KEY_LENGTH_AT)
    value = position + KEY_AT + (f.key_length if f.key_length > 0 else 0) + 4
    if value > f.end:
        return False
    value_length = int32_at(data + value - 4)
    f.is_tombstone = value_length < 0
    return value_length <= f.end - value


cdef class OffsetMap:
    cdef readonly Py_ssize_t room
    cdef Slot *_slots
    cdef size_t _size, _most, _used
    cdef uint64_t _secret[2]

    def __cinit__(self, Py_ssize_t room, bytes secret):
        memcpy(self._secret, <const char *>secret, min(len(secret), 16))
        self.room = room
        self._most = room + room // 4 + 2
        self._size = self._most
        while self._size > FIRST_SLOTS:
            self._size = self._size // 2 + 1  # so that the last doubling ends at the most
        self._slots = <Slot *>PyMem_RawCalloc(self._size, sizeof(Slot))
        if self._slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_RawFree(self._slots)

    def __len__(self):
        return self._used

    cdef Slot *_find(self, Slot wanted) noexcept nogil:
        cdef size_t at = scaled(wanted.high, self._size)
        cdef Slot *slot
        while True:
            slot = self._slots + at
            if not slot.following or (slot.high == wanted.high and slot.low == wanted.low):
                return slot
            at += 1
            if at == self._size:
                at = 0

    cdef int _grow(self) except -1:
        cdef Slot *old = self._slots
        cdef size_t size = self._size, at
        # Beyond the most go only the last messages of a compressed set.
        self._size = 2 * size if size >= self._most else min(2 * size, self._most)
        self._slots = <Slot *>PyMem_RawCalloc(self._size, sizeof(Slot))
        if self._slots == NULL:
            self._slots, self._size = old, size
            raise MemoryError
        for at in range(size):
            if old[at].following:
                self._find(old[at])[0] = old[at]
        PyMem_RawFree(old)
        return 0

    cdef int _put(self, const uint8_t *key, size_t length, int64_t offset) except -1:
        cdef Slot wanted = digest(self._secret, key, length)
        cdef Slot *slot
        if self._used >= self._size - self._size // 5 - 1:  # some slots must stay empty
            self._grow()
        slot = self._find(wanted)
        if not slot.following:
            self._used += 1
        wanted.following = <uint64_t>offset + 1
        slot[0] = wanted
        return 0

    cdef int64_t _get(self, const uint8_t *key, size_t length) noexcept nogil:
        return <int64_t>self._find(digest(self._secret, key, length)).following - 1

    def put(self, bytes key, int64_t offset):
        self._put(<const uint8_t *><const char *>key, len(key), offset)

    def get(self, bytes key):
        return self._get(<const uint8_t *><const char *>key, len(key))

    def add_plain(self, data, int64_t position, int64_t stop):
        cdef Py_buffer view
        cdef Fields f
        cdef Py_ssize_t count = 0
        cdef int64_t last = -1
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if position < 0 or stop > view.len:
                raise IndexError(f"{position} to {stop} of {view.len} bytes")
            while position < stop and self._used < <size_t>self.room:
                if not read(<const uint8_t *>view.buf, position, stop, &f):
                    raise impossible_lengths(position)
                if f.key_length >= 0:
                    self._put(f.key, f.key_length, f.offset)
                count += 1
                last = f.offset
                position = f.end
        finally:
            PyBuffer_Release(&view)
        return position, count, last

    def survivors(self, data, int64_t position, int64_t stop, int64_t tombstones_below):
        cdef Py_buffer view
        cdef Fields f
        cdef Py_ssize_t kept = 0
        cdef int64_t start = position
        cdef list bounds = []
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if position < 0 or stop > view.len:
                raise IndexError(f"{position} to {stop} of {view.len} bytes")
            while position < stop:
                if not read(<const uint8_t *>view.buf, position, stop, &f):
                    raise impossible_lengths(position)
                if f.key_length >= 0 and (
                    self._get(f.key, f.key_length) > f.offset
                    or (f.is_tombstone and f.offset < tombstones_below)
                ):
                    if position > start:
                        bounds.append((start, position))
                    start = f.end
                else:
                    kept += 1
                position = f.end
            if position > start:
                bounds.append((start, position))
        finally:
            PyBuffer_Release(&view)
        return bounds, kept
