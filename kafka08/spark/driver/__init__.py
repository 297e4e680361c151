"""The parts of a DStream that work in its driver while it runs, and are in no checkpoint."""
