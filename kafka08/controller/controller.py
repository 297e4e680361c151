"""The controller module of every broker: election, and the one loop that owns all state.

Mirrors kafka.controller.KafkaController with kafka.server.ZookeeperLeaderElector. Watches,
answers, timers and callers only enqueue; one task handles the events in turn.
``active_controller`` does the work. An error that may leave an operation half done (ZooKeeper does
not answer within a call's limit, the epoch is lost) ends the term. The next one reads all state
again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from kafka08.common import Broker, TopicPartition
from kafka08.controller import events, log_ends
from kafka08.controller.active_controller import ActiveController, Peers
from kafka08.controller.context import ControllerContext, ControllerStats
from kafka08.controller.log_ends import FetchLogEnds
from kafka08.errors import KafkaError, StaleControllerEpochError, UnknownError
from kafka08.network.channel import BrokerConnection, Channel, Connectors
from kafka08.runtime import Empty, Queue, Runtime, TaskHandle
from kafka08.settings.broker import BrokerConfig
from zk import election
from zk.client import ZkClient
from zk.errors import SessionExpiredError, ZkClosedError, ZkConnectionError
from zk.watches import WatchSet

logger = logging.getLogger("kafka.controller.KafkaController")
elector_logger = logging.getLogger("kafka.server.ZookeeperLeaderElector")
session_logger = logging.getLogger("kafka.controller.KafkaController$SessionExpirationListener")

RETRY_SECONDS = 1.0
JOIN_SECONDS = 1.0
STOP_SECONDS = 30.0


class _Reply:
    """Passes an answer from the loop to a waiting task."""

    def __init__(self, runtime: Runtime) -> None:
        self._done = runtime.event()
        self._partitions: list[TopicPartition] = []
        self._error: KafkaError | None = None

    def give(self, partitions: list[TopicPartition]) -> None:
        self._partitions = partitions
        self._done.set()

    def fail(self, error: KafkaError) -> None:
        """Answer with an error, unless it is answered already."""
        if not self._done.is_set():
            self._error = error
            self._done.set()

    def wait(self, timeout: float) -> list[TopicPartition]:
        if not self._done.wait(timeout):
            raise UnknownError("The controller did not answer in time")
        if self._error is not None:
            raise self._error
        return self._partitions


class Controller:
    """One per broker. ``start``, ``stop``; the server reports ended sessions.

    ``connect(broker)`` creates connections. ``fetch_log_ends(broker, partitions)`` asks a broker
    for the log ends of its replicas, so that an unclean election chooses the longest log.
    ``connectors`` connect both to brokers, by default to host and port of their registrations.
    """

    def __init__(
        self,
        config: BrokerConfig,
        zk: ZkClient,
        runtime: Runtime,
        *,
        broker: Broker,
        connect: Callable[[Broker], BrokerConnection] | None = None,
        fetch_log_ends: FetchLogEnds | None = None,
        connectors: Connectors | None = None,
    ) -> None:
        self._connectors = connectors or (lambda broker_id: runtime)
        self.broker = broker
        self.controller_id = election.NO_CONTROLLER
        self._config = config
        self._zk = zk
        self._runtime = runtime
        self._peers = Peers(connect or self._channel, fetch_log_ends or self._log_ends)
        self._prefix = f"[Controller {broker.id}]: "
        self._queue: Queue[events.ControllerEvent] = runtime.queue()
        self._election_watches = WatchSet(zk, self._queue.put)
        self._term_watches = WatchSet(zk, self._queue.put)
        self.stats = ControllerStats()
        self._active: ActiveController | None = None
        self._terms = 0
        self._sessions_lost = 0
        self._sessions_handled = 0
        self._stopping = runtime.event()
        # Set when a wait for ZooKeeper must end.
        self._wake = runtime.event()
        self._retry = False
        self._finished = False
        self._task: TaskHandle | None = None

    # Called by the server

    def start(self) -> None:
        """Begin to take part in elections. Does not wait for the first."""
        logger.info("%sController starting up", self._prefix)
        self._queue.put(events.Startup())
        self._task = self._runtime.spawn(f"controller-{self.broker.id}", self._run)
        logger.info("%sController startup complete", self._prefix)

    def stop(self) -> None:
        """Resign, delete /controller if it is ours, end every task. May be repeated."""
        self._stopping.set()
        self._wake.set()
        self._queue.put(events.Stop())
        if self._task is not None and not self._task.join(STOP_SECONDS):
            logger.warning("%sThe controller is slow to stop", self._prefix)

    @property
    def epoch(self) -> int:
        """The epoch of our term; 0 if this broker is not the controller."""
        active = self._active
        return 0 if active is None else active.context.epoch

    @property
    def context(self) -> ControllerContext | None:
        """The view of our term; None if this broker is not the controller."""
        active = self._active
        return None if active is None or not active.context.epoch else active.context

    def session_expired(self) -> None:
        """Our ZooKeeper session ended and a new one has replaced it. Only enqueues.

        From now on this broker sends no more requests as controller, and does not handle the
        events in the queue.
        """
        self._sessions_lost += 1
        active = self._active
        if active is not None:
            active.halt()
        self._wake.set()
        self._queue.put(events.SessionExpired())

    def controlled_shutdown(self, broker_id: int) -> list[TopicPartition]:
        """Move leadership away from a broker that is about to stop; returns what it still leads.

        Called on a request's task, which waits. Raises KafkaError with code -1 if this broker is
        not the controller, the broker is unknown, or the answer takes too long.
        """
        if self._finished:
            raise _moved()
        reply = _Reply(self._runtime)
        self._queue.put(events.ControlledShutdown(broker_id, reply))
        return reply.wait(self._config.controller_socket_timeout_ms / 1000)

    def _channel(self, broker: Broker) -> BrokerConnection:
        return Channel(
            broker.host,
            broker.port,
            timeout_ms=self._config.controller_socket_timeout_ms,
            runtime=self._connectors(broker.id),
        )

    def _log_ends(
        self, broker: Broker, partitions: Sequence[TopicPartition], time: int
    ) -> Mapping[TopicPartition, int]:
        return log_ends.fetch_log_ends(self._connectors(broker.id), broker, partitions, time)

    # The loop

    def _run(self) -> None:
        while not self._finished:
            try:
                event = self._queue.get(timeout=RETRY_SECONDS if self._retry else None)
            except Empty:
                event = events.ControllerChanged()
            self.step(event)

    def step(self, event: events.ControllerEvent) -> None:
        """Take one event."""
        if isinstance(event, events.Stop):
            self._shut_down()
        elif isinstance(event, events.SessionExpired):
            self._sessions_handled += 1
            self._resign()
            if not self._fenced:
                session_logger.info(
                    "[SessionExpirationListener on %d], ZK expired; shut down all controller "
                    "components and try to re-elect",
                    self.broker.id,
                )
                self._guarded(events.ControllerChanged())
        elif self._await_zookeeper():
            self._guarded(event)
        else:
            self._refuse(event)

    @property
    def _fenced(self) -> bool:
        """Between the end of a session and its event this broker must not act as controller."""
        return self._sessions_lost != self._sessions_handled or self._stopping.is_set()

    def _await_zookeeper(self) -> bool:
        """Hold the event until ZooKeeper is connected; False if the event has become void.

        A lost connection alone does not end a term.
        """
        while not self._fenced and not self._zk.connected:
            if self._wake.wait(RETRY_SECONDS):
                self._wake.clear()
        return not self._fenced

    def _refuse(self, event: events.ControllerEvent) -> None:
        if isinstance(event, events.ControlledShutdown):
            event.reply.fail(_moved())

    def _guarded(self, event: events.ControllerEvent) -> None:
        """Handle ``event``; end the term if the outcome is uncertain."""
        try:
            self._handle(event)
        except SessionExpiredError:
            # The event for it follows.
            self._resign()
        except ZkClosedError:
            self._resign()
            logger.info("%sZooKeeper client closed; the controller stops working", self._prefix)
        except ZkConnectionError as error:
            logger.warning("%sNo answer from ZooKeeper (%s); resigning", self._prefix, error)
            self._resign()
            self._retry = True
        except StaleControllerEpochError as error:
            logger.warning("%s%s", self._prefix, error)
            self._resign()
            self._retry = True
        except Exception as error:
            logger.error(
                "%sError while handling %s: %s",
                *(self._prefix, type(event).__name__, error),
                exc_info=not isinstance(error, KafkaError),
            )
            self._retry = self._active is None
        finally:
            # A reply that was given already is not replaced.
            self._refuse(event)

    def _handle(self, event: events.ControllerEvent) -> None:
        if isinstance(event, events.ControlledShutdown):
            self._controlled_shutdown(event)
        elif isinstance(event, events.Startup | events.ControllerChanged):
            self._elect()
        elif self._active is not None and isinstance(event, events.TermEvent):
            self._active.handle(event)
        if self._active is not None and self._queue.empty():
            self._active.work_on_deletions()

    def _controlled_shutdown(self, event: events.ControlledShutdown) -> None:
        if self._active is None:
            event.reply.fail(_moved())
            return
        try:
            event.reply.give(self._active.controlled_shutdown(event.broker_id))
        except UnknownError as error:
            event.reply.fail(error)

    # Election

    def _elect(self) -> None:
        """Read who is controller, and stand for election if there is none. Arms the watch first."""
        self._retry = False
        election.watch_controller(self._election_watches, events.ControllerChanged())
        outcome = election.read_controller(self._zk)
        # One read decides both. If the node vanished between two reads, it would be created again
        # for a term that another broker may have succeeded meanwhile.
        if self._active is not None and not outcome.is_ours:
            self._resign()
        if outcome.leader == election.NO_CONTROLLER:
            outcome = election.elect(self._zk, self.broker.id, self._runtime.clock)
        if outcome.leader not in (self.controller_id, election.NO_CONTROLLER):
            elector_logger.info("New leader is %d", outcome.leader)
        self.controller_id = outcome.leader
        if outcome.is_ours and self._active is None:
            self._fail_over()

    def _fail_over(self) -> None:
        """Begin a term. If that fails, wait a moment so that another broker can be elected."""
        logger.info(
            "%sBroker %d starting become controller state transition",
            *(self._prefix, self.broker.id),
        )
        try:
            epoch = election.bump_epoch(self._zk)
            logger.info(
                "%sController %d incremented epoch to %d",
                *(self._prefix, self.broker.id, epoch.epoch),
            )
            self._terms += 1
            self._active = ActiveController(
                self._terms,
                ControllerContext(self.stats, epoch),
                self._config,
                self._zk,
                self._term_watches,
                self._runtime,
                self._peers,
                self._queue.put,
            )
            self._active.start()
        except (SessionExpiredError, ZkConnectionError, StaleControllerEpochError):
            raise
        except Exception as error:
            elector_logger.error(
                "Error while electing or becoming leader on broker %d: %s",
                *(self.broker.id, error),
                exc_info=not isinstance(error, KafkaError),
            )
            self._resign()
            election.resign(self._zk)
            self._stopping.wait(RETRY_SECONDS)
            self._retry = True

    def _resign(self) -> None:
        """End this broker's term locally. May be repeated."""
        active, self._active = self._active, None
        if active is not None:
            active.stop()
            # Halted senders do not send, so a slow one need not delay the election.
            active.join(JOIN_SECONDS)
            logger.info("%sController resigned", self._prefix)

    def _shut_down(self) -> None:
        active = self._active
        self._finished = True
        self._resign()
        self._election_watches.clear()
        self._term_watches.clear()
        try:
            if self._zk.connected:
                election.resign(self._zk, None if active is None else active.context.fence)
        except KafkaError as error:
            logger.info(
                "%s/controller was not deleted; it vanishes with the session: %s",
                *(self._prefix, error),
            )
        while not self._queue.empty():
            self._refuse(self._queue.get())
        logger.info("%sController shutdown complete", self._prefix)


def _moved() -> KafkaError:
    return UnknownError("Controller moved to another broker. Aborting controlled shutdown")
