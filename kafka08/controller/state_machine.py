"""The transitions that partitions and replicas have in common: checked, made, logged.

A batch of transitions ends in one batch of requests. A subject whose transition fails is logged
and keeps its state; the others continue. The caller handles ZooKeeper errors and a lost
controllership.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from kafka08.common import TRACE
from kafka08.controller.states import (
    PartitionState,
    ReplicaState,
    StateChangeFailedError,
    check_transition,
)
from kafka08.controller.term import Term

state_change_logger = logging.getLogger("state.change.logger")

Subject = TypeVar("Subject")
State = TypeVar("State", PartitionState, ReplicaState)


class StateMachine(ABC, Generic[Subject, State]):
    """``state`` and ``set_state`` are where states are kept. Subclasses say what is done between
    ``_begin`` of a batch and its end, when it is sent."""

    predecessors: ClassVar[Mapping[Any, tuple[Any, ...]]]

    def __init__(
        self,
        term: Term,
        state: Callable[[Subject], State],
        set_state: Callable[[Subject, State], None],
    ) -> None:
        self._state: Callable[[Subject], State] = state
        self._set_state: Callable[[Subject, State], None] = set_state
        self._term = term
        self._context = term.context
        self._store = term.store
        self._batch = term.batch
        self._id = term.controller_id

    @abstractmethod
    def _title(self, subject: Subject) -> str:
        """As errors begin: ``Partition [t,0]``."""

    @abstractmethod
    def _changing(self, subject: Subject) -> tuple[str, str]:
        """As the logs of a change and of a failed change name its subject."""

    def _possible(self, subject: Subject, target: State) -> None:
        """Raises StateChangeFailedError if ``subject`` cannot have this state at all."""

    def _begin(self, subjects: Collection[Subject], target: State) -> list[Subject]:
        """Those whose transition to ``target`` is legal."""
        self._batch.clear()
        return [subject for subject in subjects if self._check(subject, target)]

    def _check(self, subject: Subject, target: State) -> bool:
        try:
            self._possible(subject, target)
            check_transition(self.predecessors, self._title(subject), self._state(subject), target)
        except StateChangeFailedError as error:
            self._failed(subject, target, error)
            return False
        return True

    def _mark(self, subject: Subject, target: State) -> None:
        previous = self._state(subject)
        self._set_state(subject, target)
        state_change_logger.log(
            TRACE,
            "Controller %d epoch %d changed %s from %s to %s",
            *(self._id, self._context.epoch, self._changing(subject)[0], previous, target),
        )

    def _failed(self, subject: Subject, target: State, error: Exception) -> None:
        state_change_logger.error(
            "Controller %d epoch %d initiated state change %s from %s to %s failed: %s",
            *(self._id, self._context.epoch, self._changing(subject)[1]),
            *(self._state(subject), target, error),
        )
