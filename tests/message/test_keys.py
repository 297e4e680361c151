"""Messages without a key, wherever they hide."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.message.sets import holds_null_key, iter_messages
from tests.message.sets import CODECS, entries, plain, wrapper


@given(found=st.lists(entries(), max_size=4), tail=st.integers(0, 30))
@settings(deadline=None)
def test_a_null_key_is_found_at_any_depth(found, tail):
    data = b"".join([entry for entry, _ in found])
    expected = any(key is None for _, messages in found for key, _ in messages)
    assert holds_null_key(memoryview(data)) is expected
    assert holds_null_key(data + plain([(None, b"x")])[:tail][:25]) is expected


def test_the_key_of_a_wrapper_does_not_count():
    keyed, keyless = plain([(b"k", b"v")]), plain([(b"k", b"v"), (None, b"v")])
    for codec in CODECS:
        assert not holds_null_key(wrapper(keyed, codec))
        assert holds_null_key(wrapper(keyless, codec, key=b"outer"))
        assert holds_null_key(keyed + wrapper(wrapper(keyless, codec), codec))
    assert list(iter_messages(keyed))
