"""The page of quotas, and the forms that set and remove them, in ZooKeeper, as kafka-configs does.

A user's node has its credentials too: only its rates are read here, and the rest stays.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from werkzeug.exceptions import Conflict, NotFound
from werkzeug.wrappers import Response

from kafka08.console.access.asking import FAILED, Gap, originals
from kafka08.console.access.quota_values import (
    ALL_RATES,
    EACH,
    FIELDS,
    HINTS,
    NAMED,
    NOBODY,
    TITLES,
    QuotaHolder,
    entered_holder,
    entered_rate,
    holder_of,
    rate_text,
)
from kafka08.console.forms import FieldError
from kafka08.console.pages.tables import MOST_ROWS, Column, fields, table
from kafka08.console.site import Visit
from kafka08.security.limits import DEFAULT, Name
from zk import entities, entity_configs
from zk.client import ZkClient
from zk.errors import NoAuthError
from zk.znodes import MalformedNodeError, decode_topic_config

logger = logging.getLogger("kafka.console.Access")

_WHAT = "quotas"
_CHOICES = {
    "user": ((NOBODY, "of any user"), (EACH, "every other user"), (NAMED, "the user")),
    "client_id": (
        (NOBODY, "of any client id"),
        (EACH, "every other client id"),
        (NAMED, "the client id"),
    ),
    "ip": ((NOBODY, "no address"), (EACH, "every other address"), (NAMED, "the address")),
}


class QuotaRow(NamedTuple):
    """``rates``: as they are stored."""

    holder: QuotaHolder
    rates: Mapping[str, str]

    @property
    def link(self) -> str:
        return urlencode(self.holder.fields)

    def text(self, rate: str) -> str:
        return rate_text(rate, self.rates[rate]) if rate in self.rates else "-"


def _plain(name: Name) -> str | None:
    return entities.DEFAULT if name is DEFAULT else name


def _number(row: QuotaRow, rate: str) -> float | None:
    try:
        return float(row.rates[rate])
    except (KeyError, ValueError):
        return None


def _rate_column(rate: str) -> Column:
    return Column(rate, TITLES[rate], lambda row: _number(row, rate), True, HINTS[rate])


_COLUMNS = (
    Column("user", "User", lambda row: _plain(row.holder.entity.user)),
    Column("client_id", "Client id", lambda row: _plain(row.holder.entity.client)),
    Column("ip", "Address", lambda row: _plain(row.holder.address)),
    *map(_rate_column, ALL_RATES),
)


def quotas(visit: Visit) -> Response:
    """``?name=``: a part of the name of a user, client id or address."""
    name = visit.request.args.get("name", "").strip().lower()
    gap = originals(visit, _WHAT)
    known: list[QuotaRow] = []
    unreadable: list[str] = []
    try:
        known, unreadable = _read(visit.site.zk)
    except NoAuthError as error:
        gap = Gap(FAILED, f"ZooKeeper does not let the console read quotas: {error}.")
    named = [each for each in known if name in each.holder.text.lower()]
    rows = table(visit, named, _COLUMNS, most=MOST_ROWS)
    data = {
        "is_served": gap is None,
        "reason": gap and gap.kind,
        "quotas": [fields(row, _COLUMNS) for row in rows.rows],
        "more": rows.more,
        "total": len(known),
        "unreadable": unreadable,
    }
    return visit.answer(
        "quotas.html",
        data,
        gap=gap,
        name=name,
        rates=ALL_RATES,
        rows=rows.rows,
        sort=visit.request.args.get("sort", ""),
        table=rows,
    )


def _read(zk: ZkClient) -> tuple[list[QuotaRow], list[str]]:
    """All quotas, and the nodes that cannot be read."""
    users = entity_configs.names(zk, entities.USERS)
    below = [f"{user}/{entities.CLIENTS}" for user in users]
    clients = zk.children_of_all([entities.config_path(each) for each in below])
    paths = [*users, *entity_configs.names(zk, entities.CLIENTS)]
    paths += [f"{of}/{name}" for of, names in zip(below, clients, strict=True) for name in names]
    paths += entity_configs.names(zk, entities.IPS)
    found = zk.get_all([entities.config_path(each) for each in paths])
    rows, unreadable = [], []
    for path, node in zip(paths, found, strict=True):
        holder = holder_of(path)
        if node is None or holder is None:
            continue
        try:
            config = decode_topic_config(entities.config_path(path), node[0])
        except MalformedNodeError as error:
            logger.warning("%s", error)
            unreadable.append(holder.text)
            continue
        if rates := _rates(holder, config):
            rows.append(QuotaRow(holder, rates))
    return sorted(rows, key=lambda row: row.holder.path), unreadable


def _rates(holder: QuotaHolder, config: Mapping[str, str]) -> dict[str, str]:
    return {rate: config[rate] for rate in holder.rates if rate in config}


def _mark(rates: Mapping[str, str]) -> str:
    """Changes whenever the rates do."""
    return json.dumps(rates, sort_keys=True)


def set_form(visit: Visit) -> Response:
    """With a holder in the link: that one's quotas; else those of one that is still to be named."""
    given = visit.request.values
    holder = _named(given) if "mark" not in given or given["mark"] != _mark({}) else None
    now = _now(visit, holder) if holder else {}
    return visit.render(
        "set_quotas.html",
        choices=_CHOICES,
        given={name: given.get(name, "") for field in FIELDS for name in (field, f"{field}_is")},
        hints=HINTS,
        holder=holder,
        mark=visit.entered("mark", _mark(now)),
        names=FIELDS,
        now={rate: rate_text(rate, text) for rate, text in now.items()},
        rates=holder.rates if holder else ALL_RATES,
        titles=TITLES,
        values={rate: visit.entered(rate, now.get(rate, "")) for rate in ALL_RATES},
    )


