"""Tools that print messages, and take them from standard input."""
