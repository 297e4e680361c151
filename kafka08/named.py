"""``named`` makes a NamedTuple of its values, one for each field: ``named(Broker, (1, "a", 2))``.

It does not look at them. The constructor takes twice as long or more, and every produce and every
fetch makes some.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kafka08._native import load

T = TypeVar("T")

if TYPE_CHECKING:

    def named(kind: type[T], values: tuple[object, ...]) -> T: ...

else:
    native = load("named")
    named = tuple.__new__ if native is None else native.named
