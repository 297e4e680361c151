"""The storage model of tests/log/test_model.py at length, with new seeds in every run.

KAFKA08_MODEL_STEPS sets how many steps (default 100,000), KAFKA08_MODEL_SEED the first seed, to
repeat a failure: its report names the seed of the run that failed.
"""

from __future__ import annotations

import logging
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.log.storage_model import Driver

STEPS = int(os.environ.get("KAFKA08_MODEL_STEPS", "100000"))
SEED = int(os.environ.get("KAFKA08_MODEL_SEED") or random.randrange(1 << 40))
STEPS_PER_RUN = 250


@pytest.mark.slow
def test_logs_keep_their_promises_for_a_long_time(tmp_path: Path) -> None:
    print(f"KAFKA08_MODEL_SEED={SEED}")
    logging.disable(logging.CRITICAL)
    try:
        for seed in range(SEED, SEED + max(STEPS // STEPS_PER_RUN, 1)):
            directory = tmp_path / "run"
            directory.mkdir()
            Driver(directory, seed).run(STEPS_PER_RUN)
            shutil.rmtree(directory)
    finally:
        logging.disable(logging.NOTSET)
