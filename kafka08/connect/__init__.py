"""Connectors: tasks that copy between topics and files, databases or tables, run by a worker.

``interface`` is what a connector subclasses, ``worker`` runs what properties files name.
Standalone, as org.apache.kafka.connect.cli.ConnectStandalone of later releases.
"""
