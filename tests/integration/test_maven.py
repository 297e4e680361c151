"""Fetched jars, from a Maven that fails as often as a test wants."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration import maven

MVN = """\
#!/bin/sh
echo try >> "{directory}/tries"
[ "$(wc -l < "{directory}/tries")" -gt {failures} ] || {{ echo "Unknown host"; exit 1; }}
for word in "$@"; do
  case $word in -DoutputDirectory=*) touch "${{word#*=}}/name-1.jar" ;; esac
done
"""


@pytest.mark.parametrize(("failures", "tries"), [(0, 1), (2, 3), (3, 3)])
def test_a_fetch_that_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, tries: int
) -> None:
    program = tmp_path / "mvn"
    program.write_text(MVN.format(directory=tmp_path, failures=failures))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(maven, "WAITS_S", (0, 0))
    target = tmp_path / "jars"
    reason = maven.fetch("group:name:1", target)
    assert (tmp_path / "tries").read_text().count("try") == tries
    if failures < tries:
        assert reason == ""
        assert (target / "name-1.jar").exists()
    else:
        assert "Unknown host" in reason
        assert not target.exists()
