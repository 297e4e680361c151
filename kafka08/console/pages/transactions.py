"""Open transactions, the partitions whose readers wait for them, and their abort."""

from __future__ import annotations

from typing import NamedTuple

from werkzeug.exceptions import Conflict, NotFound
from werkzeug.wrappers import Response

from kafka08.common import TopicPartition
from kafka08.console.forms import FieldError
from kafka08.console.shown import iso
from kafka08.console.site import Visit
from kafka08.console.transactions import Held, OpenTransaction, Transactions
from kafka08.errors import AdminOperationError

_SHOWN = 500
_SHOWN_PARTITIONS = 12


class TransactionRow(NamedTuple):
    """``places``: the numbers of its partitions by topic, but for those that are ``more``.
    ``holds``: messages for which readers wait."""

    transaction: OpenTransaction
    places: dict[str, list[int]]
    more: int
    holds: int


class Place(NamedTuple):
    """A partition of a transaction. ``start``: its first message there. ``held``: what readers
    wait for, if they wait for this transaction."""

    tp: TopicPartition
    start: int | None
    held: Held | None


def transactions(visit: Visit) -> Response:
    found = visit.site.observer.transactions
    lags = visit.site.observer.lags
    rows = [_row(found, each) for each in found.open[:_SHOWN]] if found else []
    held = list(found.held.items()) if found else []
    more = max(len(found.open) - _SHOWN, 0) if found else 0
    more_held = max(len(held) - _SHOWN, 0)
    data = {
        "is_served": found and found.served,
        "open": [_open_data(each) for each in rows] if found else None,
        "more_open": more,
        "held": [_held_data(*each) for each in held[:_SHOWN]] if found else None,
        "more_held": more_held,
        "silent_brokers": found and found.silent,
        "broker_errors": found and found.errors,
    }
    return visit.answer(
        "transactions.html",
        data,
        found=found,
        held=held[:_SHOWN],
        leaders={tp: log.leader for tp, log in lags.logs.items()} if lags else {},
        more=more,
        more_held=more_held,
        refresh=max(visit.site.config.lag_interval_ms // 1000, 1),
        rows=rows,
        state=visit.site.observer.state,
    )


def _row(found: Transactions, transaction: OpenTransaction) -> TransactionRow:
    places: dict[str, list[int]] = {}
    partitions = sorted(transaction.partitions)
    for topic, number in partitions[:_SHOWN_PARTITIONS]:
        places.setdefault(topic, []).append(number)
    return TransactionRow(
        transaction,
        places,
        max(len(partitions) - _SHOWN_PARTITIONS, 0),
        found.held_by(transaction),
    )


def _open_data(row: TransactionRow) -> dict[str, object]:
    found = row.transaction
    return {
        "transactional_id": found.id or None,
        "state": found.state,
        "is_late": found.is_late,
        "started": iso(found.start_ms),
        "timeout_ms": found.timeout_ms,
        "messages_held": row.holds,
        "partitions": [
            {"topic": topic, "partition": number}
            for topic, numbers in row.places.items()
            for number in numbers
        ],
        "more_partitions": row.more,
        "producer_id": found.producer_id,
        "producer_epoch": found.epoch,
        "coordinator": None if found.is_hanging else found.coordinator,
    }


def _held_data(tp: TopicPartition, held: Held) -> dict[str, object]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "last_stable_offset": held.stable,
        "high_watermark": held.end,
        "messages": held.messages,
        "producer_id": held.holder and held.holder.producer_id,
    }


def abort_form(visit: Visit) -> Response:
    """The transaction, and the form that aborts it."""
    key = visit.request.values.get("transaction", "")
    found = visit.site.observer.transactions
    transaction = _find(found, key)
    if found is None or transaction is None:
        raise NotFound("This transaction is not open any more.")
    _refuse_decided(transaction)
    places = []
    for tp in sorted(transaction.partitions):
        start, held = transaction.start(tp), found.held.get(tp)
        places.append(Place(tp, start, held if held and held.stable == start else None))
    return visit.render("abort_transaction.html", places=places, row=_row(found, transaction))


def abort(visit: Visit) -> Response:
    """If it is still the transaction that was shown."""
    form, observer = visit.request.form, visit.site.observer
    observer.collect()
    transaction = _find(observer.transactions, form.get("transaction", ""))
    if transaction is None or observer.lags is None:
        raise Conflict("This transaction has ended, or has changed since it was shown.")
    if form.get("typed") != transaction.name:
        raise FieldError("typed", f"Type {transaction.name} to abort the transaction.")
    _refuse_decided(transaction)
    leaders = {tp: log.leader for tp, log in observer.lags.logs.items()}
    visit.site.transactions.abort(transaction, leaders)
    before = {
        "state": transaction.state,
        "producer": [transaction.producer_id, transaction.epoch],
        "partitions": {str(tp): transaction.start(tp) for tp in transaction.partitions},
    }
    visit.record("abort transaction", transaction.name, before, None)
    observer.collect()
    return visit.done("/transactions", f"The transaction of {transaction.name} was aborted.")


def _find(found: Transactions | None, key: str) -> OpenTransaction | None:
    return next((each for each in found.open if each.key == key), None) if found else None


def _refuse_decided(transaction: OpenTransaction) -> None:
    if not transaction.may_be_aborted:
        raise AdminOperationError(
            f"The outcome of this transaction is decided ({transaction.state}). It ends as soon as "
            "its partitions have leaders."
        )
