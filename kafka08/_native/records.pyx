# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The functions of ``message.records`` as machine code; records.py describes them.

No byte outside ``data`` is read: ``stop`` is checked against its length first.
"""

from array import array

from cpython cimport array as c_array
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from kafka08.errors import InvalidRecordError
from kafka08.message.entry import impossible_lengths

cdef extern from "crc32.h" nogil:
    void crc32_setup()
    uint32_t crc32_of(const uint8_t *, size_t)

cdef extern from "crc32c.h" nogil:
    void crc32c_setup()
    uint32_t crc32c_of(const uint8_t *, size_t)

cdef extern from "big_endian.h" nogil:
    int64_t int64_at(const uint8_t *)
    int32_t int32_at(const uint8_t *)
    uint8_t *put_64(uint8_t *, int64_t)
    uint8_t *put_32(uint8_t *, int64_t)

crc32_setup()
crc32c_setup()

cdef enum:
    ROW = 8
    SIZE_AT = 8
    CRC_AT = 12
    MAGIC_AT = 16
    ATTRIBUTES_AT = 17
    LOG_OVERHEAD = 12
    PLAIN_BYTES = 26  # an entry of format 0 without key and value
    TIME_BYTES = 8
    STAMPED = 8
    MIN_TIMED_SIZE = 22
    TIMED_KEY_LENGTH_AT = 26
    KEY_LENGTH_AT = 18
    LITTLE = 1048576

# The header of a batch.
cdef enum:
    BATCH = 2
    EPOCH_AT = 12
    BATCH_CRC_AT = 17
    BATCH_ATTRIBUTES_AT = 21
    LAST_DELTA_AT = 23
    BATCH_TIME_AT = 27
    MAX_TIMESTAMP_AT = 35
    PRODUCER_AT = 43
    COUNT_AT = 57
    RECORDS_AT = 61
    CODEC_OR_CONTROL = 0x27
    CODEC_OR_CLAIMED = 0x6F  # or control
    TRANSACTIONAL = 0x10

cdef enum:
    FINE = 0
    MALFORMED = 1
    WRONG_DELTA = 2
    NO_ROOM = 3

cdef object numbers = array("q")


cdef struct Record:
    # in the order of a row
    int64_t delta, time_delta, start, end, key, key_end, value, value_end


cdef inline bint varint(
    const uint8_t *data, int64_t *at, int64_t end, int most, int64_t *found
) noexcept nogil:
    cdef uint64_t bits = 0
    cdef uint8_t byte
    cdef int shift = 0, count = 0
    while count < most and at[0] < end:
        byte = data[at[0]]
        at[0] += 1
        count += 1
        if shift == 63 and byte & 0x7E:
            return False
        bits |= <uint64_t>(byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            if most == 5 and bits >> 32:
                return False
            found[0] = <int64_t>(bits >> 1) ^ -<int64_t>(bits & 1)
            return True
    return False


cdef inline bint stretch(
    const uint8_t *data, int64_t *at, int64_t end, int64_t *start, int64_t *stop
) noexcept nogil:
    """A length and so many bytes; the stop of a null is -1."""
    cdef int64_t length
    if not varint(data, at, end, 5, &length):
        return False
    start[0] = at[0]
    if length < 0:
        stop[0] = -1
        return True
    if length > end - at[0]:
        return False
    at[0] += length
    stop[0] = at[0]
    return True


cdef bint read(const uint8_t *data, int64_t position, int64_t stop, Record *r) noexcept nogil:
    """The record at ``position``; false if it is malformed."""
    cdef int64_t at = position, length, headers, ignored, name_end
    r.start = position
    if not varint(data, &at, stop, 5, &length):
        return False
    if length < 1 or length > stop - at:
        return False
    r.end = at + length
    at += 1
    if not varint(data, &at, r.end, 10, &r.time_delta):
        return False
    if not varint(data, &at, r.end, 5, &r.delta):
        return False
    if not stretch(data, &at, r.end, &r.key, &r.key_end):
        return False
    if not stretch(data, &at, r.end, &r.value, &r.value_end):
        return False
    if not varint(data, &at, r.end, 5, &headers):
        return False
    if headers < 0 or headers > (r.end - at) // 2:
        return False
    while headers:
        if not stretch(data, &at, r.end, &ignored, &name_end) or name_end < 0:
            return False
        if not stretch(data, &at, r.end, &ignored, &name_end):
            return False
        headers -= 1
    return at == r.end


cdef struct Pass:
    const uint8_t *data
    int64_t position, stop, count, size, oldest, newest
    Record record
    bint keyless
    int ended


cdef void check_all(Pass *p, int64_t base) noexcept nogil:
    cdef int64_t time
    while p.position < p.stop:
        if not read(p.data, p.position, p.stop, &p.record):
            p.ended = MALFORMED
            return
        if p.record.delta != p.count:
            p.ended = WRONG_DELTA
            return
        p.count += 1
        if p.record.key_end < 0:
            p.keyless = True
        time = <int64_t>(<uint64_t>base + <uint64_t>p.record.time_delta)
        if time > p.newest:
            p.newest = time
        if time < p.oldest and time != -1:
            p.oldest = time
        p.position = p.record.end


cdef object refused(Pass *p):
    if p.ended == MALFORMED:
        return InvalidRecordError(f"The record at position {p.position} is malformed")
    return InvalidRecordError(
        f"The record at position {p.position} has the offset delta {p.record.delta}"
    )


cdef int begin(data, int64_t position, int64_t stop, Py_buffer *view, Pass *p) except -1:
    PyObject_GetBuffer(data, view, PyBUF_SIMPLE)
    if position < 0 or stop > view.len:
        PyBuffer_Release(view)
        raise IndexError(f"{position} to {stop} of {view.len} bytes")
    p.data = <const uint8_t *>view.buf
    p.position, p.stop, p.count, p.size, p.keyless, p.ended = position, stop, 0, 0, False, FINE
    p.oldest, p.newest = INT64_MAX, -1
    return 0


def check(data, int64_t position, int64_t stop, int64_t count, int64_t base):
    cdef Py_buffer view
    cdef Pass p
    begin(data, position, stop, &view, &p)
    # For short stretches the lock is kept: another thread could hold it for long.
    if stop - position < LITTLE:
        check_all(&p, base)
    else:
        with nogil:
            check_all(&p, base)
    PyBuffer_Release(&view)
    if p.ended:
        raise refused(&p)
    if p.count != count:
        raise InvalidRecordError(f"A batch holds {p.count} records, its header says {count}")
    return bool(p.keyless), p.oldest, p.newest


cdef int64_t count_of_plain(
    const uint8_t *at, int64_t size, int64_t max_size, int64_t oldest, int64_t newest
) noexcept nogil:
    """The number of records in what is one batch as ``number_plain`` wants it, otherwise 0."""
    cdef Pass p
    cdef int64_t count
    cdef uint8_t attributes
    if size < RECORDS_AT or at[MAGIC_AT] != BATCH:
        return 0
    if int32_at(at + SIZE_AT) != size - LOG_OVERHEAD or size - LOG_OVERHEAD > max_size:
        return 0
    attributes = at[BATCH_ATTRIBUTES_AT + 1]
    if attributes & CODEC_OR_CLAIMED:
        return 0
    if attributes & TRANSACTIONAL and int64_at(at + PRODUCER_AT) == -1:
        return 0
    count = int32_at(at + COUNT_AT)
    if count < 1 or int32_at(at + LAST_DELTA_AT) != count - 1:
        return 0
    if crc32c_of(at + BATCH_ATTRIBUTES_AT, size - BATCH_ATTRIBUTES_AT) != (
        <uint32_t>int32_at(at + BATCH_CRC_AT)
    ):
        return 0
    p.data = at
    p.position, p.stop, p.count, p.size, p.keyless, p.ended = RECORDS_AT, size, 0, 0, False, FINE
    p.oldest, p.newest = INT64_MAX, -1
    check_all(&p, int64_at(at + BATCH_TIME_AT))
    if p.ended or p.count != count or p.newest != int64_at(at + MAX_TIMESTAMP_AT):
        return 0
    if p.oldest < oldest or p.newest > newest:
        return 0
    return count


def number_plain(data, int64_t base, int64_t epoch, int64_t max_size, int64_t oldest, int64_t newest):
    cdef Py_buffer view
    cdef int64_t count
    PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
    if view.len < LITTLE:
        count = count_of_plain(<const uint8_t *>view.buf, view.len, max_size, oldest, newest)
    else:
        with nogil:
            count = count_of_plain(<const uint8_t *>view.buf, view.len, max_size, oldest, newest)
    if count:
        put_64(<uint8_t *>view.buf, base)
        put_32(<uint8_t *>view.buf + EPOCH_AT, epoch)
    PyBuffer_Release(&view)
    return count


cdef void find_newest(Pass *p, int64_t base) noexcept nogil:
    cdef int64_t time
    while p.position < p.stop:
        if not read(p.data, p.position, p.stop, &p.record):
            p.ended = MALFORMED
            return
        time = <int64_t>(<uint64_t>base + <uint64_t>p.record.time_delta)
        if time > p.newest:
            p.newest = time
        p.position = p.record.end


def newest_time_of(data, int64_t position, int64_t stop, int64_t base):
    cdef Py_buffer view
    cdef Pass p
    begin(data, position, stop, &view, &p)
    with nogil:
        find_newest(&p, base)
    PyBuffer_Release(&view)
    if p.ended:
        raise refused(&p)
    return p.newest


def rows(data, int64_t position, int64_t stop):
    cdef Py_buffer view
    cdef Pass p
    cdef c_array.array found
    cdef Py_ssize_t used = 0, room = max((stop - position) // 64, 8)
    begin(data, position, stop, &view, &p)
    try:
        found = c_array.clone(numbers, room * ROW, False)
        while p.position < stop:
            if not read(p.data, p.position, stop, &p.record):
                p.ended = MALFORMED
                raise refused(&p)
            if used == room:
                room *= 2
                c_array.resize(found, room * ROW)
            memcpy(found.data.as_longlongs + used * ROW, &p.record, ROW * 8)
            used += 1
            p.position = p.record.end
        c_array.resize(found, used * ROW)
        return found
    finally:
        PyBuffer_Release(&view)


cdef bint find_since(Pass *p, int64_t base, int64_t time, int64_t *found) noexcept nogil:
    while p.position < p.stop:
        if not read(p.data, p.position, p.stop, &p.record):
            p.ended = MALFORMED
            return False
        found[0] = <int64_t>(<uint64_t>base + <uint64_t>p.record.time_delta)
        if found[0] >= time:
            return True
        p.position = p.record.end
    return False


def first_since(data, int64_t position, int64_t stop, int64_t base, int64_t time):
    cdef Py_buffer view
    cdef Pass p
    cdef int64_t found
    cdef bint has_found
    begin(data, position, stop, &view, &p)
    with nogil:
        has_found = find_since(&p, base, time, &found)
    PyBuffer_Release(&view)
    if p.ended:
        raise refused(&p)
    return (p.record.delta, found) if has_found else None


cdef void measure(Pass *p, int64_t overhead) noexcept nogil:
    """How many bytes the entries take."""
    while p.position < p.stop:
        if not read(p.data, p.position, p.stop, &p.record):
            p.ended = MALFORMED
            return
        p.size += overhead
        if p.record.key_end >= 0:
            p.size += p.record.key_end - p.record.key
        if p.record.value_end >= 0:
            p.size += p.record.value_end - p.record.value
        p.count += 1
        p.position = p.record.end


cdef inline uint8_t *put_bytes(
    uint8_t *at, const uint8_t *data, int64_t start, int64_t end
) noexcept nogil:
    if end < 0:
        return put_32(at, -1)
    at = put_32(at, end - start)
    memcpy(at, data + start, end - start)
    return at + (end - start)


cdef uint8_t *write(
    Pass *p, uint8_t *at, int magic, int64_t base, int64_t time, bint stamped
) noexcept nogil:
    """The entries of checked records; returns where they end."""
    cdef uint8_t *entry
    cdef Record r
    while p.position < p.stop:
        read(p.data, p.position, p.stop, &r)
        entry = at
        put_64(entry, <int64_t>(<uint64_t>base + <uint64_t>r.delta))
        entry[MAGIC_AT] = magic
        entry[ATTRIBUTES_AT] = STAMPED if stamped and magic else 0
        at = entry + KEY_LENGTH_AT
        if magic:
            at = put_64(at, time if stamped else <int64_t>(<uint64_t>time + <uint64_t>r.time_delta))
        at = put_bytes(at, p.data, r.key, r.key_end)
        at = put_bytes(at, p.data, r.value, r.value_end)
        put_32(entry + SIZE_AT, (at - entry) - LOG_OVERHEAD)
        put_32(entry + CRC_AT, crc32_of(entry + MAGIC_AT, (at - entry) - MAGIC_AT))
        p.position = r.end
    return at


def entries(
    data, int64_t position, int64_t stop, int magic, int64_t base, int64_t time, bint stamped
):
    cdef Py_buffer view
    cdef Pass p
    cdef uint8_t *at
    cdef int64_t last
    begin(data, position, stop, &view, &p)
    try:
        with nogil:
            measure(&p, PLAIN_BYTES + (TIME_BYTES if magic else 0))
        if p.ended:
            raise refused(&p)
        last = <int64_t>(<uint64_t>base + <uint64_t>p.record.delta) if p.count else -1
        made = PyBytes_FromStringAndSize(NULL, p.size)
        at = <uint8_t *>PyBytes_AS_STRING(made)
        p.position = position
        with nogil:
            write(&p, at, magic, base, time, stamped)
        return made, p.count, last
    finally:
        PyBuffer_Release(&view)


cdef inline int64_t stop_of_plain(const uint8_t *data, int64_t position, int64_t end) noexcept nogil:
    """Where a batch of plain records ends; -1 if something else begins there, or it is damaged."""
    cdef const uint8_t *at = data + position
    cdef int64_t stop
    if end - position < RECORDS_AT or at[MAGIC_AT] != BATCH:
        return -1
    stop = position + LOG_OVERHEAD + int32_at(at + SIZE_AT)
    if stop < position + RECORDS_AT or stop > end:
        return -1
    if at[BATCH_ATTRIBUTES_AT + 1] & CODEC_OR_CONTROL:
        return -1
    at += BATCH_ATTRIBUTES_AT
    if crc32c_of(at, stop - position - BATCH_ATTRIBUTES_AT) != <uint32_t>int32_at(at - 4):
        return -1
    return stop


cdef int64_t measure_batches(
    Pass *p, int64_t position, int64_t end, int64_t overhead, int64_t room
) noexcept nogil:
    """Where the batches end whose entries have room; ``p.size`` is the size of these."""
    cdef int64_t stop, size
    while True:
        stop = stop_of_plain(p.data, position, end)
        if stop < 0:
            return position
        size = p.size
        p.position, p.stop = position + RECORDS_AT, stop
        measure(p, overhead)
        if not p.ended and size and p.size > room:
            p.ended = NO_ROOM
        if p.ended:
            p.size = size
            return position
        position = stop


cdef void write_batches(
    Pass *p, uint8_t *made, int64_t position, int64_t end, int magic
) noexcept nogil:
    """The entries of measured batches."""
    cdef const uint8_t *at
    cdef bint stamped
    while position < end:
        at = p.data + position
        stamped = at[BATCH_ATTRIBUTES_AT + 1] & STAMPED
        p.position = position + RECORDS_AT
        position += LOG_OVERHEAD + int32_at(at + SIZE_AT)
        p.stop = position
        made = write(
            p,
            made,
            magic,
            int64_at(at),
            int64_at(at + (MAX_TIMESTAMP_AT if stamped else BATCH_TIME_AT)),
            stamped,
        )


def batch_entries(data, int64_t position, int64_t end, int magic, int64_t room):
    cdef Py_buffer view
    cdef Pass p
    cdef uint8_t *at
    cdef int64_t stop
    begin(data, position, end, &view, &p)
    try:
        with nogil:
            stop = measure_batches(
                &p, position, end, PLAIN_BYTES + (TIME_BYTES if magic else 0), room
            )
        made = PyBytes_FromStringAndSize(NULL, p.size)
        at = <uint8_t *>PyBytes_AS_STRING(made)
        with nogil:
            write_batches(&p, at, position, stop, magic)
        return made, stop, p.ended == NO_ROOM
    finally:
        PyBuffer_Release(&view)


cdef int64_t untimed_entries(
    const uint8_t *data, int64_t *position, int64_t stop, int64_t distance, uint8_t *at
) noexcept nogil:
    """The bytes written, or with a null ``at`` those that would be; ``position`` is left at an
    impossible entry."""
    cdef int64_t size, written = 0
    while position[0] < stop:
        if stop - position[0] < LOG_OVERHEAD + MIN_TIMED_SIZE:
            return written
        size = int32_at(data + position[0] + SIZE_AT)
        if size < MIN_TIMED_SIZE or size > stop - position[0] - LOG_OVERHEAD:
            return written
        if at != NULL:
            put_64(at, <int64_t>(<uint64_t>int64_at(data + position[0]) + <uint64_t>distance))
            put_32(at + SIZE_AT, size - TIME_BYTES)
            at[MAGIC_AT] = at[ATTRIBUTES_AT] = 0
            memcpy(
                at + KEY_LENGTH_AT,
                data + position[0] + TIMED_KEY_LENGTH_AT,
                LOG_OVERHEAD + size - TIMED_KEY_LENGTH_AT,
            )
            put_32(at + CRC_AT, crc32_of(at + MAGIC_AT, size - TIME_BYTES - 4))
            at += LOG_OVERHEAD + size - TIME_BYTES
        written += LOG_OVERHEAD + size - TIME_BYTES
        position[0] += LOG_OVERHEAD + size
    return written


def untimed(data, int64_t position, int64_t stop, int64_t distance):
    cdef Py_buffer view
    cdef Pass p
    cdef uint8_t *at
    begin(data, position, stop, &view, &p)
    try:
        with nogil:
            p.size = untimed_entries(p.data, &p.position, stop, distance, NULL)
        if p.position < stop:
            raise impossible_lengths(p.position)
        made = PyBytes_FromStringAndSize(NULL, p.size)
        at = <uint8_t *>PyBytes_AS_STRING(made)
        p.position = position
        with nogil:
            untimed_entries(p.data, &p.position, stop, distance, at)
        return made
    finally:
        PyBuffer_Release(&view)
