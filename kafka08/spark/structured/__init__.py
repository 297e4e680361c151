"""The source and the sink of Structured Streaming, which ``datasource`` gives to Spark."""
