# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The functions over stretches of ``message.scan`` and ``message.consumed`` as machine code; these
describe them.

No byte outside ``buffer`` is read: ``end`` and ``stop`` are checked against its length first.
"""

cimport cython

from array import array

from cpython cimport array as c_array
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from kafka08.message.entry import (
    ABOVE, BAD_CRC, BAD_DELTA, CUT, DISORDER, END, KEYLESS, PAUSED, SHORT, TOO_LARGE, WRAPPER,
    Cells, Message, Walked, impossible_lengths,
)

cdef extern from "Python.h":
    ctypedef object (*allocator)(type, Py_ssize_t)
    ctypedef struct TypeSlots "PyTypeObject":
        allocator tp_alloc

cdef extern from "named.h":
    object named_of(type, tuple)

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

crc32_setup()
crc32c_setup()

cdef enum:
    SIZE_AT = 8
    CRC_AT = 12
    MAGIC_AT = 16
    ATTRIBUTES_AT = 17
    KEY_LENGTH_AT = 18
    KEY_AT = 22
    LOG_OVERHEAD = 12
    MIN_MESSAGE_SIZE = 14
    CODEC_MASK = 7
    FIELDS = 5  # numbers a row
    LITTLE = 1048576
    TIMED = 1
    BATCH = 2
    TIMESTAMP_AT = 18
    TIMED_KEY_LENGTH_AT = 26
    MIN_TIMED_SIZE = 22
    BATCH_CRC_AT = 17
    BATCH_ATTRIBUTES_AT = 21
    BATCH_CODEC_AT = 22
    LAST_DELTA_AT = 23
    LAST_OFFSET_BYTES = 27
    BASE_TIMESTAMP_AT = 27
    STAMPED = 8
    CLAIMED = 0x48
    MAX_TIMESTAMP_AT = 35
    PRODUCER_AT = 43
    PRODUCER_EPOCH_AT = 51
    SEQUENCE_AT = 53
    RECORDS_AT = 61
    MIN_BATCH_SIZE = 49
    TRANSACTIONAL = 0x10
    CONTROL = 0x20
    MARKER_RECORD = 17  # bytes; these three are varints in it
    RECORD_LENGTH = 0x20
    KEY_LENGTH = 0x08
    VALUE_LENGTH = 0x0C
    NO_TRANSACTION = 0
    IN_TRANSACTION = 1
    ABORT = 2
    COMMIT = 3
    OTHER_CONTROL = 4

cdef int at_end = END
cdef int at_cut = CUT
cdef int at_short = SHORT
cdef int at_large = TOO_LARGE
cdef int at_bad_crc = BAD_CRC
cdef int at_wrapper = WRAPPER
cdef int at_disorder = DISORDER
cdef int at_above = ABOVE
cdef int at_pause = PAUSED
cdef int at_keyless = KEYLESS
cdef int at_bad_delta = BAD_DELTA
cdef type message_type = Message
cdef object numbers = array("q")


cdef int64_t or_none(value, int64_t default):
    return default if value is None else value


cdef struct Walk:
    # what to look at
    const uint8_t *data
    int64_t position, end, reach, number, max_size, last, up_to, until
    bint stamps, check_crc, rising, whole, wrappers, keyed
    int format
    # what was found
    int64_t count, first, newest
    int codec, ended, highest


cdef int64_t last_offset(Walk *w, int64_t offset) noexcept nogil:
    """The last offset of the batch at w.position, which begins with ``offset``; -1 if the walk
    ends here."""
    cdef int32_t delta
    if w.end - w.position < LAST_OFFSET_BYTES:
        w.ended = at_cut
        return -1
    delta = int32_at(w.data + w.position + LAST_DELTA_AT)
    if delta < 0 or offset > INT64_MAX - delta:
        w.ended = at_bad_delta
        return -1
    if offset + delta > w.up_to:
        w.ended = at_above
        return -1
    w.ended = at_end
    return offset + delta


cdef bint batch_crc_is_wrong(const uint8_t *at, int32_t size) noexcept nogil:
    return crc32c_of(at + BATCH_ATTRIBUTES_AT, size - 9) != <uint32_t>int32_at(at + BATCH_CRC_AT)


cdef void advance(Walk *w) noexcept nogil:
    cdef int64_t offset, above, stop
    cdef int32_t size
    cdef int codec, magic
    cdef bint wrong
    cdef const uint8_t *at
    while True:
        if w.end - w.position < LOG_OVERHEAD:
            w.ended = at_end if w.position >= w.end else at_cut
            return
        if w.position >= w.until:
            w.ended = at_pause
            return
        at = w.data + w.position
        offset = int64_at(at)
        if offset > w.up_to:
            w.ended = at_above
            return
        size = int32_at(at + SIZE_AT)
        if size < MIN_MESSAGE_SIZE:
            w.ended = at_short
            return
        stop = w.position + LOG_OVERHEAD + size
        if stop > w.reach or w.position + MAGIC_AT >= w.end:
            w.ended = at_cut
            return
        if size > w.max_size:
            w.ended = at_large
            return
        magic = at[MAGIC_AT]
        above = offset
        if magic:
            if magic == BATCH:
                if size < MIN_BATCH_SIZE:
                    w.ended = at_short
                    return
                above = last_offset(w, offset)
                if w.ended != at_end:
                    return
            elif magic != TIMED:
                magic = 0
            elif size < MIN_TIMED_SIZE:
                w.ended = at_short
                return
        if w.check_crc:
            if magic == BATCH:
                wrong = batch_crc_is_wrong(at, size)
            else:
                wrong = crc32_of(at + MAGIC_AT, size - 4) != <uint32_t>int32_at(at + CRC_AT)
            if wrong:
                w.ended = at_bad_crc
                return
        if w.rising:
            if offset <= w.last:
                w.ended = at_disorder
                return
            w.last = above
        if w.whole:
            codec = at[BATCH_CODEC_AT if magic == BATCH else ATTRIBUTES_AT] & CODEC_MASK
            if (codec or magic != w.format) and not w.wrappers:
                w.ended = at_wrapper
                return
            if codec:
                w.codec = codec
            elif w.keyed and magic != BATCH and int32_at(
                at + (TIMED_KEY_LENGTH_AT if magic else KEY_LENGTH_AT)
            ) < 0:
                w.ended = at_keyless
                return
        if w.stamps:
            offset = above = w.number + w.count
            put_64(<uint8_t *>at, offset)
        if not w.count:
            w.first = offset
        w.newest = above
        if magic > w.highest:
            w.highest = magic
        w.count += 1
        w.position = stop


def walk(
    buffer,
    int64_t position,
    int64_t end,
    *,
    number=None,
    bint check_crc=False,
    int64_t max_size=INT64_MAX,
    last=None,
    up_to=None,
    until=None,
    bint wrappers=False,
    bint keyed=False,
    reach=None,
    int magic=0,
):
    cdef Py_buffer view
    cdef Walk w
    w.position, w.end, w.max_size = position, end, max_size
    w.stamps, w.number = number is not None, or_none(number, 0)
    w.rising, w.last = last is not None, or_none(last, 0)
    w.whole, w.reach = reach is None, or_none(reach, end)
    w.up_to, w.until = or_none(up_to, INT64_MAX), or_none(until, INT64_MAX)
    # Bytes beyond the buffer are not read.
    w.check_crc, w.wrappers, w.keyed = check_crc and w.whole, wrappers, keyed
    w.count, w.first, w.newest, w.codec = 0, -1, -1, 0
    w.format, w.highest = magic, 0
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE if w.stamps else PyBUF_SIMPLE)
    if position < 0 or end > view.len:
        PyBuffer_Release(&view)
        raise IndexError(f"{position} to {end} of {view.len} bytes")
    w.data = <const uint8_t *>view.buf
    # For short stretches the lock is kept: another thread could hold it for long.
    if end - position < LITTLE:
        advance(&w)
    else:
        with nogil:
            advance(&w)
    PyBuffer_Release(&view)
    return named_of(<type>Walked, (w.position, w.count, w.first, w.newest, w.codec, w.ended, w.highest))


def number_messages(buffer, int64_t base, int64_t max_size):
    cdef Py_buffer view
    cdef Walk w
    memset(&w, 0, sizeof(w))
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    w.data, w.end, w.reach = <const uint8_t *>view.buf, view.len, view.len
    w.number, w.max_size, w.up_to, w.until = base, max_size, INT64_MAX, INT64_MAX
    w.stamps, w.check_crc, w.whole = True, True, True
    if view.len < LITTLE:
        advance(&w)
    else:
        with nogil:
            advance(&w)
    PyBuffer_Release(&view)
    return w.count if w.ended == at_end else 0


def newest_time(buffer, int64_t position, int64_t stop, int64_t unclear=-1):
    cdef Py_buffer view
    cdef const uint8_t *at
    cdef int64_t newest = -1, found = -1, time
    cdef int32_t size
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    if position < 0 or stop > view.len:
        PyBuffer_Release(&view)
        raise IndexError(f"{position} to {stop} of {view.len} bytes")
    while stop - position > MAGIC_AT:
        at = <const uint8_t *>view.buf + position
        if at[MAGIC_AT] == BATCH or at[MAGIC_AT] == TIMED:
            if stop - position < MAX_TIMESTAMP_AT + 8 and (
                at[MAGIC_AT] == BATCH or stop - position < TIMESTAMP_AT + 8
            ):
                break
            time = int64_at(at + (MAX_TIMESTAMP_AT if at[MAGIC_AT] == BATCH else TIMESTAMP_AT))
            if time < unclear and at[MAGIC_AT] == BATCH and not at[BATCH_CODEC_AT] & CLAIMED:
                if time < int64_at(at + BASE_TIMESTAMP_AT):
                    time = unclear
            if time > newest:
                newest, found = time, int64_at(at)
                if at[MAGIC_AT] == BATCH:
                    found += int32_at(at + LAST_DELTA_AT)
        size = int32_at(at + SIZE_AT)
        position += LOG_OVERHEAD
        position += size if size > 0 else 0
    PyBuffer_Release(&view)
    return newest, found


def message_times(buffer, int64_t position, int64_t stop):
    cdef Py_buffer view
    cdef const uint8_t *at
    cdef int64_t oldest = INT64_MAX, newest = -1, time
    cdef int32_t size
    cdef bint odd = False
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    if position < 0 or stop > view.len:
        PyBuffer_Release(&view)
        raise IndexError(f"{position} to {stop} of {view.len} bytes")
    while stop - position >= TIMESTAMP_AT + 8:
        at = <const uint8_t *>view.buf + position
        time = int64_at(at + TIMESTAMP_AT)
        if time < -1 or at[ATTRIBUTES_AT] & STAMPED:
            odd = True
        if time > newest:
            newest = time
        if time < oldest and time != -1:
            oldest = time
        size = int32_at(at + SIZE_AT)
        position += LOG_OVERHEAD + (size if size > 0 else 0)
    PyBuffer_Release(&view)
    return oldest, newest, bool(odd)


cdef (int32_t, int32_t) part_of(const uint8_t *at, int64_t reach) noexcept nogil:
    """The part of a batch in a transaction, and a marker's coordinator epoch, else -1."""
    cdef const uint8_t *record = at + RECORDS_AT
    cdef int32_t kind
    if not at[BATCH_CODEC_AT] & CONTROL:
        return (IN_TRANSACTION if at[BATCH_CODEC_AT] & TRANSACTIONAL else NO_TRANSACTION), -1
    if (
        reach < RECORDS_AT + MARKER_RECORD
        or int32_at(at + SIZE_AT) != RECORDS_AT + MARKER_RECORD - LOG_OVERHEAD
        or record[0] != RECORD_LENGTH
        or record[4] != KEY_LENGTH
        or record[9] != VALUE_LENGTH
    ):
        return OTHER_CONTROL, -1
    kind = (record[7] << 8) | record[8]
    kind = COMMIT if kind == 1 else OTHER_CONTROL if kind else ABORT
    return kind, int32_at(record + 12)


