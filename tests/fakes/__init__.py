"""Stand-ins that all tests share: a clock, a runtime, a ZooKeeper, and a cluster of brokers."""
