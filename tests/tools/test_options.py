"""Expected outcomes are what joptsimple 3.2 itself answered to the same declarations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka08.errors import AdminOperationError
from tools.options import (
    WIDTH,
    ArgumentConversionError,
    MissingArgumentError,
    MultipleArgumentsError,
    OptionError,
    OptionParser,
    UnrecognizedOptionError,
    UsageError,
    abandon_stdout,
    parse_key_values,
    run_tool,
    usage_table,
    wrap,
)

SAMPLE = """
--topic <topic>  The topic
--partitions <Integer: # of>  The number
--long <Long>  The number (default: 5)
--dir <Double>
--codec [codec]  (default: none)
--onum [Integer]
--list
--describe
--delete
--z
"""


def sample() -> OptionParser:
    return OptionParser("It does a job.", SAMPLE)


DEFAULTS = {
    "topic": None,
    "partitions": None,
    "long": 5,
    "dir": None,
    "codec": "none",
    "onum": None,
    "list": False,
    "describe": False,
    "delete": False,
    "z": False,
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--desc"], {"describe": True}),
        (["-desc"], {"describe": True}),
        (["-topic", "x"], {"topic": "x"}),
        (["-t", "x"], {"topic": "x"}),
        (["-tx"], {"topic": "x"}),
        (["--topic=", "-1"], {"topic": "-1"}),
        (["--topic", "-1"], {"topic": "-1"}),
        (["--topic", "--list"], {"topic": "--list"}),
        (["--topic", "", "--list"], {"topic": "", "list": True}),
        (["--topic=a=b"], {"topic": "a=b"}),
        (["--", "--topic", "x"], {}),
        (["-"], {}),
        (["bare", "--list", "bare"], {"list": True}),
        (["--list=3"], {"list": True}),
        (["--codec"], {}),
        (["--codec", "gzip"], {"codec": "gzip"}),
        (["--codec", "--list"], {"list": True}),
        (["--codec=gzip"], {"codec": "gzip"}),
        (["--long", "99999999999"], {"long": 99999999999}),
        (["--part", "+5"], {"partitions": 5}),
        (["-z=3"], {"z": True}),
        (["--dir", "1.5"], {"dir": 1.5}),
        (["--onum", "-3"], {"onum": -3}),
        ([], {}),
    ],
)
def test_parse(words: list[str], expected: dict[str, object]) -> None:
    args = sample().parse(words)
    found = {
        name: args.has(name) if default is False else args.value(name)
        for name, default in DEFAULTS.items()
    }
    assert found == DEFAULTS | expected


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (["--topic"], MissingArgumentError, "Option ['topic'] requires an argument"),
        (["--topic="], MissingArgumentError, "Option ['topic'] requires an argument"),
        (["--foo"], UnrecognizedOptionError, "'foo' is not a recognized option"),
        (["--foo=3"], UnrecognizedOptionError, "'foo' is not a recognized option"),
        (["-foo"], UnrecognizedOptionError, "'f' is not a recognized option"),
        (["--de", "x"], UnrecognizedOptionError, "'de' is not a recognized option"),
        (["-l"], UnrecognizedOptionError, "'l' is not a recognized option"),
        (["-ltx"], UnrecognizedOptionError, "'l' is not a recognized option"),
        (["--onum", "-x"], UnrecognizedOptionError, "'x' is not a recognized option"),
    ],
)
def test_parse_refuses(words: list[str], error: type[OptionError], text: str) -> None:
    with pytest.raises(error) as caught:
        sample().parse(words)
    assert str(caught.value) == text


def test_has_and_value_differ_for_an_optional_argument_and_a_default() -> None:
    assert sample().parse(["--codec"]).has("codec")
    assert sample().parse(["--codec"]).values("codec") == []
    assert not sample().parse([]).has("long")


@pytest.mark.parametrize("text", ["x", "99999999999", " 5", "1_0", ""])
def test_bad_numbers_fail_when_read(text: str) -> None:
    args = sample().parse(["--partitions", text])
    assert args.has("partitions")
    with pytest.raises(ArgumentConversionError) as caught:
        args.value("partitions")
    assert str(caught.value) == (
        f"Cannot convert argument '{text}' of option ['partitions'] to class java.lang.Integer"
    )


def test_repeated_options() -> None:
    args = sample().parse(["--part", "1", "--partitions=2"])
    assert args.values("partitions") == [1, 2]
    with pytest.raises(MultipleArgumentsError) as caught:
        args.value("partitions")
    assert str(caught.value) == (
        "Found multiple arguments for option ['partitions'], but you asked for only one"
    )


def test_an_exact_name_beats_a_longer_one() -> None:
    parser = OptionParser(None, "--config <k=v>\n--config-file <f>")
    assert parser.parse(["--config", "a"]).value("config") == "a"


def test_bare_words() -> None:
    assert sample().parse(["a", "--list", "b", "--", "--z"]).bare_words == ["a", "b", "--z"]


USAGE = """\
Option                                  Description                            
------                                  -----------                            
--Zed                                                                          
                                          averyveryveryveryveryverylongwordthatdoesnotfit 
                                          x                                    