def producer_batches(buffer, int64_t position, int64_t stop):
    cdef Py_buffer view
    cdef const uint8_t *at
    cdef int64_t producer_id
    cdef int32_t size, part, epoch
    cdef list found = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or stop > view.len:
            raise IndexError(f"{position} to {stop} of {view.len} bytes")
        while stop - position > MAGIC_AT:
            at = <const uint8_t *>view.buf + position
            if at[MAGIC_AT] == BATCH and stop - position >= RECORDS_AT:
                producer_id = int64_at(at + PRODUCER_AT)
                if producer_id > -1:
                    part, epoch = part_of(at, stop - position)
                    found.append((
                        producer_id,
                        <int16_t>((at[PRODUCER_EPOCH_AT] << 8) | at[PRODUCER_EPOCH_AT + 1]),
                        int32_at(at + SEQUENCE_AT),
                        int64_at(at),
                        int32_at(at + LAST_DELTA_AT),
                        int64_at(at + MAX_TIMESTAMP_AT),
                        part,
                        epoch,
                    ))
            size = int32_at(at + SIZE_AT)
            position += LOG_OVERHEAD
            position += size if size > 0 else 0
    finally:
        PyBuffer_Release(&view)
    return found


def family_end(buffer, int64_t position, int64_t stop):
    cdef Py_buffer view
    cdef const uint8_t *at
    cdef int32_t size
    cdef bint first = True, batches = False
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    if position < 0 or stop > view.len:
        PyBuffer_Release(&view)
        raise IndexError(f"{position} to {stop} of {view.len} bytes")
    while stop - position > MAGIC_AT:
        at = <const uint8_t *>view.buf + position
        size = int32_at(at + SIZE_AT)
        if size < MIN_MESSAGE_SIZE:
            break
        if first:
            first, batches = False, at[MAGIC_AT] == BATCH
        elif batches != (at[MAGIC_AT] == BATCH):
            break
        position += LOG_OVERHEAD
        position += size
    PyBuffer_Release(&view)
    return position


