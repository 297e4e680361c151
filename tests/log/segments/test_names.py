"""The names of a segment's files."""

from __future__ import annotations

from pathlib import Path

from kafka08.log.segments.names import rebuilt_paths, remove_rebuilt


def test_rebuilt_entries_lie_beside_their_segment_and_go_alone(tmp_path: Path) -> None:
    log = tmp_path / "00000000000000000007.log"
    names = [Path(path).name for path in rebuilt_paths(str(log))]
    assert names == [f"{log.stem}.rebuilt", f"{log.stem}.rebuilt-index"]
    for name in (log.name, *names):
        (tmp_path / name).touch()
    remove_rebuilt(str(log))
    remove_rebuilt(str(log))  # there are none
    assert list(tmp_path.iterdir()) == [log]