--a-long [Integer]                      x y (default: 3)                       
--                                      d                                      
  aVeryLongOptionNameThatNeverEndsAtAllReally                                         
  <some words here and there>                                                  
-b                                                                             
-c [desc]                               multi                                  
                                        line text that goes on and on until it 
                                          has-to-be-broken/somewhere,else      
                                          (REQUIRED).                          
"""  # noqa: W291 - the table is padded


def test_usage_table() -> None:
    table = """
--a-long [Integer]  x y (default: 3)
--b <>
--c [desc]  multi
    |line text that goes on and on until it has-to-be-broken/somewhere,else
    (REQUIRED).
--aVeryLongOptionNameThatNeverEndsAtAllReally <some words here and there>  d
--Zed  averyveryveryveryveryverylongwordthatdoesnotfit x
"""
    assert OptionParser(None, table).usage() == USAGE


def test_headings() -> None:
    table = sample().usage()
    assert "--partitions <Integer: # of>            The number " in table
    assert "--long <Long>                           The number (default: 5) " in table
    assert "--topic <topic> " in table
    assert "-z " in table


def refusal(call, *arguments: object) -> str:
    with pytest.raises(UsageError) as caught:
        call(*arguments)
    return str(caught.value)


def test_checks() -> None:
    parser = sample()
    args = parser.parse(["--list", "--part", "3"])
    parser.check_required(args, "list", "partitions")
    parser.check_invalid(args, "list", "topic")
    parser.check_invalid(args, "topic", "list")
    assert refusal(parser.check_required, args, "list", "topic") == (
        'Missing required argument "[topic]"\n' + parser.usage()
    )
    assert refusal(parser.check_invalid, args, "list", "partitions") == (
        'Option "[list]" can\'t be used with option"[partitions]"\n' + parser.usage()
    )
    assert refusal(parser.usage_and_exit) == "It does a job.\n" + parser.usage()
    assert refusal(OptionParser().usage_and_exit).startswith("Option ")


def test_required_is_checked_and_a_default_does_not_count() -> None:
    parser = OptionParser(None, "--partition <Integer>  (default: 0)")
    given = parser.parse_command(["--partition", "1"], "partition")
    assert given.value("partition") == 1
    assert 'Missing required argument "[partition]"' in refusal(
        parser.parse_command, [], "partition"
    )


def test_an_empty_command_line_asks_for_the_usage_if_there_is_an_intro() -> None:
    assert refusal(sample().parse_command, [], "topic").startswith("It does a job.\nOption ")


def test_options_of_later_releases_are_found_by_their_whole_name_only() -> None:
    parser = OptionParser(None, "--topic <topic>", later="--topics\n--force  Accepted.")
    assert parser.parse(["--top", "a"]).value("topic") == "a"
    assert parser.parse(["--topics", "--force"]).has("topics")
    with pytest.raises(UnrecognizedOptionError):
        parser.parse(["--forc"])


def test_a_row_that_is_not_an_option() -> None:
    with pytest.raises(AssertionError, match="--topic <topic"):
        OptionParser(None, "--list\n--topic <topic  No end.")


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], {}),
        (["a=1", "b=2", "a=3"], {"a": "3", "b": "2"}),
        (["a", "b=", "c=="], {"a": "", "b": "", "c": ""}),
        (["=a", "=", ""], {"": ""}),
        (["sep=\\t"], {"sep": "\\t"}),
    ],
)
def test_parse_key_values(pairs: list[str], expected: dict[str, str]) -> None:
    assert parse_key_values(pairs) == expected


def test_parse_key_values_refuses_three_pieces() -> None:
    text = refusal(parse_key_values, ["x=1", "a=b=c"])
    assert text == "Invalid command line properties: x=1 a=b=c\n"


@pytest.mark.parametrize(
    ("error", "status", "stderr"),
    [
        (UsageError("all of it\n"), 1, "all of it\n"),
        (
            UnrecognizedOptionError("'x' is not"),
            1,
            "Exception in thread \"main\" joptsimple.UnrecognizedOptionException: 'x' is not\n",
        ),
        (
            AdminOperationError("no"),
            1,
            'Exception in thread "main" kafka.admin.AdminOperationException: no\n',
        ),
        (
            FileNotFoundError(2, "No such file or directory", "f.json"),
            1,
            'Exception in thread "main" java.io.FileNotFoundException: '
            "f.json (No such file or directory)\n",
        ),
    ],
)
def test_run_tool(
    error: BaseException, status: int, stderr: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(argv: list[str]) -> int:
        raise error

    assert run_tool(main, []) == status
    assert capsys.readouterr().err == stderr


def test_run_tool_hands_on_words_and_status() -> None:
    assert run_tool(len, ["a", "b"]) == 2


@pytest.mark.parametrize(
    "words", [["--help"], ["--topic", "t", "--help"], ["--help", "--partitions", "x"]]
)
@pytest.mark.parametrize("declared", [False, True])
def test_help(words: list[str], declared: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Told before a value is looked at, or an option is missed."""
    parser = OptionParser(None, SAMPLE + ("--help  Print this.\n" if declared else ""))

    def main(argv: list[str]) -> int:
        return int(parser.parse_command(argv, "list").value("partitions"))

    assert run_tool(main, words) == 0
    assert capsys.readouterr() == (parser.usage(), "")
    assert ("--help" in parser.usage()) == declared


