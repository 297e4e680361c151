"""Spreads replicas over brokers, of which some share a rack or a unit. Pure.

Brokers of a unit are processes that are stopped, and fail, as one. A rack is what an administrator
says. A partition gets its replicas in as many racks as there are, and in as many units.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka08.errors import AdminOperationError


class InvalidPartitionsError(AdminOperationError):
    """The number of partitions is not valid for the topic."""


class InvalidReplicationFactorError(AdminOperationError):
    """The number of replicas is not valid for the topic."""


class BrokerPlace(NamedTuple):
    """A broker, and where it is, as far as it says that."""

    broker_id: int
    rack: str | None = None
    unit: str | None = None


Domain = tuple[int, str, int]
"""A rack, or a unit. Its parts give it an order, whichever of them names it."""


def assign_replicas(
    places: Sequence[BrokerPlace],
    partitions: int,
    replication_factor: int,
    start: int | None = None,
    shift: int | None = None,
    first_partition: int = 0,
) -> dict[int, list[int]]:
    """Spread the replicas of ``partitions`` new partitions over the brokers of ``places``.

    The first replicas are placed round-robin from broker index ``start``. The other replicas
    are placed at a distance that begins with ``shift`` and grows by one each round, so that the
    partitions of one leader have their followers on different brokers. Both are random unless
    given. Partitions are numbered from ``first_partition``. Raises AdminOperationError.

    If no broker names a rack or a unit, this is 0.8.2.2's spread. Otherwise it is that of later
    releases (KIP-36), for which brokers are ordered so that neighbours are in different racks.
    """
    if partitions <= 0:
        raise InvalidPartitionsError("number of partitions must be larger than 0")
    if replication_factor <= 0:
        raise InvalidReplicationFactorError("replication factor must be larger than 0")
    n = len(places)
    if replication_factor > n:
        raise InvalidReplicationFactorError(
            f"replication factor: {replication_factor} larger than available brokers: {n}"
        )
    start = random.randrange(n) if start is None else start
    shift = random.randrange(n) if shift is None else shift
    is_flat = all(each.rack is None and each.unit is None for each in places)
    spread = _Flat(places) if is_flat else _Apart(places)
    assignment = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % n == 0:
            shift += 1
        assignment[partition] = spread.replicas((partition + start) % n, shift, replication_factor)
    return assignment


class _Flat:
    """The spread of 0.8.2.2."""

    def __init__(self, places: Sequence[BrokerPlace]) -> None:
        self._brokers = [each.broker_id for each in places]

    def replicas(self, first: int, shift: int, factor: int) -> list[int]:
        n = len(self._brokers)
        followers = [(first + 1 + (shift + j) % (n - 1)) % n for j in range(factor - 1)]
        return [self._brokers[index] for index in (first, *followers)]


class _Apart:
    """The spread of AdminUtils.assignReplicasToBrokersRackAware, with units inside of racks.

    A broker without a rack is in a rack of its own, or of its unit. A unit is in the rack that its
    first broker names, so each unit is in one rack.
    """

    def __init__(self, places: Sequence[BrokerPlace]) -> None:
        racks: dict[Domain, Domain] = {}
        found: dict[int, tuple[Domain, Domain]] = {}
        for each in sorted(places):
            own = (1, each.unit, 0) if each.unit is not None else (2, "", each.broker_id)
            rack = racks.setdefault(own, own if each.rack is None else (0, each.rack, 0))
            found[each.broker_id] = rack, own
        self._domains = found
        self._racks = len({rack for rack, _ in found.values()})
        self._units = len({unit for _, unit in found.values()})
        by_rack = _grouped((rack, broker_id) for broker_id, (rack, _) in found.items())
        self._brokers = _alternated(
            _alternated(_grouped((found[each][1], each) for each in brokers)) for brokers in by_rack
        )

    def replicas(self, first: int, shift: int, factor: int) -> list[int]:
        n = len(self._brokers)
        chosen = [self._brokers[first]]
        rack, unit = self._domains[chosen[0]]
        racks, units = {rack}, {unit}
        step = shift * self._racks
        while len(chosen) < factor:
            broker = self._brokers[(first + 1 + step % (n - 1)) % n]
            step += 1
            rack, unit = self._domains[broker]
            if broker in chosen or (rack in racks and len(racks) < self._racks):
                continue
            if unit in units and len(units) < self._units:
                continue
            chosen.append(broker)
            racks.add(rack)
            units.add(unit)
        return chosen


def _grouped(pairs: Iterable[tuple[Domain, int]]) -> list[list[int]]:
    """The values of each key, in the order of the keys."""
    found: dict[Domain, list[int]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return [found[key] for key in sorted(found)]


def _alternated(groups: Iterable[Sequence[int]]) -> list[int]:
    """The first of each group, then the second of each, and so on."""
    left = list(groups)
    longest = max(map(len, left), default=0)
    return [group[at] for at in range(longest) for group in left if at < len(group)]
