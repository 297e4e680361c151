"""Transactions in the load of a run: unmodified clients write them, readers see them whole."""
