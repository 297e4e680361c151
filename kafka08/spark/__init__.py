"""Spark jobs over the broker's topics: ``dstream`` for the API of Spark 1 and 2, ``datasource``
for Structured Streaming, connectors on top.

``offsets``, ``planner`` and ``reader`` import nothing of Spark; drivers plan with the first two,
executors read with the third.
"""
