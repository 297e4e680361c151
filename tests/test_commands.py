from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08 import commands

ROOT = Path(__file__).parents[1]
SHOWS = '#!/bin/sh\nprintf "%s\\n" "$KAFKA08_PYTHON" "$$" "$@"\n'


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An installed package with one script."""
    made = tmp_path / "site packages" / "kafka08"
    (made / "_home" / "bin").mkdir(parents=True)
    (made / "__init__.py").touch()
    (made / "commands.py").write_bytes(Path(commands.__file__).read_bytes())
    script(made / "_home" / "bin" / "kafka-x.sh", SHOWS)
    return made


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def command(package: Path, name: str) -> Path:
    """As pip writes it, without its first line: that of a Python whose path has a blank is long."""
    made = package.parent.parent / name
    return script(
        made,
        f"import sys\nsys.path.insert(0, {str(package.parent)!r})\n"
        "from kafka08.commands import run_script\nsys.exit(run_script())\n",
    )


def run(path: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, path, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["kafka-x", "kafka-x.sh"])
def test_a_command_becomes_its_script(package: Path, name: str) -> None:
    words = [sys.executable, str(command(package, name)), "a b", ""]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        out, _ = process.communicate(timeout=60)
    assert out.splitlines() == [sys.executable, str(process.pid), "a b", ""]


def test_a_link_to_a_command(package: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(command(package, "kafka-x"))
    assert run(tmp_path / "mine", "a").stdout.splitlines()[2:] == ["a"]


def test_a_command_without_a_script_is_named(package: Path) -> None:
    done = run(command(package, "kafka-y"))
    assert done.returncode == 1
    assert done.stderr == f"{package}/_home/bin/kafka-y.sh: No such file or directory\n"


def test_a_closed_pipe_ends_a_script(package: Path) -> None:
    """Python ignores the signal; the shell that it becomes must not."""
    script(package / "_home/bin/kafka-x.sh", "#!/bin/sh\ngrep SigIgn /proc/self/status\n")
    ignored = int(run(command(package, "kafka-x")).stdout.split()[1], 16)
    assert not ignored & 1 << 12  # SIGPIPE is number 13


def test_modules_for_another_python_are_not_imported(package: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "python2"
    theirs.mkdir()
    for name in ("typing", "subprocess", "gevent"):
        (theirs / f"{name}.py").write_text("print 'for Python 2'\n")
    done = run(command(package, "kafka-x"), "a", PYTHONPATH=str(theirs))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_home_of_a_checkout_is_its_top(capsys: pytest.CaptureFixture[str]) -> None:
    commands.print_home()
    assert capsys.readouterr().out == f"{ROOT}\n"
    assert Path(commands.script_of("/x/kafka-topics")) == ROOT / "bin" / "kafka-topics.sh"
