"""APIs 50 and 51 of later releases: SCRAM users without ZooKeeper's address.

Any broker answers, by reading and writing the nodes in ZooKeeper, as kafka-configs does there.
Brokers follow a change within a second. Later releases answer from the controller alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from kafka08.errors import LaterCode
from kafka08.protocol import scram_schemas as s
from kafka08.protocol.schemas import RequestHeader
from kafka08.security.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    credential_of_salted,
    decode_credential,
    encode_credential,
)
from kafka08.server.apis.outcomes import AdminOutcome, RefusedError, tried
from kafka08.server.requests.dispatch import Handler
from zk import entities, entity_configs
from zk.client import ZkClient

_EMPTY_NAME = "Username must not be empty"


class DescribeUserScramCredentialsApi:
    """An invalid credential is left out, as no login can use it."""

    key = 50
    last_version = 0

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk

    def handle(
        self, header: RequestHeader, request: s.DescribeUserScramCredentialsRequest
    ) -> s.DescribeUserScramCredentialsResponse:
        named = Counter(each.name for each in request.users or ())
        users: list[s.DescribedScramUser] = []
        outcome = tried("SCRAM users", lambda: users.extend(self._described(named)))
        return s.DescribeUserScramCredentialsResponse(0, *outcome, [] if outcome.code else users)

    def _described(self, named: Mapping[str, int]) -> Iterable[s.DescribedScramUser]:
        if named:
            return [self._named(user, times) for user, times in named.items()]
        found = entity_configs.names(self._zk, entities.USERS)
        users = (entities.desanitize(entity.partition("/")[2]) for entity in found)
        described = [self._user(user) for user in users if user != entities.DEFAULT]
        return [each for each in described if each.credentials or each.error]

    def _named(self, user: str, times: int) -> s.DescribedScramUser:
        if times > 1:
            text = "Cannot describe SCRAM credentials for the same user twice in a single request"
            refusal = LaterCode.DUPLICATE_RESOURCE, f"{text}: {user}"
        elif not user:
            refusal = LaterCode.RESOURCE_NOT_FOUND, _EMPTY_NAME
        else:
            found = self._user(user)
            if found.credentials or found.error:
                return found
            text = "Attempt to describe a user credential that does not exist"
            refusal = LaterCode.RESOURCE_NOT_FOUND, f"{text}: {user}"
        return s.DescribedScramUser(user, *refusal, [])

    def _user(self, user: str) -> s.DescribedScramUser:
        credentials: list[s.ScramCredentialInfo] = []
        outcome = tried(user, lambda: credentials.extend(_infos(self._zk, user)))
        return s.DescribedScramUser(user, *outcome, credentials)

    def failure(
        self, header: RequestHeader, request: s.DescribeUserScramCredentialsRequest, code: int
    ) -> s.DescribeUserScramCredentialsResponse:
        return s.DescribeUserScramCredentialsResponse(0, code, None, [])


def _entity(user: str) -> str:
    return f"{entities.USERS}/{entities.sanitize(user)}"


def _infos(zk: ZkClient, user: str) -> Iterable[s.ScramCredentialInfo]:
    config = entity_configs.fetch(zk, _entity(user))
    for number, mechanism in enumerate(s.MECHANISMS):
        if mechanism in config:
            try:
                found = decode_credential(mechanism, config[mechanism])
            except ValueError:
                continue
            yield s.ScramCredentialInfo(number, found.iterations)


class _Changes:
    """The deletions and upsertions of one user."""

    def __init__(self) -> None:
        self.deleted: list[s.ScramDeletion] = []
        self.set: list[s.ScramUpsertion] = []

    def check(self, user: str) -> None:
        """Raises RefusedError."""
        every: list[s.ScramDeletion | s.ScramUpsertion] = [*self.deleted, *self.set]
        if not user:
            raise RefusedError(LaterCode.UNACCEPTABLE_CREDENTIAL, _EMPTY_NAME)
        if any(not 0 < each.mechanism < len(s.MECHANISMS) for each in every):
            raise RefusedError(LaterCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        if len({each.mechanism for each in every}) < len(every):
            raise RefusedError(
                LaterCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
        for new in self.set:
            text = _unfit(new)
            if text:
                raise RefusedError(LaterCode.UNACCEPTABLE_CREDENTIAL, text)

    def applied(self, config: dict[str, str]) -> dict[str, str]:
        """The settings of the user afterwards. Raises RefusedError."""
        changed = dict(config)
        for gone in self.deleted:
            if changed.pop(s.MECHANISMS[gone.mechanism], None) is None:
                raise RefusedError(
                    LaterCode.RESOURCE_NOT_FOUND,
                    "Attempt to delete a user credential that does not exist",
                )
        for new in self.set:
            mechanism = s.MECHANISMS[new.mechanism]
            made = credential_of_salted(
                mechanism, bytes(new.salted_password), bytes(new.salt), new.iterations
            )
            changed[mechanism] = encode_credential(made)
        return changed


def _unfit(new: s.ScramUpsertion) -> str:
    """The reason for which a credential is refused; empty without."""
    if not new.salt or not new.salted_password:
        return "The salt and the salted password must not be empty"
    if new.iterations < MIN_ITERATIONS:
        return f"Too few iterations: {new.iterations} is less than {MIN_ITERATIONS}"
    if new.iterations > MAX_ITERATIONS:
        return f"Too many iterations: {new.iterations} is more than {MAX_ITERATIONS}"
    return ""


class AlterUserScramCredentialsApi:
    """The changes of one user are made by one write: all of them or none."""

    key = 51
    last_version = 0

    def __init__(self, zk: ZkClient) -> None:
        self._zk = zk

    def handle(
        self, header: RequestHeader, request: s.AlterUserScramCredentialsRequest
    ) -> s.AlterUserScramCredentialsResponse:
        outcomes = {
            user: tried(user, partial(self._alter, user, changes))
            for user, changes in _by_user(request).items()
        }
        return _altered(outcomes)

    def _alter(self, user: str, changes: _Changes) -> None:
        changes.check(user)
        entity_configs.alter(self._zk, _entity(user), changes.applied)

    def failure(
        self, header: RequestHeader, request: s.AlterUserScramCredentialsRequest, code: int
    ) -> s.AlterUserScramCredentialsResponse:
        return _altered(dict.fromkeys(_by_user(request), AdminOutcome(code)))


def _by_user(request: s.AlterUserScramCredentialsRequest) -> dict[str, _Changes]:
    users: dict[str, _Changes] = {}
    for gone in request.deletions:
        users.setdefault(gone.name, _Changes()).deleted.append(gone)
    for new in request.upsertions:
        users.setdefault(new.name, _Changes()).set.append(new)
    return users


def _altered(outcomes: Mapping[str, AdminOutcome]) -> s.AlterUserScramCredentialsResponse:
    users = [s.AlteredScramUser(user, *outcome) for user, outcome in outcomes.items()]
    return s.AlterUserScramCredentialsResponse(0, users)


def handlers(zk: ZkClient) -> list[Handler]:
    return [DescribeUserScramCredentialsApi(zk), AlterUserScramCredentialsApi(zk)]
