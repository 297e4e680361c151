"""Machine code for the inner loops. Every module here is optional: its users have a plain twin."""
