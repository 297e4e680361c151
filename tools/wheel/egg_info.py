"""The step of setuptools that describes a package: every script of ``bin/`` is a command."""

from __future__ import annotations

from setuptools.command.egg_info import egg_info

from tools.wheel import layout
from tools.wheel.build_py import ROOT


class EggInfo(egg_info):  # type: ignore[misc]
    """With the commands, of editable installs too."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.distribution.entry_points = {"console_scripts": layout.console_scripts(ROOT)}
