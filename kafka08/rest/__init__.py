"""Confluent's REST API over our own clients: a process of its own, apart from brokers."""