def fields(buffer, int64_t position, int64_t stop, number=None):
    cdef bint numbered = number is not None
    cdef int64_t first = or_none(number, 0)
    cdef Py_buffer view
    cdef c_array.array rows
    cdef Py_ssize_t used = 0, room = 0
    cdef long long *row
    cdef int64_t end, key_end, value
    cdef int32_t size, length
    cdef const uint8_t *data
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or stop > view.len:
            raise IndexError(f"{position} to {stop} of {view.len} bytes")
        data = <const uint8_t *>view.buf
        room = max(<Py_ssize_t>(stop - position) // 64, 8)
        rows = c_array.clone(numbers, room * FIELDS, False)
        while position < stop:
            size = int32_at(data + position + SIZE_AT)
            end = position + LOG_OVERHEAD + size
            if size < MIN_MESSAGE_SIZE or end > stop:
                raise IndexError(f"no whole entry at {position}")
            length = int32_at(data + position + KEY_LENGTH_AT)
            key_end = position + KEY_AT + (length if length > 0 else 0)
            value = key_end + 4
            if value > end:
                raise impossible_lengths(position)
            if used == room:
                room *= 2
                c_array.resize(rows, room * FIELDS)
            row = rows.data.as_longlongs + used * FIELDS
            row[0] = first + used if numbered else int64_at(data + position)
            row[1] = position + KEY_AT
            row[2] = key_end if length >= 0 else -1
            row[3] = value
            length = int32_at(data + key_end)
            if length < 0:
                row[4] = -1
            else:
                row[4] = value + length
                if value + length > end:
                    raise impossible_lengths(position)
            used += 1
            position = end
        c_array.resize(rows, used * FIELDS)
        return rows
    finally:
        PyBuffer_Release(&view)


cdef struct Column:
    # in all
    int64_t size, nulls
    # filled as far as the row that is next
    char *data
    int32_t *bounds
    uint8_t *valid
    int32_t used


cdef int64_t measure(
    const uint8_t *data, int64_t position, int64_t stop, int64_t *rows, Column *cells
) noexcept nogil:
    """Add up the rows, and the sizes and nulls of both columns; where an entry is wrong, or -1."""
    cdef int64_t end, at
    cdef int32_t size, length
    cdef int which
    while position < stop:
        if stop - position < KEY_AT:
            return position
        size = int32_at(data + position + SIZE_AT)
        end = position + LOG_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE or end > stop:
            return position
        at = position + KEY_LENGTH_AT
        for which in range(2):
            if at + 4 > end:
                return position
            length = int32_at(data + at)
            at += 4
            if length < 0:
                cells[which].nulls += 1
                continue
            if at + length > end:
                return position
            cells[which].size += length
            at += length
        rows[0] += 1
        position = end
    return -1


cdef void gather(
    const uint8_t *data, int64_t position, int64_t rows, int64_t *offsets, Column *cells,
    bint numbered, int64_t number,
) noexcept nogil:
    """Fill both columns and the offsets from entries that were measured."""
    cdef int64_t row
    cdef int32_t length
    cdef const uint8_t *at
    cdef Column *column
    cdef int which
    for row in range(rows):
        offsets[row] = number + row if numbered else int64_at(data + position)
        at = data + position + KEY_LENGTH_AT
        for which in range(2):
            column = cells + which
            length = int32_at(at)
            at += 4
            if not column.bounds:
                continue
            if length >= 0:
                memcpy(column.data + column.used, at, length)
                column.used += length
                at += length
                if column.valid:
                    column.valid[row >> 3] |= 1 << (row & 7)
            column.bounds[row + 1] = column.used
        position += LOG_OVERHEAD + int32_at(data + position + SIZE_AT)


cdef allocate(Column *column, int64_t rows):
    """The Cells of ``column``, still to be filled; None if all are null."""
    if column.nulls == rows:
        return None
    bounds = PyBytes_FromStringAndSize(NULL, 4 * (rows + 1))
    data = PyBytes_FromStringAndSize(NULL, column.size)
    column.bounds = <int32_t *>PyBytes_AS_STRING(bounds)
    column.bounds[0] = 0
    column.data = PyBytes_AS_STRING(data)
    valid = None
    if column.nulls:
        valid = PyBytes_FromStringAndSize(NULL, (rows + 7) // 8)
        column.valid = <uint8_t *>PyBytes_AS_STRING(valid)
        memset(column.valid, 0, (rows + 7) // 8)
    return named_of(<type>Cells, (bounds, data, valid))


def columns(buffer, int64_t position, int64_t stop, number=None):
    cdef bint numbered = number is not None
    cdef int64_t first = or_none(number, 0)
    cdef int64_t rows = 0, wrong
    cdef Py_buffer view
    cdef Column cells[2]
    cdef int64_t *offsets
    memset(cells, 0, sizeof(cells))
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or stop > view.len:
            raise IndexError(f"{position} to {stop} of {view.len} bytes")
        if stop - position > INT32_MAX:
            raise OverflowError(f"{stop - position} bytes are too much for a column")
        with nogil:
            wrong = measure(<const uint8_t *>view.buf, position, stop, &rows, cells)
        if wrong >= 0:
            raise impossible_lengths(wrong)
        numbers_of_rows = PyBytes_FromStringAndSize(NULL, 8 * rows)
        offsets = <int64_t *>PyBytes_AS_STRING(numbers_of_rows)
        keys, values = allocate(cells, rows), allocate(cells + 1, rows)
        with nogil:
            gather(<const uint8_t *>view.buf, position, rows, offsets, cells, numbered, first)
        return numbers_of_rows, keys, values
    finally:
        PyBuffer_Release(&view)


cdef inline void put(made, Py_ssize_t index, value):
    Py_INCREF(value)
    PyTuple_SET_ITEM(made, index, value)


cdef struct Place:
    # a plain entry; the length of a null is negative
    const uint8_t *at
    const char *key
    const char *value
    int32_t key_length, value_length
    int64_t stop


cdef int open_entry(const uint8_t *data, int64_t position, int64_t stop, Place *found) except -1:
    """Find key and value of the entry at ``position``."""
    cdef int32_t size
    cdef int64_t value
    found.at = data + position
    size = int32_at(found.at + SIZE_AT)
    found.stop = position + LOG_OVERHEAD + size
    if size < MIN_MESSAGE_SIZE or found.stop > stop:
        raise IndexError(f"no whole entry at {position}")
    found.key = <const char *>found.at + KEY_AT
    found.key_length = int32_at(found.at + KEY_LENGTH_AT)
    value = position + KEY_AT + (found.key_length if found.key_length > 0 else 0) + 4
    if value > found.stop:
        raise impossible_lengths(position)
    found.value = <const char *>data + value
    found.value_length = int32_at(data + value - 4)
    if found.value_length > 0 and value + found.value_length > found.stop:
        raise impossible_lengths(position)
    return 0


cdef inline bytes_or_none(const char *data, int32_t length):
    return None if length < 0 else PyBytes_FromStringAndSize(data, length)


def messages(buffer, int64_t position, int64_t stop, int codec=0, number=None):
    cdef bint numbered = number is not None
    cdef int64_t following = or_none(number, 0)
    cdef Py_buffer view
    cdef Place found
    cdef list made = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or stop > view.len:
            raise IndexError(f"{position} to {stop} of {view.len} bytes")
        while position < stop:
            open_entry(<const uint8_t *>view.buf, position, stop, &found)
            message = (<TypeSlots *><PyObject *>message_type).tp_alloc(message_type, 7)
            put(message, 0, following if numbered else int64_at(found.at))
            put(message, 1, bytes_or_none(found.key, found.key_length))
            put(message, 2, bytes_or_none(found.value, found.value_length))
            put(message, 3, codec)
            put(message, 4, <uint32_t>int32_at(found.at + CRC_AT))
            put(message, 5, found.at[MAGIC_AT])
            put(message, 6, found.at[ATTRIBUTES_AT])
            made.append(message)
            following += 1
            position = found.stop
        return made
    finally:
        PyBuffer_Release(&view)


cdef object no_details = (-1, -1, ())


cdef int check_tuple(found, Py_ssize_t size) except -1:
    if not isinstance(found, tuple) or len(found) != size:
        raise TypeError(f"not a tuple of {size}")
    return 0


# Messages hold bytes and decoders, and are not in a cycle.
@cython.no_gc
@cython.freelist(64)
cdef class ConsumedMessage:
    cdef readonly int64_t offset
    cdef object _source, _key, _value, _details

    def __init__(self, source, int64_t offset, key, value, details=no_details):
        check_tuple(source, 4)
        check_tuple(details, 3)
        self._details = details
        self._source, self.offset, self._key, self._value = source, offset, key, value

    def __reduce__(self):
        return ConsumedMessage, (
            self._source, self.offset, self._key, self._value, self._details
        )

    @property
    def topic(self):
        return (<tuple>self._source)[0]

    @property
    def partition(self):
        return (<tuple>self._source)[1]

    @property
    def key(self):
        decoder = (<tuple>self._source)[2]
        return self._key if self._key is None or decoder is None else decoder(self._key)

    @property
    def value(self):
        decoder = (<tuple>self._source)[3]
        return self._value if self._value is None or decoder is None else decoder(self._value)

    @property
    def timestamp(self):
        return (<tuple>self._details)[0]

    @property
    def timestamp_type(self):
        return (<tuple>self._details)[1]

    @property
    def headers(self):
        return (<tuple>self._details)[2]

    def __repr__(self):
        return f"Message({self.topic}:{self.partition}:{self.offset})"


def consumed(source, buffer, int64_t position, int64_t stop, codec=0, number=None):
    cdef bint numbered = number is not None
    cdef int64_t following = or_none(number, 0)
    cdef Py_buffer view
    cdef Place found
    cdef ConsumedMessage message
    cdef list made = []
    check_tuple(source, 4)
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or stop > view.len:
            raise IndexError(f"{position} to {stop} of {view.len} bytes")
        while position < stop:
            open_entry(<const uint8_t *>view.buf, position, stop, &found)
            message = ConsumedMessage.__new__(ConsumedMessage)
            message._source, message._details = source, no_details
            message.offset = following if numbered else int64_at(found.at)
            message._key = bytes_or_none(found.key, found.key_length)
            message._value = bytes_or_none(found.value, found.value_length)
            made.append(message)
            following += 1
            position = found.stop
        return made
    finally:
        PyBuffer_Release(&view)
