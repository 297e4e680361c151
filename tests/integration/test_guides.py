"""Guides as scripts: which blocks are steps, and when an output is as promised."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from integration.guides import Step, matches, script, steps

GUIDE = """\
# A guide

```console
not run
```

```python title="hello.py"
print("hello")
```

```sh
python3 hello.py
number=$((3 + 4))
```

```text
hello
```

```sh
echo $number
```
"""


def test_the_steps_of_a_guide() -> None:
    first = Step('print("hello")\n', 7, "hello.py")
    second = Step("python3 hello.py\nnumber=$((3 + 4))\n", 11, None, "hello\n")
    assert steps(GUIDE) == [first, second, Step("echo $number\n", 20)]


def test_variables_outlive_a_step_whose_output_is_kept(tmp_path: Path) -> None:
    text = script(steps(GUIDE), tmp_path)
    done = subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "7\n")
    assert (tmp_path / "1").read_text() == "hello\n"
    assert "+ number=7" in done.stderr


def test_a_step_that_fails_ends_the_script(tmp_path: Path) -> None:
    guide = "```sh\nfalse\necho further\n```\n```text\n```\n"
    done = subprocess.run(["bash", "-c", script(steps(guide), tmp_path)], cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert (tmp_path / "0").read_text() == ""


@pytest.mark.parametrize(
    "guide",
    [
        "```text\nout\n```\n",
        "```sh\ntrue\n```\nMore text.\n\n```text\nout\n```\n",
        "```sh\ntrue\n```\n\n```text\na\n```\n\n```text\nb\n```\n",
        '```python title="a.py"\n```\n\n```text\nout\n```\n',
    ],
)
def test_an_output_must_follow_its_commands(guide: str) -> None:
    with pytest.raises(ValueError, match=r"line \d+: an output without commands before it"):
        steps(guide)


@pytest.mark.parametrize(
    ("promised", "printed"),
    [
        ("", ""),
        ("", "\n"),
        ("a  b\n", "a\tb\n\n"),
        ("offset ... of t\n", "offset 17 of t\n"),
        ("a\n...\nz\n", "a\nz\n"),
        ("a\n...\nz\n", "a\nb\nc\nz\n"),
        ("...\n", ""),
    ],
)
def test_outputs_that_agree(promised: str, printed: str) -> None:
    assert matches(promised, printed)


@pytest.mark.parametrize(
    ("promised", "printed"),
    [
        ("", "warning\n"),
        ("a\n", ""),
        ("a\n", "a\nb\n"),
        ("a.c\n", "abc\n"),
        ("offset ... of t\n", "offset 17\n of t\n"),
        ("a\n...\nz\n", "a\nb\n"),
    ],
)
def test_outputs_that_differ(promised: str, printed: str) -> None:
    assert not matches(promised, printed)


def test_what_changes_from_run_to_run_is_not_compared() -> None:
    shown = "read 5 in 12 ms\n"
    assert matches(shown, "read 5 in 7 ms\n", r"\d+ ms")
    assert not matches(shown, "read 5 in 7 ms\n")
    assert not matches(shown, "read 6 in 7 ms\n", r"\d+ ms")
    assert not matches(shown, "read 5 in ms\n", r"\d+ ms")
