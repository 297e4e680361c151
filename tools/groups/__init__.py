"""Tools that act on consumer groups and their offsets."""
