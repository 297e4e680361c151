"""Nothing acknowledged is lost: a cluster under load, faults drawn from a seed, and a checker."""