def _named(given: Mapping[str, str]) -> QuotaHolder | None:
    """Whom a link names, None if it names nobody."""
    is_named = any(given.get(f"{field}_is") for field in FIELDS)
    return entered_holder(given) if is_named else None


def _now(visit: Visit, holder: QuotaHolder) -> dict[str, str]:
    return _rates(holder, entity_configs.fetch(visit.site.zk, holder.path))


def set_quotas(visit: Visit) -> Response:
    """Puts the rates of the form in place of those that it was shown with."""
    form = visit.request.form
    _refuse_originals(visit)
    holder = entered_holder(form)
    after = {rate: text for rate in ALL_RATES if (text := entered_rate(rate, form.get(rate, "")))}
    for rate in after:
        if rate not in holder.rates:
            raise FieldError(rate, f"{holder.text} cannot have this quota")
    mark = form.get("mark", "")
    if not after and mark == _mark({}):
        raise FieldError(holder.rates[0], "write one quota at least")
    before = _replaced(visit, holder, mark, after)
    visit.record("set quotas", holder.text, before, after)
    return visit.done("/quotas", f"The quotas of {holder.text} were set.")


def remove_form(visit: Visit) -> Response:
    holder = _named(visit.request.values)
    now = _now(visit, holder) if holder else {}
    if holder is None or not now:
        raise NotFound("There are no such quotas.")
    return visit.render("remove_quotas.html", mark=_mark(now), row=QuotaRow(holder, now))


def remove(visit: Visit) -> Response:
    _refuse_originals(visit)
    holder = entered_holder(visit.request.form)
    before = _replaced(visit, holder, visit.request.form.get("mark", ""), {})
    visit.record("remove quotas", holder.text, before, None)
    return visit.done("/quotas", f"The quotas of {holder.text} were removed.")


def _refuse_originals(visit: Visit) -> None:
    """Raises Conflict where no broker keeps quotas."""
    if gap := originals(visit, _WHAT):
        raise Conflict(gap.text)


def _replaced(
    visit: Visit, holder: QuotaHolder, mark: str, after: Mapping[str, str]
) -> dict[str, str]:
    """The rates that others took the place of. Raises Conflict if they are not those of
    ``mark``."""
    before: dict[str, str] = {}

    def change(present: dict[str, str]) -> dict[str, str]:
        before.clear()
        before.update(_rates(holder, present))
        if _mark(before) != mark:
            raise Conflict(
                f"The quotas of {holder.text} have changed since they were shown. Open them again."
            )
        kept = {key: text for key, text in present.items() if key not in holder.rates}
        return {**kept, **after}

    entity_configs.alter(visit.site.zk, holder.path, change)
    return before
