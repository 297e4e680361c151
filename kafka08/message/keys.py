"""Whether every message of a set has a key, as those of a compacted topic must."""

from __future__ import annotations

from kafka08.message.compression import MAX_INFLATED
from kafka08.message.inner import leaves
from kafka08.message.message import (
    CODEC_MASK,
    ENTRY_OVERHEAD,
    FIELDS,
    MIN_MESSAGE_SIZE,
    BytesLike,
)


def holds_null_key(buffer: BytesLike, *, max_inflated: int = MAX_INFLATED) -> bool:
    """Whether a message of a checked set, or one inside its wrappers, has no key.

    Wrappers themselves mostly have none. Raises as ``inner.leaves`` does.
    """
    end = len(buffer)
    position = 0
    fields = FIELDS.unpack_from
    while position + ENTRY_OVERHEAD + MIN_MESSAGE_SIZE <= end:
        _, size, _, _, attributes, key_length = fields(buffer, position)
        stop = position + ENTRY_OVERHEAD + size
        if size < MIN_MESSAGE_SIZE or stop > end:
            break
        codec = attributes & CODEC_MASK
        if codec:
            found = leaves(buffer, position, stop, codec, max_inflated=max_inflated)
            if holds_null_key(found.data):
                return True
        elif key_length < 0:
            return True
        position = stop
    return False
