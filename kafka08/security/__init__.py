"""Who may connect and as whom: logins, principals, rules. Pure: no sockets, clocks or ZooKeeper."""
