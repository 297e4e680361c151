from __future__ import annotations

from kafka08.common import TopicPartition
from kafka08.message.batch import NO_PRODUCER
from kafka08.producer.transactions.sequences import NO_ID, ProducerId, Sequences

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def counted(attributes: int = 0) -> Sequences:
    sequences = Sequences(attributes)
    sequences.producer = ProducerId(9, 0)
    return sequences


def test_each_partition_counts_what_it_has_stored() -> None:
    sequences = counted(0x10)
    assert sequences.sender(A, is_sent=False) == (9, 0, 0, 0x10)
    assert sequences.sender(A, is_sent=True) == (9, 0, 0, 0x10)
    sequences.stored(A, 5)
    assert sequences.sender(A, is_sent=False) == (9, 0, 5, 0x10)
    assert sequences.sender(B, is_sent=False) == (9, 0, 0, 0x10)


def test_zero_follows_the_largest_number() -> None:
    sequences = counted()
    sequences.sender(A, is_sent=False)
    sequences.stored(A, 2**31 - 2)
    assert sequences.sender(A, is_sent=False).first_sequence == 2**31 - 2
    sequences.stored(A, 3)  # 2147483646, 2147483647, 0
    assert sequences.sender(A, is_sent=False).first_sequence == 1


def test_a_new_epoch_counts_again_but_not_for_what_was_sent() -> None:
    sequences = counted()
    for tp in (A, B):
        sequences.sender(tp, is_sent=False)
        sequences.stored(tp, 4)
    sequences.begin_again()
    assert sequences.sender(A, is_sent=False)[:3] == (9, 1, 0)
    assert sequences.sender(B, is_sent=True)[:3] == (9, 0, 4)
    sequences.stored(B, 1)
    assert sequences.sender(B, is_sent=False)[:3] == (9, 1, 0)


def test_after_the_last_epoch_comes_another_id() -> None:
    sequences = counted()
    sequences.producer = ProducerId(9, 2**15 - 1)
    sequences.begin_again()
    assert sequences.producer == NO_ID == (NO_PRODUCER, NO_PRODUCER)
    sequences.begin_again()  # another partition failed too
    assert sequences.producer == NO_ID
