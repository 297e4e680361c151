"""The controller's connections: each broker has a queue, a task and one request in flight.

Mirrors kafka.controller.ControllerChannelManager. A request that fails is sent again, on a new
connection after 300 ms, until it succeeds or its broker is removed. So brokers receive every
request at least once and in order. Does not interpret the requests.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from kafka08.common import TRACE, Broker
from kafka08.controller.batch import Outgoing
from kafka08.errors import ProtocolError
from kafka08.network.channel import BrokerConnection
from kafka08.runtime import Queue, Runtime, TaskHandle

logger = logging.getLogger("kafka.controller.RequestSendThread")
manager_logger = logging.getLogger("kafka.controller.ControllerChannelManager")
state_change_logger = logging.getLogger("state.change.logger")

RETRY_SECONDS = 0.3

Answered = Callable[[Outgoing, Any], None]


class BrokerSender:
    """The queue and task for one broker; ``answered`` receives each response with its request."""

    def __init__(
        self,
        runtime: Runtime,
        controller_id: int,
        broker: Broker,
        connection: BrokerConnection,
        answered: Answered,
    ) -> None:
        self.broker = broker
        self._id = controller_id
        self._connection = connection
        self._answered = answered
        self._stopping = runtime.event()
        # Not bounded: with a full queue, a broker that hangs would block the controller.
        self._queue: Queue[Outgoing | None] = runtime.queue()
        self._runtime = runtime
        self._task: TaskHandle | None = None

    def start(self) -> None:
        name = f"Controller-{self._id}-to-broker-{self.broker.id}-send-thread"
        self._task = self._runtime.spawn(name, self._run)

    def put(self, outgoing: Outgoing) -> None:
        self._queue.put(outgoing)

    def halt(self) -> None:
        """Stop sending. Does not wait, so any task may call it."""
        self._stopping.set()
        self._queue.put(None)
        self._connection.close()

    def join(self, timeout: float | None) -> bool:
        """Wait for the task; False if it did not end within ``timeout`` seconds."""
        return self._task is None or self._task.join(timeout)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                outgoing = self._queue.get()
                if outgoing is not None:
                    self._deliver(outgoing)
        finally:
            self._connection.close()

    def _deliver(self, outgoing: Outgoing) -> None:
        try:
            response = self._call_until_answered(outgoing)
            if response is None:
                return
            if state_change_logger.isEnabledFor(TRACE):
                state_change_logger.log(
                    TRACE,
                    "Controller %d epoch %d received response %s for a request sent to broker %s",
                    *(self._id, outgoing.request.controller_epoch, response, self.broker),
                )
            self._answered(outgoing, response)
        except Exception:
            # Not a network error: this request can never be sent, but later ones can.
            logger.exception(
                "Controller %d fails to send a request to broker %s", self._id, self.broker
            )
            self._connection.close()

    def _call_until_answered(self, outgoing: Outgoing) -> Any:
        """The response; None if the sender was halted first."""
        while not self._stopping.is_set():
            try:
                if not self._connection.connected:
                    self._connect()
                    continue
                self._connection.client_id = outgoing.client_id
                return self._connection.call(outgoing.request)
            except (OSError, ProtocolError) as error:
                self._connection.close()
                if self._stopping.is_set():
                    return None
                logger.warning(
                    "Controller %d epoch %d fails to send request %s to broker %s. "
                    "Reconnecting to broker. (%s)",
                    *(self._id, outgoing.request.controller_epoch),
                    *(type(outgoing.request).__name__, self.broker, error),
                )
                self._stopping.wait(RETRY_SECONDS)
        return None

    def _connect(self) -> None:
        self._connection.connect()
        logger.info(
            "Controller %d connected to %s for sending state change requests",
            *(self._id, self.broker),
        )


class ControllerChannelManager:
    """The senders of one term. ``connect(broker)`` creates a connection that is not open yet."""

    def __init__(
        self,
        runtime: Runtime,
        controller_id: int,
        connect: Callable[[Broker], BrokerConnection],
        answered: Answered,
    ) -> None:
        self._runtime = runtime
        self._id = controller_id
        self._connect = connect
        self._answered = answered
        self._senders: dict[int, BrokerSender] = {}
        self._halted: list[BrokerSender] = []

    def add_broker(self, broker: Broker) -> None:
        if broker.id not in self._senders:
            self._halted = [old for old in self._halted if not old.join(0)]
            sender = BrokerSender(
                self._runtime, self._id, broker, self._connect(broker), self._answered
            )
            self._senders[broker.id] = sender
            sender.start()

    def remove_broker(self, broker_id: int) -> None:
        """Drop a broker's connection and all requests queued for it."""
        sender = self._senders.pop(broker_id, None)
        if sender is not None:
            sender.halt()
            self._halted.append(sender)

    def send(self, requests: Iterable[Outgoing]) -> None:
        """Queue requests; those for unknown brokers are dropped."""
        dropped: Counter[tuple[str, int]] = Counter()
        for outgoing in requests:
            sender = self._senders.get(outgoing.broker_id)
            if sender is not None:
                sender.put(outgoing)
            else:
                dropped[type(outgoing.request).__name__, outgoing.broker_id] += 1
        # One log line per kind of request: a dead broker may have had thousands of replicas.
        for (name, broker_id), count in dropped.items():
            manager_logger.warning(
                "[Channel manager on controller %d]: Not sending request %s to broker %d, "
                "since it is offline (%d times).",
                *(self._id, name, broker_id, count),
            )

    def halt(self) -> None:
        """Stop every sender without waiting. No request is sent after this returns."""
        for broker_id in list(self._senders):
            self.remove_broker(broker_id)

    def join(self, timeout: float) -> None:
        """Wait for the halted senders, for at most ``timeout`` seconds in total.

        A sender may be in a connect that takes its whole timeout. It does not send afterwards.
        """
        deadline = self._runtime.clock.monotonic() + timeout
        for sender in self._halted:
            if not sender.join(max(0.0, deadline - self._runtime.clock.monotonic())):
                logger.warning("The sender to broker %s is slow to end", sender.broker)
        self._halted.clear()
