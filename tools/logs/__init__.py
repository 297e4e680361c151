"""Tools that act on the files of a broker's logs."""
