"""The build backend that pyproject.toml names: setuptools, with mypyc where it can compile."""

from __future__ import annotations

import os
from collections.abc import Mapping

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from kafka08 import builds, compiled

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

MYPY = "mypy>=1.13"


def get_requires_for_build_wheel(config_settings: Mapping[str, str] | None = None) -> list[str]:
    """With mypy, unless there is no compiler or machine code is not wanted."""
    needed: list[str] = build_meta.get_requires_for_build_wheel(config_settings)
    if os.environ.get(builds.SWITCH) or compiled.obstacle():
        return needed
    return [*needed, MYPY]
