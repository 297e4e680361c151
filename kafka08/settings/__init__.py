"""The means to declare the settings of any program."""

from kafka08.settings.settings import Settings, setting

__all__ = ["Settings", "setting"]
