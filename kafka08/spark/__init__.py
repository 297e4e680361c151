"""Spark jobs over the broker's topics: ``dstream`` for the API of Spark 1 and 2, ``datasource``
for Structured Streaming, ``bulk`` for copies to files and back.

Beside what jobs import stand the modules that checkpoints of DStreams name, and these stay where
they are: ``direct``, ``receiver``, ``streams``, ``rdd``, ``values``, ``params`` and ``planner``.

``offsets``, ``planner`` and ``reader`` import nothing of Spark; drivers plan with the first two,
executors read with the third.
"""
