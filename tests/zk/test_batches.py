"""zk.batches."""

from __future__ import annotations

import pytest
from kazoo import exceptions as kazoo_errors
from kazoo.handlers.threading import SequentialThreadingHandler

from zk.batches import Together


def test_results_in_the_order_of_the_paths() -> None:
    results = {path: SequentialThreadingHandler().async_result() for path in "abc"}
    together = Together(results.__getitem__, list("abc"))
    results["c"].set(3)
    results["b"].set_exception(kazoo_errors.NoNodeError())
    assert not together.ready()
    together.wait(0.0)
    results["a"].set(1)
    assert together.ready()
    together.wait(60.0)
    assert together.get() == [1, None, 3]


def test_an_error_of_one_is_that_of_all() -> None:
    results = {path: SequentialThreadingHandler().async_result() for path in "ab"}
    together = Together(results.__getitem__, list("ab"))
    results["a"].set(1)
    results["b"].set_exception(kazoo_errors.ConnectionLoss())
    assert together.ready()
    with pytest.raises(kazoo_errors.ConnectionLoss):
        together.get()
