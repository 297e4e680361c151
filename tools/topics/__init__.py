"""Tools that act on topics and their partitions."""
