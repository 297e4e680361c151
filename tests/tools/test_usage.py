"""Tables of options, wrapped as joptsimple wraps them."""

from __future__ import annotations

from tools.usage import WIDTH, usage_table, wrap


def test_the_two_columns_are_padded() -> None:
    table = usage_table([("--topic <t>", "The topic.")]).split("\n")
    assert table[0] == f"{'Option':<39} {'Description':<39}"
    assert table[2] == f"{'--topic <t>':<39} {'The topic.':<39}"
    assert {len(line) for line in table[:-1]} == {2 * WIDTH + 1}


def test_the_shorter_cell_is_filled() -> None:
    lines = usage_table([("--a", "word " * 20)]).split("\n")[2:-1]
    assert [line[:WIDTH].strip() for line in lines] == ["--a", "", ""]


def test_lines_end_between_words_and_continue_two_blanks_in() -> None:
    lines = wrap("one two three four five six seven eight nine ten")
    assert lines == ["one two three four five six seven ", "  eight nine ten"]
    assert wrap("a\nb") == ["a", "b"]
    assert wrap("") == []


def test_numbers_and_brackets_stay_whole() -> None:
    text = "x" * 30 + " (1,000.5) [-7]"
    assert wrap(text) == ["x" * 30 + " ", "  (1,000.5) [-7]"]
