"""Logins, principals and rules of access. Pure: no sockets, clocks or ZooKeeper."""
