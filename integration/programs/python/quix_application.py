"""An application of Quix Streams; ``python_streams`` describes what it makes of its topics."""

import sys

from quixstreams import Application

address, name, state_directory = sys.argv[1:]
application = Application(
    broker_address=address,
    consumer_group=name,
    auto_offset_reset="earliest",
    state_dir=state_directory,
    commit_interval=0.3,
    consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000},
)
orders = application.topic(f"{name}-orders", key_deserializer="str", value_deserializer="str")
numbers = application.topic(f"{name}-numbers", key_serializer="str", value_serializer="str")


def add(words, state):
    found = sorted({*state.get("numbers", []), int(words[1])})
    state.set("numbers", found)
    return ",".join(map(str, found))


frame = application.dataframe(orders).apply(str.split)
frame = frame.group_by(lambda words: words[0], name="customer")
frame.apply(add, stateful=True).to_topic(numbers)
application.run()
