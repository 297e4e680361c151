"""The names that differ between releases of PySpark, from 3.5 on: imported here, or replaced.

Other modules take them from here, and do not ask for a release.
"""
