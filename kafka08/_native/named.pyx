# cython: language_level=3
"""``named`` of ``kafka08.named`` as machine code."""

cdef extern from "named.h":
    object named_of(type kind, tuple values)


def named(type kind not None, tuple values not None):
    return named_of(kind, values)
