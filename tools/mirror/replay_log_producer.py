"""kafka-replay-log-producer: copies the messages of a topic to another topic.

Mirrors kafka.tools.ReplayLogProducer, which ends after ten seconds without a message. Unlike there
--outputtopic is checked at the start, and a record that fails later is logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from itertools import islice

from kafka08.client.security import ClientSecurity
from kafka08.consumer.config import SMALLEST, ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.stream import KafkaStream
from kafka08.message.consumed import Message
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from tools import admin_command
from tools.brokers import broker_list
from tools.groups.nodes import delete_group
from tools.options import Arguments, OptionParser, parse_key_values
from tools.perf.perf_options import run_threads
from tools.shutdown import at_end, hold

logger = logging.getLogger("kafka.tools.ReplayLogProducer$")

GROUP = "replay-log-producer"
IDLE_MS = 10000
AFTER_DELETE_S = 0.5


class Replay:
    """One thread: from a stream through a producer of its own."""

    def __init__(self, stream: KafkaStream, settings: dict[str, str], args: Arguments) -> None:
        self.sent = 0
        self._stream = stream
        self._producer = KafkaProducer(settings)
        self._topic: str = args.value("outputtopic")
        self._sync = args.has("sync")
        limit = args.value("messages")
        self._limit: int | None = limit if limit >= 0 else None

    def run(self) -> None:
        logger.info("Starting consumer thread..")
        with at_end(self._producer.close):
            try:
                for message in islice(self._stream, self._limit):
                    self._send(message)
            except ConsumerTimeoutError:
                logger.error("consumer thread timing out")
            except Exception:
                hold()
                logger.exception("consumer thread failed")
        logger.info("Sent %d messages", self.sent)

    def _send(self, message: Message) -> None:
        try:
            future = self._producer.send(
                self._topic, message.value, message.key, callback=_log_error
            )
            if self._sync:
                future.result()
            self.sent += 1
        except Exception:
            hold()
            logger.exception("Skipping this message")


def _log_error(_metadata: object, error: BaseException | None) -> None:
    if error is not None:
        logger.error("A message was not replayed: %s", error)


PARSER = OptionParser(
    None,
    """
--zookeeper <zookeeper url>  REQUIRED: Where ZooKeeper is: host:port, several separated by commas, a
    chroot at the end. (default: 127.0.0.1:2181)
--broker-list <hostname:port>  REQUIRED: The brokers to ask for metadata.
--inputtopic <input-topic>  REQUIRED: The topic to read.
--outputtopic <output-topic>  REQUIRED: The topic to write to.
--messages <Integer: count>  How many messages each thread replays; -1 for all. (default: -1)
--threads <Integer: threads>  How many threads replay. (default: 1)
--reporting-interval <Integer: size>  Accepted, unused. (default: 5000)
--property <producer properties>  A setting of the producer, key=value.
--sync  Wait for each message's acknowledgement.
""",
    later=admin_command.COMMAND_CONFIG + admin_command.ZK_TLS_CONFIG_FILE.lstrip(),
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "broker-list", "inputtopic")
    broker_list(PARSER, args.value("broker-list"))
    PARSER.check_required(args, "outputtopic")
    given = args.properties("command-config")
    settings = {**given, **parse_key_values(args.values("property"))}
    settings["bootstrap.servers"] = args.value("broker-list")
    settings = KafkaProducerConfig.known(settings)
    config = _consumer_config(args, given)
    delete_group(config.zookeeper_connect, GROUP, config)
    time.sleep(AFTER_DELETE_S)
    topic = args.value("inputtopic")
    connector = ConsumerConnector(config)
    with at_end(connector.close):
        streams = connector.create_message_streams({topic: args.value("threads")})[topic]
        replays = [Replay(stream, settings, args) for stream in streams]
        run_threads(
            [replay.run for replay in replays],
            lambda: sum(replay.sent for replay in replays),
            None,
            topic,
        )
    return 0


def _consumer_config(args: Arguments, given: Mapping[str, str]) -> ConsumerConfig:
    security = {**vars(ClientSecurity.from_properties(given))}
    security |= vars(admin_command.zookeeper_config(args, given))
    return ConsumerConfig(
        **security,
        group_id=GROUP,
        zookeeper_connect=args.value("zookeeper"),
        consumer_timeout_ms=IDLE_MS,
        auto_offset_reset=SMALLEST,
        fetch_message_max_bytes=1024 * 1024,
        socket_receive_buffer_bytes=2 * 1024 * 1024,
    )
