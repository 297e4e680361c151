"""The parts that let jobs of Spark 1 and 2 run as they are, in driver and executors."""
