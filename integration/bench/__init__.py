"""Ours and the original side by side: `python -m integration.bench`."""
