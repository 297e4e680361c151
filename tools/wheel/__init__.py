"""Builds the packages that pip installs. Only the builds use it; a wheel has no copy of it."""
