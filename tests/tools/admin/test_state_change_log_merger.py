from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import KafkaError
from tools.admin.state_change_log_merger import main, millis
from tools.options import UsageError

DAY = "2015-03-01 10:00:"
ONE = f"""\
[{DAY}00,001] TRACE Broker 0 received LeaderAndIsr for partition [t,0] (state.change.logger)
[{DAY}00,005] DEBUG Broker 0 leads [u,1] (state.change.logger)
java.lang.Exception: [t,0] without a date
[{DAY}01,000] TRACE no partition here (state.change.logger)
[{DAY}02,000] TRACE Broker 0 cached for [t, 2] and [u,9] (state.change.logger)
"""
TWO = f"""\
[{DAY}00,003] TRACE Controller 1 epoch 4 changed partition [t,10] (state.change.logger)
[{DAY}01,500] TRACE Broker 1 caf\xe9 [t,0] (state.change.logger)
"""


@pytest.fixture
def logs(tmp_path: Path) -> str:
    (tmp_path / "state-change.log").write_bytes(ONE.encode())
    (tmp_path / "state-change.log.2015-03-01-10").write_bytes(TWO.encode("latin-1"))
    (tmp_path / "server.log").write_text(f"[{DAY}00,000] INFO [t,0]\n")
    return ",".join(str(tmp_path / name) for name in ("state-change.log",) * 1) + (
        f",{tmp_path / 'state-change.log.2015-03-01-10'}"
    )


def run(capfdbinary: Any, *words: str) -> list[str]:
    assert main(list(words)) == 0
    out, err = capfdbinary.readouterr()
    assert not err
    return [line[18:24].decode() for line in out.splitlines()]


def test_lines_come_by_date(logs: str, capfdbinary: Any) -> None:
    assert run(capfdbinary, "--logs", logs) == ["00,001", "00,003", "00,005", "01,500", "02,000"]


def test_bytes_pass_as_they_are(logs: str, capfdbinary: Any) -> None:
    main(["--logs", logs])
    out = capfdbinary.readouterr().out
    wanted = (ONE.encode() + TWO.encode("latin-1")).splitlines()
    assert sorted(out.splitlines()) == sorted(
        line for line in wanted if line.startswith(b"[") and b"no part" not in line
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--topic", "u"], ["00,005"]),  # only the first partition of a line counts
        (["--topic", "t", "--partitions", "10,2"], ["00,003", "02,000"]),
        (["--start-time", f"{DAY}00,005"], ["00,005", "01,500", "02,000"]),
        (["--end-time", f'"{DAY}00,003"'], ["00,001", "00,003"]),
        (["--start-time", "2015-02-28 34:0:1,0"], ["01,500", "02,000"]),
        (["--topic", "none"], []),
    ],
)
def test_filters(logs: str, capfdbinary: Any, words: list[str], expected: list[str]) -> None:
    assert run(capfdbinary, "--logs", logs, *words) == expected


def test_files_by_a_regular_expression(
    logs: str, tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    regex = f"{tmp_path}/state-change.log*"
    assert len(run(capfdbinary, "--logs-regex", regex)) == 5
    monkeypatch.chdir(tmp_path)
    assert run(capfdbinary, "--logs-regex", r"2015.*-10$") == ["00,003", "01,500"]
    with pytest.raises(KafkaError, match="nowhere"):
        main(["--logs-regex", "/nowhere/x"])


def test_refusals(logs: str) -> None:
    with pytest.raises(UsageError, match="Merge the state change logs"):
        main([])
    both = ["--logs", logs, "--logs-regex", "x"]
    for words in (["--topic", "t"], both):
        with pytest.raises(UsageError, match=r"exactly one of the two options \"\[logs\]\""):
            main(words)
    with pytest.raises(UsageError, match="needs to be provided an argument"):
        main(["--logs", logs, "--partitions", "0"])
    with pytest.raises(UsageError, match="contains repeated entries: 0,1\n"):
        main(["--logs", logs, "--topic", "t", "--partitions", "0,1,2,1,0"])
    with pytest.raises(KafkaError, match='For input string: "x"'):
        main(["--logs", logs, "--topic", "t", "--partitions", "x"])
    with pytest.raises(KafkaError, match='Unparseable date: "2015-03-01"'):
        main(["--logs", logs, "--end-time", "2015-03-01"])
    with pytest.raises(FileNotFoundError):
        main(["--logs", "/nowhere/state-change.log"])


def test_dates_are_lenient() -> None:
    assert millis("0000-00-00 00:00:00,000") < millis("1970-01-01 00:00:00,000")
    assert millis("1970-01-02 00:00:00,000") - millis("1970-01-01 00:00:00,000") == 86_400_000
    assert millis("2016-03-01 00:00:00,000") - millis("2016-02-28 00:00:00,000") == 2 * 86_400_000
    assert millis("1900-03-01 00:00:00,000") - millis("1900-02-28 00:00:00,000") == 86_400_000
    assert millis("2015-13-01 00:00:00,000") == millis("2016-01-01 00:00:00,000")
    assert millis("2015-03-00 00:00:00,000") == millis("2015-02-28 00:00:00,000")
