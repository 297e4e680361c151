"""What a program that has settings of its own needs to declare them."""

from kafka08.settings.settings import Settings, setting

__all__ = ["Settings", "setting"]
