from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import KafkaError
from tools.logs import log_dirs
from tools.logs.log_dirs import print_table
from tools.options import OptionParser


def test_table(capsys: Any) -> None:
    print_table(["NAME", "N"], [("a-long-name", 1), ("b", 1000)])
    assert capsys.readouterr().out == "NAME            N\na-long-name     1\nb            1000\n"


def test_segments(tmp_path: Path) -> None:
    names = [f"{7:020d}.log", f"{0:020d}.log"]
    for name in (*names, f"{0:020d}.index", f"{0:020d}.log.deleted", "x.log", "1.log"):
        (tmp_path / name).touch()
    assert log_dirs.segment_paths(str(tmp_path)) == [str(tmp_path / name) for name in sorted(names)]


def test_directories_of_a_file_or_of_options(tmp_path: Path) -> None:
    parser = OptionParser(None, log_dirs.OPTIONS)
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=7\nzookeeper.connect=z:1\nlog.dirs={tmp_path},{tmp_path}/b\n")
    (tmp_path / "c").mkdir()
    both = parser.parse(["--config", str(file), "--log-dirs", str(tmp_path / "c")])
    config = log_dirs.broker_config(parser, both)
    assert (config.broker_id, config.log_dirs) == (7, (str(tmp_path / "c"),))
    with pytest.raises(KafkaError, match=re.escape(f"There is no directory {tmp_path}/b")):
        log_dirs.broker_config(parser, parser.parse(["--config", str(file)]))
