"""The promises of ZooKeeper on which production code relies, as functions.

Each promise gets a Ground: an empty tree, on the real server or on the model of the simulation.
Where another session may read from a server that is behind, the promise has it ``sync`` first.
Promises show what every ensemble keeps, so none of them depends on how long something takes.
"""

from tests.zk.contract import nodes, sessions, transactions, uses, watches
from tests.zk.contract.ground import PROMISES

__all__ = ["PROMISES", "nodes", "sessions", "transactions", "uses", "watches"]
