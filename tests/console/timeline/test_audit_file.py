"""kafka08.console.timeline.audit_file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka08.console.timeline import audit_file
from kafka08.console.timeline.audit_file import read_back


def line(action: str = "delete topic", target: str = "t", user: str = "ann", **more: object) -> str:
    values = {"time": "2026-11-29 17:00:00 UTC", "user": user, "from": "10.0.0.1"}
    return json.dumps({**values, "action": action, "target": target, **more}) + "\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 60), max_size=250), st.integers(1, 200), st.integers(100, 1000))
def test_every_entry_is_found_once(
    tmp_path: Path, lengths: list[int], chunk: int, most: int
) -> None:
    path = tmp_path / "audit.log"
    names = [f"{number}{'x' * length}" for number, length in enumerate(lengths)]
    path.write_text("".join(line(target=name) for name in names), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_file, "_CHUNK", chunk)
        patch.setattr(audit_file, "MOST_BYTES", most + 200)
        found: list[str] = []
        end: int | None = None
        while end != 0:
            piece = read_back(str(path), end, [])
            found += [each.target for each in piece.entries]
            assert end is None or piece.next < end
            end = piece.next
    assert found == names[::-1]
