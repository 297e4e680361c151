"""Command lines as joptsimple reads them, and the end of a tool that fails.

A tool declares its options in a table, as its usage will show them::

    --list  List all topics.
    --topic <topic>  The topic.
    --partitions <Integer: # of partitions>  How many.
    --time <Long>  When. (default: -1)
    --group <>  A group: the usage shows no word for the argument.
    --compression-codec [codec]  The codec, which may be left out. (default: none)

It parses, and reads values by name::

    PARSER = OptionParser("Create, delete, describe, or change a topic.", TABLE, later=LATER_TABLE)

    def main(argv: list[str]) -> int:
        args = PARSER.parse_command(argv, "topic")
        PARSER.check_invalid(args, "list", "partitions")
        args.has("list"); args.value("partitions"); args.values("topic")
        return 0

``value`` gives the default when the option is absent (None without one) and refuses an option
given twice; ``values`` gives all. As in joptsimple those errors, like bad numbers, come only when
a value is read. Tools need not catch anything: ``run_tool`` turns OptionError, UsageError,
KafkaError and a missing file into the text and the exit status that the JVM would give. A tool
registers its work for the time of a signal with ``shutdown.at_end``. Every parser takes ``--help``,
declared or not: ``run_tool`` then prints the table and exits 0.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, NoReturn

from kafka08.errors import KafkaError
from kafka08.settings import properties, settings
from kafka08.settings.settings import NumberFormatError
from tools import shutdown


class ArgumentKind(NamedTuple):
    """The type of an option's argument: the JVM's name and the conversion, which raises
    NumberFormatError."""

    java_class: str
    convert: Callable[[str], object]


WIDTH = 39

# java.text.BreakIterator keeps these together on a line: opening brackets, a word, closing
# punctuation and the blanks after it. Numbers keep their points, commas and minus.
_WORD = (
    r"""[(\[{]*(?:-(?=\d))?"""
    r"""(?:[^\s(\[{!"%),\-.:;?\]}]|(?<=\d)[.,](?=\d))*"""
    r"""[!"%),\-.:;?\]}]*\s*"""
)
STRING = ArgumentKind("java.lang.String", str)
INTEGER = ArgumentKind("java.lang.Integer", settings.INT.parse)
LONG = ArgumentKind("java.lang.Long", settings.LONG.parse)
DOUBLE = ArgumentKind("java.lang.Double", settings.DOUBLE.parse)
_KINDS = {None: STRING, "Integer": INTEGER, "Long": LONG, "Double": DOUBLE}
# An option as a table declares it: --name <Kind: argument>  What it does. (default: value)
# Compiled for the first table, as a broker imports this module and has none.
_ROW = (
    r"--(?P<name>\S+)"
    r"( (?P<bracket>[<\[])((?P<kind>Integer|Long|Double)(: )?)?(?P<arg>[^>\]]*)[>\]])?"
    r"( +?(?![<\[])(?P<doc>.*?))?( \(default: (?P<default>.*)\))?"
)


class OptionError(Exception):
    """A command line joptsimple refuses; the text and ``java_class`` are its own."""

    java_class = "joptsimple.OptionException"


class UnrecognizedOptionError(OptionError):
    java_class = "joptsimple.UnrecognizedOptionException"


class MissingArgumentError(OptionError):
    java_class = "joptsimple.OptionMissingRequiredArgumentException"


class MultipleArgumentsError(OptionError):
    java_class = "joptsimple.MultipleArgumentsForOptionException"


class ArgumentConversionError(OptionError):
    java_class = "joptsimple.OptionArgumentConversionException"


class HelpRequested(Exception):
    """``--help`` was given; the usage is for stdout, exit 0."""


class ToolError(KafkaError):
    """Why a tool cannot do what it is asked."""

    java_class = "kafka.common.KafkaException"


class UsageError(Exception):
    """A refused command line whose whole text, usage included, is for stderr; exit 1."""


class Option(NamedTuple):
    name: str
    doc: str
    arg: str
    kind: ArgumentKind | None
    default: object
    optional_arg: bool
    exact: bool = False

    @property
    def heading(self) -> str:
        """The option as the usage table shows it: ``--n <Integer: arg>``."""
        dashes = "--" if len(self.name) > 1 else "-"
        if self.kind is None:
            return dashes + self.name
        shown = [] if self.kind is STRING else [self.kind.java_class.rpartition(".")[2]]
        shown += [self.arg] if self.arg else []
        if not shown:
            return dashes + self.name
        left, right = "[]" if self.optional_arg else "<>"
        return f"{dashes}{self.name} {left}{': '.join(shown)}{right}"

    @property
    def description(self) -> str:
        if self.default is None:
            return self.doc
        return f"{self.doc} (default: {self.default})".strip()


# For parsers that do not declare it: it is not in their table, which is that of 0.8.2.2.
_HELP = Option("help", "", "", None, None, False)


class Arguments:
    """A parsed command line."""

    def __init__(self, options: dict[str, Option]) -> None:
        self._options = options
        self._given: dict[str, list[str]] = {}
        # Each option as it was given, in order.
        self.in_order: list[tuple[str, str | None]] = []
        self.bare_words: list[str] = []

    def has(self, name: str) -> bool:
        return self._options[name].name in self._given

    def value(self, name: str) -> Any:
        """The one value, or the default. Raises OptionError."""
        values = self.values(name)
        if len(values) > 1:
            raise MultipleArgumentsError(
                f"Found multiple arguments for option ['{name}'], but you asked for only one"
            )
        return values[0] if values else self._options[name].default

    def values(self, name: str) -> list[Any]:
        """Every value given, in order; without the default. Raises OptionError."""
        return [self._convert(self._options[name], text) for text in self._given.get(name, ())]

    def properties(self, name: str) -> dict[str, str]:
        """Those of the file that an option names; empty without it. Raises ConfigError, OSError."""
        return properties.load(self.value(name)) if self.has(name) else {}

    @property
    def help_requested(self) -> bool:
        return _HELP.name in self._given

    def add(self, name: str, text: str | None = None) -> None:
        """Note that an option was given, with this argument."""
        self.in_order.append((name, text))
        texts = self._given.setdefault(name, [])
        if text is not None:
            texts.append(text)

    @staticmethod
    def _convert(option: Option, text: str) -> object:
        assert option.kind is not None, f"{option.name} takes no value"
        try:
            return option.kind.convert(text)
        except NumberFormatError:
            raise ArgumentConversionError(
                f"Cannot convert argument '{text}' of option ['{option.name}'] "
                f"to class {option.kind.java_class}"
            ) from None


class OptionParser:
    """Declares options and parses command lines (joptsimple.OptionParser 3.2)."""

    def __init__(self, intro: str | None = None, *tables: str, later: str = "") -> None:
        """The options of ``later`` are not found by a prefix: 0.8.2.2 lacks them, and they make no
        prefix ambiguous that it took."""
        self.intro = intro
        self._options: dict[str, Option] = {}
        for table in tables:
            self._declare(table, exact=False)
        if later:
            self._declare(later, exact=True)

    def _declare(self, table: str, exact: bool) -> None:
        """Dashes begin an option. Its further lines are joined by blanks; | keeps a line apart."""
        for lines in re.split(r"\n(?=--)", table.strip()):
            row = re.fullmatch(
                _ROW, re.sub(r"\n *(\|?)", lambda m: "\n" if m[1] else " ", lines), re.DOTALL
            )
            assert row is not None, lines
            kind = _KINDS[row["kind"]] if row["bracket"] else None
            default = row["default"]
            self._options[row["name"]] = Option(
                row["name"],
                (row["doc"] or "").strip(),
                row["arg"] or "",
                kind,
                kind.convert(default) if kind and default is not None else None,
                row["bracket"] == "[",
                exact,
            )

    def parse(self, argv: Sequence[str]) -> Arguments:
        """Raises OptionError and HelpRequested."""
        arguments = Arguments(self._options)
        rest = list(reversed(argv))
        while rest:
            word = rest.pop()
            if word == "--":
                arguments.bare_words += reversed(rest)
                break
            if not _looks_like_an_option(word):
                arguments.bare_words.append(word)
                continue
            self._take(word, rest, arguments)
        if arguments.help_requested:
            raise HelpRequested(self.usage())
        return arguments

    def parse_command(self, argv: Sequence[str], *required: str) -> Arguments:
        """A tool's whole command line; an empty one asks for the usage, if there is an intro.

        Raises OptionError, HelpRequested, and UsageError for an option that is missing.
        """
        if not argv and self.intro:
            self.usage_and_exit()
        arguments = self.parse(argv)
        self.check_required(arguments, *required)
        return arguments

    def usage(self) -> str:
        """The table of options, newline at the end."""
        rows = sorted(self._options.values())
        return usage_table([(option.heading, option.description) for option in rows])

    def usage_and_exit(self, message: str | None = None) -> NoReturn:
        """Raise UsageError with a message (the intro when there is none) and the table."""
        first = self.intro if message is None else message
        raise UsageError((f"{first}\n" if first else "") + self.usage())

    def check_required(self, args: Arguments, *names: str) -> None:
        """Every name must have been given; a default does not count."""
        for name in names:
            if not args.has(name):
                self.usage_and_exit(f'Missing required argument "[{name}]"')

    def check_exclusive(self, args: Arguments, names: Sequence[str]) -> None:
        """At most one of ``names`` may have been given."""
        for name in names:
            self.check_invalid(args, name, *(other for other in names if other != name))

    def check_invalid(self, args: Arguments, used: str, *invalid: str) -> None:
        """None of ``invalid`` may accompany ``used``."""
        for name in invalid:
            if args.has(used) and args.has(name):
                self.usage_and_exit(f'Option "[{used}]" can\'t be used with option"[{name}]"')

    def _take(self, word: str, rest: list[str], arguments: Arguments) -> None:
        """Read one option; its argument may come off the end of ``rest``."""
        is_long = word.startswith("--")
        name, _, attached = word[2 if is_long else 1 :].partition("=")
        option = self._find(name) or (_HELP if word == "--help" else None)
        if option is not None:
            self._take_argument(option, attached, rest, arguments)
        elif is_long:
            raise UnrecognizedOptionError(f"'{name}' is not a recognized option")
        else:
            self._take_cluster(word[1:], rest, arguments)

    def _take_cluster(self, letters: str, rest: list[str], arguments: Arguments) -> None:
        """``-xyz``: several options of a letter, or an option's letter and its argument."""
        for position, letter in enumerate(letters, 1):
            option = self._find(letter)
            if option is None:
                raise UnrecognizedOptionError(f"'{letter}' is not a recognized option")
            self._take_argument(option, letters[position:], rest, arguments)
            if option.kind is not None:
                break

    def _find(self, name: str) -> Option | None:
        """The option of that name, or the only one whose name starts so."""
        if name in self._options:
            return self._options[name]
        candidates = [
            option
            for key, option in self._options.items()
            if key.startswith(name) and not option.exact
        ]
        return candidates[0] if len(candidates) == 1 else None

    @staticmethod
    def _take_argument(
        option: Option, attached: str, rest: list[str], arguments: Arguments
    ) -> None:
        if option.kind is None:
            arguments.add(option.name)
        elif attached:
            arguments.add(option.name, attached)
        elif not option.optional_arg:
            if not rest:
                raise MissingArgumentError(f"Option ['{option.name}'] requires an argument")
            arguments.add(option.name, rest.pop())
        elif rest and (not _looks_like_an_option(rest[-1]) or _is_number(option.kind, rest[-1])):
            arguments.add(option.name, rest.pop())
        else:
            arguments.add(option.name)


def usage_table(rows: list[tuple[str, str]]) -> str:
    """joptsimple's two columns: headings and descriptions, wrapped and padded to 39 characters."""
    lines = [("Option", "Description"), ("------", "-----------")]
    for heading, description in rows:
        lines += zip_longest(wrap(heading), wrap(description), fillvalue="")
    return "".join(f"{left:<{WIDTH}} {right:<{WIDTH}}\n" for left, right in lines)


def wrap(text: str) -> list[str]:
    """The lines of a cell; continuation lines are indented by two blanks."""
    lines = []
    for paragraph in text.strip().split("\n"):
        line = ""
        for word in re.findall(_WORD, paragraph):
            if len(line) + len(word) > WIDTH:
                lines.append(line)
                line = "  " + word
            else:
                line += word
        if line:
            lines.append(line)
    return lines


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word not in ("-", "--")


def _is_number(kind: ArgumentKind, text: str) -> bool:
    if kind is STRING:
        return False
    try:
        kind.convert(text)
    except NumberFormatError:
        return False
    return True


def parse_key_values(pairs: Iterable[str]) -> dict[str, str]:
    """``key=value`` words to a mapping (CommandLineUtils.parseKeyValueArgs).

    ``key`` and ``key=`` mean an empty value, trailing ``=`` are dropped. Raises UsageError for
    three or more pieces.
    """
    words = list(pairs)
    parsed = {}
    for word in words:
        pieces = word.rstrip("=").split("=") if word else [""]
        if word and not word.rstrip("="):
            continue
        if len(pieces) > 2:
            raise UsageError(f"Invalid command line properties: {' '.join(words)}\n")
        parsed[pieces[0]] = pieces[1] if len(pieces) == 2 else ""
    return parsed


def run_tool(main: Callable[[list[str]], int], argv: Sequence[str]) -> int:
    """Run a tool's ``main(argv)`` and return its exit status, 1 for every error it lets out.

    A signal ends the process from within, with 128 + its number.
    """
    with shutdown.catching_signals():
        return run_main(main, argv)


def run_main(main: Callable[[list[str]], int], argv: Sequence[str]) -> int:
    """The same for a server, which handles signals itself."""
    try:
        try:
            return main(list(argv))
        finally:
            shutdown.hold()
    except HelpRequested as help_requested:
        sys.stdout.write(str(help_requested))
        return 0
    except UsageError as error:
        sys.stderr.write(str(error))
    except (OptionError, KafkaError) as error:
        _print_uncaught(error.java_class, str(error))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        name = f"{error.filename} ({error.strerror})"
        _print_uncaught("java.io.FileNotFoundException", name)
    except BrokenPipeError:
        abandon_stdout()
    return 1


def abandon_stdout() -> None:
    """After a broken pipe: let Python's flush at exit go nowhere instead of failing again."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass


def _print_uncaught(java_class: str, text: str) -> None:
    print(f'Exception in thread "main" {java_class}: {text}', file=sys.stderr, flush=True)
