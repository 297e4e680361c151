"""A member of a group as a process of its own: `python -m integration.group_member FILE ...`.

Prints the value of every message it gets. FILE is a consumer's properties; then `static` or
`white_list`, the number of streams, and the topics or the regex. TERM closes the connector.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading

from kafka08 import log4j
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.filters import Whitelist
from kafka08.consumer.stream import KafkaStream
from kafka08.settings import properties


def main(path: str, pattern: str, streams: int, topics: list[str]) -> None:
    faulthandler.register(signal.SIGUSR1)
    log4j.configure(tool=True)
    config = ConsumerConfig.from_properties(properties.load(path))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    output = threading.Lock()

    def read(stream: KafkaStream) -> None:
        for message in stream:
            with output:
                sys.stdout.write(message.value.decode() + "\n")
                sys.stdout.flush()

    with ConsumerConnector(config) as connector:
        if pattern == "static":
            made = connector.create_message_streams(dict.fromkeys(topics, streams))
            opened = [stream for listed in made.values() for stream in listed]
        else:
            opened = connector.create_message_streams_by_filter(Whitelist(topics[0]), streams)
        threads = [threading.Thread(target=read, args=[stream]) for stream in opened]
        for thread in threads:
            thread.start()
        stop.wait()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
