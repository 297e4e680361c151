"""Clients that commit offsets and read them back, in both stores."""

from __future__ import annotations

from kafka08.errors import NO_ERROR, UnknownTopicOrPartitionError
from kafka08.protocol.schemas import (
    ConsumerMetadataRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitRequestV0,
    OffsetCommitTopic,
    OffsetFetchPartitionResponse,
    OffsetFetchRequest,
    OffsetFetchRequestV0,
    OffsetFetchTopic,
)
from tests.simulation.clients import Seat, WireClient

_IN_USE = 6
_COMMITS = 3
"""Of a group, about: a commit that is lost shows if no later one hides it."""
NOTHING = -1
_SETTLING_SECONDS = 1.0


class Committer(WireClient):
    """Commits rising offsets, a few for each group and then for others, through the coordinator of
    each, and reads them back.

    A commit that was not answered may be stored, at any later time: its bytes can still be on their
    way. So what is read is the last one that was acknowledged, or one that was not. A coordinator
    that does not know that it is one no more may give an older one: that must not be so any more
    when faults have ended. ``stale``: how often it was so before.
    """

    commit_version = 1
    fetch_version = 1
    has_text = True

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.stale = 0
        self._offset = 0
        self._acknowledged: dict[str, int] = {}
        self._unanswered: dict[str, set[int]] = {}
        self._before: dict[str, set[int]] = {}
        self._places: dict[str, str] = {}
        self._verified: set[str] = set()
        self._has_settled = False

    @property
    def is_open(self) -> bool:
        return not self._verified >= self._acknowledged.keys()

    def place_of(self, group: str) -> str:
        """The host that serves the group, "" if it is not known now. Raises as ``call``."""
        answer = self.call(self.any_host(), ConsumerMetadataRequest(group), 0)
        return answer.host if answer.error == NO_ERROR else ""

    def _any_group(self) -> str:
        """One of the newest; in the end one that has not been verified."""
        if self.stopping and self.is_open:
            return min(self._acknowledged.keys() - self._verified)
        newest = self._offset // _COMMITS + _IN_USE
        return f"{self.runtime.name}-{self.rng.randrange(newest - _IN_USE, newest)}"

    def work(self) -> None:
        group = self._any_group()
        host = self._places.get(group) or self.place_of(group)
        if not host:
            self.forget_leaders()
            return
        try:
            if self.stopping:
                self._settle()
                self._fetch(group, host)
                return
            if self.rng.random() < 0.5:
                self._commit(group, host)
            else:
                self._fetch(group, host)
            self.runtime.sleep(self.rng.randrange(200) / 1000)
        except BaseException:
            others = {each: place for each, place in self._places.items() if place != host}
            self._places = others
            raise

    def _settle(self) -> None:
        """Coordinators know what they are, once they had time after all faults."""
        if not self._has_settled:
            self._has_settled = True
            self.runtime.sleep(_SETTLING_SECONDS)

    def commit_request(self, group: str, offset: int) -> OffsetCommitRequest:
        part = OffsetCommitPartition(0, offset, text_of(offset))
        return OffsetCommitRequest(group, [OffsetCommitTopic(self.topic, [part])])

    def fetch_request(self, group: str) -> OffsetFetchRequest:
        return OffsetFetchRequest(group, [OffsetFetchTopic(self.topic, [0])])

    def _commit(self, group: str, host: str) -> None:
        self._offset += 1
        offset = self._offset
        unanswered = self._unanswered.setdefault(group, set())
        unanswered.add(offset)
        request = self.commit_request(group, offset)
        answer = self.call(host, request, self.commit_version).topics[0].partitions[0]
        if answer.error != NO_ERROR:
            self._is_elsewhere(group, answer.error)
            return
        unanswered.discard(offset)
        self._acknowledge(group, offset)
        self._places[group] = host

    def _acknowledge(self, group: str, offset: int) -> None:
        if group in self._acknowledged:
            self._before.setdefault(group, set()).add(self._acknowledged[group])
        self._acknowledged[group] = offset

    def _is_elsewhere(self, group: str, code: int) -> None:
        self._places.pop(group, None)
        self.failed(group, code)

    def _fetch(self, group: str, host: str) -> None:
        request = self.fetch_request(group)
        answer = self.call(host, request, self.fetch_version).topics[0].partitions[0]
        is_missing = answer.error == UnknownTopicOrPartitionError.code and answer.offset == NOTHING
        if answer.error != NO_ERROR and not is_missing:
            self._is_elsewhere(group, answer.error)
            return
        self._places[group] = host
        self._judge(group, answer)

    def _judge(self, group: str, answer: OffsetFetchPartitionResponse) -> None:
        offset = answer.offset
        due = self._acknowledged.get(group, NOTHING)
        unanswered = self._unanswered.get(group, set())
        if offset in unanswered:
            unanswered.discard(offset)
            self._acknowledge(group, offset)
        elif offset != due:
            is_old = offset == NOTHING or offset in self._before.get(group, ())
            what = f"{group} has {offset}, the last commit was {due}"
            assert is_old and not self.stopping, f"{what}, not answered {sorted(unanswered)}"
            self.note(what)
            self.stale += 1
            self._places.pop(group, None)
            return
        if self.has_text and offset != NOTHING:
            assert answer.metadata == text_of(offset), f"{group}: {offset}, {answer.metadata!r}"
        if self.stopping:
            self._verified.add(group)


class ZooKeeperCommitter(Committer):
    """The same in version 0: any broker serves any group."""

    commit_version = 0
    fetch_version = 0
    has_text = False  # ZooKeeper has the offset alone

    def place_of(self, group: str) -> str:
        return self.any_host()

    def commit_request(self, group: str, offset: int) -> OffsetCommitRequest:
        return OffsetCommitRequestV0(*super().commit_request(group, offset))

    def fetch_request(self, group: str) -> OffsetFetchRequest:
        return OffsetFetchRequestV0(*super().fetch_request(group))


def text_of(offset: int) -> str:
    """The metadata of a commit."""
    return f"of {offset}"
