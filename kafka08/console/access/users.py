"""The page of SCRAM users, and the forms that set a password and delete a user.

A password goes from the form to ``scram_users``, and nowhere else: no page shows it again, no
error and no entry of the audit log has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from werkzeug.exceptions import Conflict, NotFound
from werkzeug.wrappers import Response

from kafka08.client import scram_users
from kafka08.client.requests import Call
from kafka08.client.scram_users import Password, ScramUsers
from kafka08.console.access.asking import Gap, asked, changing, needed
from kafka08.console.access.quota_values import is_name
from kafka08.console.forms import FieldError, whole
from kafka08.console.pages.cluster import state_of
from kafka08.console.pages.tables import MOST_ROWS, Column, fields, table
from kafka08.console.site import Visit
from kafka08.security.scram import HASHES, MAX_ITERATIONS, MIN_ITERATIONS

_WHAT = "users with passwords"
_ALL = "all"
_LOGIN = "SASL"


class UserRow(NamedTuple):
    """``iterations`` by mechanism."""

    name: str
    iterations: Mapping[str, int]

    @property
    def others(self) -> list[str]:
        """The mechanisms that are not known here."""
        return sorted(self.iterations.keys() - HASHES.keys())


_COLUMNS = (
    Column("name", "User", lambda row: row.name),
    Column(
        "scram_sha_256_iterations",
        "SCRAM-SHA-256, iterations",
        lambda row: row.iterations.get("SCRAM-SHA-256"),
        is_number=True,
    ),
    Column(
        "scram_sha_512_iterations",
        "SCRAM-SHA-512, iterations",
        lambda row: row.iterations.get("SCRAM-SHA-512"),
        is_number=True,
    ),
    Column("other_mechanisms", "Others", lambda row: row.others),
)


def users(visit: Visit) -> Response:
    """``?name=``: a part of the names."""
    name = visit.request.args.get("name", "").strip()
    found = asked(visit, _WHAT, scram_users.describe_all)
    gap = found if isinstance(found, Gap) else None
    answer = ScramUsers({}, {}) if isinstance(found, Gap) else found
    known = [UserRow(*each) for each in sorted(answer.known.items())]
    named = [each for each in known if name.lower() in each.name.lower()]
    rows = table(visit, named, _COLUMNS, most=MOST_ROWS)
    data = {
        "is_served": gap is None,
        "reason": gap and gap.kind,
        "logins": any(_LOGIN in text for each in state_of(visit).live for text in each.addresses),
        "users": [fields(row, _COLUMNS) for row in rows.rows],
        "more": rows.more,
        "total": len(known),
        "unreadable": [
            {"name": user, "reason": reason} for user, reason in sorted(answer.unreadable.items())
        ],
    }
    return visit.answer(
        "users.html",
        data,
        gap=gap,
        mechanisms=list(HASHES),
        name=name,
        rows=rows.rows,
        sort=visit.request.args.get("sort", ""),
        table=rows,
    )


def add_form(visit: Visit) -> Response:
    return _form(visit, "", {})


def password_form(visit: Visit) -> Response:
    user = visit.request.values.get("user", "")
    return _form(visit, user, _credentials(visit, user))


def _form(visit: Visit, user: str, now: Mapping[str, int]) -> Response:
    return visit.render(
        "password.html",
        least=MIN_ITERATIONS,
        mechanisms=[(each, each) for each in HASHES],
        most=MAX_ITERATIONS,
        now=now,
        user_name=user,
    )


def _credentials(visit: Visit, user: str) -> dict[str, int]:
    """Raises NotFound for a user without any, and what ``needed`` raises."""
    found = needed(visit, _WHAT, lambda call: scram_users.describe(call, user)) if user else {}
    if not found:
        raise NotFound("There is no such user.")
    return found


def add(visit: Visit) -> Response:
    """Refused for a user who has a password: a typing error must not change that of another."""
    user, mechanism, password = _entered(visit)
    with changing(visit, _WHAT) as call:
        if scram_users.describe(call, user):
            raise FieldError("user", f"user {user} is there already")
        _set(visit, call, user, mechanism, password)
    visit.record("add user", user, None, {mechanism: password.iterations})
    return visit.done("/users", f"User {user} was added.")


def set_password(visit: Visit) -> Response:
    user, mechanism, password = _entered(visit)
    with changing(visit, _WHAT) as call:
        before = scram_users.describe(call, user)
        if not before:
            raise Conflict(f"User {user} was deleted meanwhile.")
        _set(visit, call, user, mechanism, password)
    after = {**before, mechanism: password.iterations}
    visit.record("set password", user, before, after)
    return visit.done("/users", f"User {user} has a new password with {mechanism}.")


def _set(visit: Visit, call: Call, user: str, mechanism: str, password: Password) -> None:
    """The console answers others while it computes the hash, half a second at most."""
    made = visit.site.runtime.blocking(scram_users.salted, mechanism, password)
    scram_users.alter(call, user, {mechanism: made}, ())


def _entered(visit: Visit) -> tuple[str, str, Password]:
    """User, mechanism and password of a form. Raises FieldError, without the password."""
    form = visit.request.form
    user, mechanism = form.get("user", "").strip(), form.get("mechanism", "")
    if not user:
        raise FieldError("user", "the name is missing")
    if not is_name(user):
        raise FieldError("user", "names are printable, of at most 255 characters, not . or ..")
    if mechanism not in HASHES:
        raise FieldError("mechanism", f"{mechanism!r} is not one of {', '.join(HASHES)}")
    low, high = MIN_ITERATIONS, MAX_ITERATIONS
    iterations = whole(form.get("iterations", "").strip(), "iterations", low, high)
    password = form.get("password", "")
    if not password:
        raise FieldError("password", "it is empty")
    if form.get("again", "") != password:
        raise FieldError("again", "this is another password")
    return user, mechanism, Password(password, iterations)


def delete_form(visit: Visit) -> Response:
    user = visit.request.values.get("user", "")
    now = _credentials(visit, user)
    mechanisms = [(each, each) for each in now if each in HASHES]
    return visit.render(
        "delete_user.html", mechanisms=[(_ALL, "all that it has"), *mechanisms], user_name=user
    )


def delete(visit: Visit) -> Response:
    form = visit.request.form
    user, mechanism = form.get("user", ""), form.get("mechanism", "")
    if form.get("typed") != user or not user:
        raise FieldError("typed", f"Type the name of the user, {user}, to delete it.")
    with changing(visit, _WHAT) as call:
        before = scram_users.describe(call, user)
        gone = [each for each in before if each in HASHES and mechanism in (_ALL, each)]
        if mechanism not in (_ALL, *HASHES):
            raise FieldError("mechanism", f"{mechanism!r} is not one of {', '.join(before)}")
        if not gone:
            raise Conflict(f"User {user} has no such password any more.")
        scram_users.alter(call, user, {}, gone)
    after = {each: count for each, count in before.items() if each not in gone}
    visit.record("delete user" if not after else "delete password", user, before, after or None)
    told = f"User {user} was deleted." if not after else f"User {user} has no {gone[0]} any more."
    return visit.done("/users", told)
