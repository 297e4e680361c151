"""kafka08.console.pages.audit_log."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from kafka08.console.timeline.audit_file import MOST_BYTES, PAGE, read_back
from tests.console.scene import ConsoleScene, text_of
from tests.console.timeline.test_audit_file import line


def scene_with(path: Path | str, *lines: str) -> ConsoleScene:
    if lines:
        Path(path).write_text("".join(lines), encoding="utf-8")
    scene = ConsoleScene(read_only=False, audit_file=str(path))
    scene.look()
    return scene


def test_a_change_is_shown_the_newest_first(tmp_path: Path) -> None:
    scene = scene_with(tmp_path / "audit.log")
    assert "Nothing has been changed yet." in scene.page("/audit")
    for name in ("one", "two"):
        assert scene.post("/create", name=name, partitions=1, factor=1).status_code == 303
    page = scene.page("/audit")
    assert str(tmp_path / "audit.log") in html.unescape(page)
    assert page.index("create topic two") < page.index("create topic one")
    answer = scene.client.get("/audit", headers={"Accept": "application/json"}).json
    assert answer is not None
    assert answer["file"] == str(tmp_path / "audit.log")
    assert [each["target"] for each in answer["entries"]] == ["two", "one"]
    assert answer["entries"][0]["after"]["settings"] == {}
    lines = (tmp_path / "audit.log").read_text().splitlines()
    assert answer["entries"] == [json.loads(each) for each in reversed(lines)]
    assert (answer["before"], answer["error"], answer["unreadable_lines"]) == (None, "", 0)


def test_pages_of_a_hundred(tmp_path: Path) -> None:
    lines = [line(target=f"t{number}") for number in range(2 * PAGE + 5)]
    scene = scene_with(tmp_path / "audit.log", *lines)
    path = "/audit"
    seen: list[list[str]] = []
    while path:
        answer = scene.client.get(path, headers={"Accept": "application/json"}).json
        assert answer is not None
        seen.append([each["target"] for each in answer["entries"]])
        path = f"/audit?before={answer['before']}" if answer["before"] else ""
        if len(seen) == 1:
            (tmp_path / "audit.log").write_text("".join([*lines, line(target="new")]))
    assert [len(each) for each in seen] == [PAGE, PAGE, 5]
    found = [target for each in seen for target in each]
    assert found == [f"t{number}" for number in reversed(range(2 * PAGE + 5))]
    assert 'href="/audit?has=&amp;before=' in scene.get("/audit").text


def test_entries_with_all_the_words(tmp_path: Path) -> None:
    scene = scene_with(
        tmp_path / "audit.log",
        line(target="orders"),
        line(target="orders", user="bob"),
        line("create topic", "orders"),
    )
    page = scene.page("/audit?has=ANN delete")
    assert page.count("orders") == 1 and "bob" not in page
    assert "No entry has these words." in scene.page("/audit?has=carl")


def test_without_a_file_the_page_says_what_to_do(tmp_path: Path) -> None:
    page = scene_with("").page("/audit")
    assert "Set console.audit.file in the console's settings" in page.replace("&#39;", "'")
    scene = scene_with(tmp_path / "audit.log")
    (tmp_path / "audit.log").unlink()
    assert "cannot be read: No such file or directory" in scene.page("/audit")


def test_what_others_wrote_is_left_out_and_is_never_markup(tmp_path: Path) -> None:
    odd = "<script>alert(1)</script>"
    scene = scene_with(
        tmp_path / "audit.log",
        "not JSON\n",
        "[1]\n",
        line(target=odd, user=odd, before={odd: odd}),
        '{"user": 7}\n',
        "\n",
        '{"time": "cut',
    )
    answer = scene.get("/audit")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    assert "3 lines are not entries" in text_of(answer.text)


def test_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text("\n\n" + line() + "\n\n")
    piece = read_back(str(path), None, [])
    assert (len(piece.entries), piece.next, piece.unreadable) == (1, 0, 0)
    path.write_bytes(b"\n" * 3 * MOST_BYTES)
    end, ends = None, []
    while end != 0:
        end = read_back(str(path), end, []).next
        ends.append(end)
    assert len(ends) <= 4


def test_a_wrong_offset(tmp_path: Path) -> None:
    scene = scene_with(tmp_path / "audit.log", line())
    assert scene.get("/audit?before=x").status_code == 400
    assert "delete topic" in scene.page("/audit?before=99999999")
    assert "There are no older entries." in scene.page("/audit?before=0")


@pytest.mark.parametrize(("user", "code"), [("ann:admin", 200), ("ann:operator", 403)])
def test_it_is_for_admins(user: str, code: int, tmp_path: Path) -> None:
    path = str(tmp_path / "audit.log")
    scene = ConsoleScene({"u": user}, read_only=False, audit_file=path)
    scene.look()
    assert scene.get("/audit", auth=("ann", "secret")).status_code == code
    menu = scene.get("/", auth=("ann", "secret")).text
    assert ('href="/audit"' in menu) == (code == 200)


def test_a_large_file_is_read_from_its_end(tmp_path: Path) -> None:
    """The hole in it is read as zeros, which are not entries."""
    path = tmp_path / "audit.log"
    scene = scene_with(path)
    with open(path, "wb") as file:
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"\n" + line(target="last").encode())
    page = scene.page("/audit")
    assert "last" in page and "Older" in page
    older = read_back(str(path), (1 << 40) + 1, [])
    assert older.entries == [] and older.next == (1 << 40) + 1 - MOST_BYTES
