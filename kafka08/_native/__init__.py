"""Machine code for the inner loops. Every module here is optional and has a Python twin."""
