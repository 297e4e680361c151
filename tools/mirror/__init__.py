"""Tools that copy topics."""