def test_help_that_is_an_argument_or_a_bare_word() -> None:
    args = sample().parse(["--topic", "--help", "--", "--help"])
    assert (args.value("topic"), args.bare_words) == ("--help", ["--help"])


def test_help_does_not_hide_an_unknown_option() -> None:
    with pytest.raises(UnrecognizedOptionError):
        sample().parse(["--help", "--nope"])


def test_a_broken_pipe_is_not_reported_at_exit() -> None:
    script = "from tools import options; sys.stdout.buffer.write(b'x'); {}; sys.exit(3)"
    for call, failed in (("options.abandon_stdout()", False), ("pass", True)):
        process = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.readline(); " + script.format(call)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"\n")
        process.stdin.close()
        told = process.stderr.read()
        process.stderr.close()
        assert (process.wait() == 3, b"BrokenPipeError" in told) == (not failed, failed)


def test_an_output_without_a_descriptor_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def fileno(self) -> int:
            raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(sys, "stdout", Closed())
    abandon_stdout()


def test_the_properties_of_a_file_that_an_option_names(tmp_path: Path) -> None:
    file = tmp_path / "settings"
    file.write_text("a=1\n")
    assert sample().parse(["--topic", str(file)]).properties("topic") == {"a": "1"}
    assert sample().parse([]).properties("topic") == {}


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
