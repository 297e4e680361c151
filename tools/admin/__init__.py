"""ZooKeeper, Connect and the logs that brokers write about themselves."""
