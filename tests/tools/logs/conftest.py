"""A data directory of sealed segments, made once a module and copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.tools.logs.scrubbing import make_log


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pristine") / "data"
    make_log(path)
    return path


@pytest.fixture
def data(pristine: Path, tmp_path: Path) -> Path:
    path = tmp_path / "data"
    shutil.copytree(pristine, path)
    return path
