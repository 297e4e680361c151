"""An application of faust; ``python_streams`` describes what it makes of its topics."""

import sys

import faust

address, name, state_directory = sys.argv[1:]
application = faust.App(
    name,
    broker=f"kafka://{address}",
    datadir=state_directory,
    store="memory://",
    topic_partitions=2,
    topic_replication_factor=1,
    broker_session_timeout=6,
    broker_heartbeat_interval=1,
    broker_commit_interval=0.3,
    web_enabled=False,
)
text = {"key_type": str, "value_type": str, "key_serializer": "raw", "value_serializer": "raw"}
orders = application.topic(f"{name}-orders", **text)
results = application.topic(f"{name}-numbers", **text)
numbers = application.Table("numbers", default=list)


def customer(value):
    return value.split()[0]


@application.agent(orders)
async def collect(stream):
    async for value in stream.group_by(customer, name="customer"):
        key, number = value.split()
        numbers[key] = sorted({*numbers[key], int(number)})
        await results.send(key=key, value=",".join(map(str, numbers[key])))


sys.argv[1:] = ["worker", "--loglevel=info", "--without-web"]
application.main()
