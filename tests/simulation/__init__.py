"""A whole cluster in one process: production code on simulated time, network and disks.

A seed decides everything that is left to chance, so that it always gives the same run.
"""
