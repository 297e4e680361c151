"""Clients that read, write and commit what they have read, in one transaction: each element is
copied once."""

from __future__ import annotations

from typing import Any

from kafka08.errors import NO_ERROR, LaterCode, ProtocolError
from kafka08.protocol.schemas import (
    NO_EPOCH,
    ConsumerMetadataRequest,
    OffsetFetchRequest,
    OffsetFetchTopic,
)
from tests.simulation.clients import Seat
from tests.simulation.commits import NOTHING
from tests.simulation.ledger import MessagePlace
from tests.simulation.list_ledger import COPIES, SOURCES
from tests.simulation.transactional import (
    ELSEWHERE,
    READ_VERSIONS,
    TransactionalClient,
    committed_in,
    read_request,
)

GROUP = ID = "relay"
_COMMITS = 0.8
_FETCH_VERSION, _COMMIT_VERSION = 7, 3
_EPOCHS_SINCE = 9
_REST_SECONDS = 4.0


class Piece:
    """``values`` of a partition from ``start`` to below ``following``, to be copied. ``commits``:
    it is not to be aborted. ``shown``: what the coordinator told as committed, while this was
    pending."""

    def __init__(
        self, partition: int, values: list[bytes], start: int, following: int, *, commits: bool
    ) -> None:
        self.partition = partition
        self.values = values
        self.start = start
        self.following = following
        self.commits = commits
        self.is_written = not values
        self.has_offsets = False
        self.is_pending = False
        self.shown: int | None = None

    @property
    def is_right(self) -> bool:
        """Nobody else has copied it: it is where the committed offset still is."""
        return self.shown == self.start


class Relay(TransactionalClient):
    """Copies elements to another partition. All relays have one id and one group: the one that
    registered last fences the others, which have not noticed."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat, ID)
        self._version = self.rng.choice(READ_VERSIONS)
        self._group_host = ""
        self._positions: dict[int, int] = {}
        self._piece: Piece | None = None
        self._drained: set[int] = set()

    @property
    def is_open(self) -> bool:
        return self._piece is not None or len(self._drained) < SOURCES

    def lost(self) -> None:
        """Another relay has the id now, or its transaction took too long."""
        self._piece = None
        self._positions.clear()
        self.runtime.sleep(self.rng.random() * _REST_SECONDS)

    def go_on(self) -> None:
        if not self._group_host:
            self._find_group()
        elif self._piece is not None:
            self._copy(self._piece)
        else:
            self._read_from(self.rng.randrange(SOURCES))

    # The group

    def _find_group(self) -> None:
        answer = self.call(self.any_host(), ConsumerMetadataRequest(GROUP), 0)
        if answer.error == NO_ERROR:
            self._group_host = answer.host
        else:
            self.failed("no group", answer.error)

    def _ask_group(self, request: object, version: int) -> Any:
        try:
            return self.ask(self._group_host, request, version)
        except (OSError, ProtocolError):
            self._group_host = ""
            raise

    def _committed(self, partition: int, *, stable: bool) -> int | None:
        """The offset that the group has committed; ``stable``: not while another one is pending.
        None if there is no answer now."""
        topics = [OffsetFetchTopic(self.topic, [partition])]
        request = OffsetFetchRequest(GROUP, topics, require_stable=stable)
        answer = self._ask_group(request, _FETCH_VERSION)
        found = None if answer.error else answer.topics[0].partitions[0]
        code = answer.error if found is None else found.error
        if found is None or code != NO_ERROR:
            self._group_fails("offsets", code)
            return None
        return 0 if found.offset == NOTHING else int(found.offset)

    def _group_fails(self, what: str, code: int) -> None:
        if code in ELSEWHERE:
            self._group_host = ""
        if code == LaterCode.UNSTABLE_OFFSET_COMMIT:
            self.runtime.sleep(self.rng.random())
        else:
            self.failed(what, code)

    # Copies

    def _read_from(self, partition: int) -> None:
        if partition not in self._positions:
            position = self._committed(partition, stable=True)
            if position is not None:
                self._positions[partition] = position
        elif partition not in self.leaders:
            self.forget_leaders()
        else:
            self._read(partition, self._positions[partition])

    def _read(self, partition: int, position: int) -> None:
        epoch = self.epochs[partition] if self._version >= _EPOCHS_SINCE else NO_EPOCH
        request = read_request(self.topic, partition, position, epoch)
        response = self.call(self.leaders[partition], request, self._version)
        answer = response.topics[0].partitions[0]
        if answer.error != NO_ERROR:
            self.failed(f"partition {partition}", answer.error)
            return
        read = committed_in(answer, position)
        for offset, value in read.messages:
            self.seat.lists.see(MessagePlace(partition, offset), value)
        if read.following > position:
            values = [value for _, value in read.messages]
            commits = self.rng.random() < _COMMITS
            ends = position, read.following
            self._piece = Piece(partition, values, *ends, commits=commits)
        elif self.stopping and position >= answer.high_watermark:
            self._drained.add(partition)

    def _copy(self, piece: Piece) -> None:
        """One step. The coordinator of a group may not know that it is one no more, and tell an old
        offset; but it takes no commit then. So what is committed is asked for behind that."""
        if not piece.is_written:
            self._write(piece)
        elif not piece.has_offsets:
            piece.has_offsets = self.include_offsets(GROUP)
        elif not piece.is_pending:
            self._commit_offset(piece)
        elif piece.shown is None:
            piece.shown = self._committed(piece.partition, stable=False)
        else:
            self._end(piece)

    def _write(self, piece: Piece) -> None:
        if COPIES not in self.leaders:
            self.forget_leaders()
        elif self.include(COPIES):
            piece.is_written = self.write(COPIES, [(value, value) for value in piece.values])

    def _commit_offset(self, piece: Piece) -> None:
        request = self.offsets_request(GROUP, piece.partition, piece.following)
        answer = self._ask_group(request, _COMMIT_VERSION)
        code = answer.topics[0].partitions[0].error
        if code == NO_ERROR:
            piece.is_pending = True
        elif code in ELSEWHERE:
            self._group_fails("a commit", code)
        else:
            self.refused("a commit", code)

    def _end(self, piece: Piece) -> None:
        commit = piece.commits and piece.is_right
        if not self.end(commit=commit):
            return
        # Nobody else had the id meanwhile, or the end would have been refused.
        assert piece.shown != piece.following, f"{piece.following} is pending, and shown"
        self._piece = None
        if commit:
            self._positions[piece.partition] = piece.following
        elif not piece.is_right:
            self._positions.clear()
