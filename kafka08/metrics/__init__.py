"""Counts, times and gauges, and their names in JMX and Prometheus."""
