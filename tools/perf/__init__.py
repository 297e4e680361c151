"""Tools that measure how fast clients are."""
