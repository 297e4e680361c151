"""Checks of documentation pages: sections, commands, links, words."""

from __future__ import annotations

import ast
import configparser
import io
import re
import runpy
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_nothing_is_installed_that_no_index_has() -> None:
    """kafka08 is in no package index: it is installed from a checkout, with extras that exist."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = set(setup["options.extras_require"])
    code = [path for name in ("kafka08", "tools", "zk") for path in (ROOT / name).rglob("*.py")]
    wrong = []
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *code]:
        for target in re.findall(r"pip install (?:-e )?['\"]?([^'\"\s`,)]+)", path.read_text()):
            named = re.search(r"^[./].*\[(.*)\]$", target)
            if target.startswith("kafka08") or (named and not {named[1]} <= extras):
                wrong.append(f"{path.relative_to(ROOT)}: {target}")
    assert wrong == []


def test_clients_are_installed_into_the_environment_of_the_checkout() -> None:
    commands = re.findall(r"\S*pip install", (ROOT / "docs" / "clients.md").read_text("utf-8"))
    assert {command.lstrip("`") for command in commands} == {".venv/bin/pip install"}


def test_the_readme_is_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 160
    assert {"make quickstart", "make test"} <= set(readme.splitlines())


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("docs/operator.md", ["includes the newest segment"]),
        ("docs/settings.md", ["after which it is deleted, the newest one too"]),
        ("config/server.properties", ["The newest segment goes too"]),
        ("docs/compatibility.md", ["JMX", "GSSAPI", "ACLs", "Avro"]),
        (
            "docs/migrating.md",
            [
                "auto.leader.rebalance.enable=false",
                "log.cleaner.enable=false",
                "`zookeeper.session.timeout.ms` plus 1.5 s",
            ],
        ),
    ],
)
def test_what_users_lose_data_by_is_said(page: str, texts: list[str]) -> None:
    """What retention removes, what is missing, and how originals in the cluster lose messages."""
    found = " ".join((ROOT / page).read_text(encoding="utf-8").replace("\n# ", " ").split())
    assert [text for text in texts if text not in found] == []


@pytest.mark.scenario("ops-41", "ops-59")
@pytest.mark.parametrize(
    ("page", "texts"),
    [
        (
            "docs/console.md",
            [
                "A controller of 0.8.2.2 cannot say it",
                "marks nothing until you confirm that all brokers have `delete.topic.enable=true`",
            ],
        ),
        (
            "docs/rest.md",
            [
                "npm `kafka-rest` 0.0.5 writes, reads, commits and shuts down",
                "PyPI `kafka-rest-client` 0.8.0 reads, commits and shuts down; it has no producer",
                "PyPI `kafka-rest` 0.0.12 does not work: it only writes, and in Avro alone",
            ],
        ),
    ],
)
def test_deviations_are_told_where_users_look(page: str, texts: list[str]) -> None:
    found = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert [text for text in texts if text not in found] == []


def test_the_list_of_files_is_what_the_modules_say() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_files.py"))
    page = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    assert page == made["render"](), "run `make docs`"
    described = re.findall(r"^\| `(\S+)` \| (.*) \|$", page, re.MULTILINE)
    assert [name for name, text in described if not text] == []
    modules = [p for top in made["TREES"] for p in (ROOT / top).rglob("*.py") if p.stat().st_size]
    modules = [path for path in modules if path.name != "__init__.py"]
    assert len(described) >= len(modules) > 300


def test_every_decision_is_in_the_index_under_its_title() -> None:
    pages = sorted((ROOT / "docs" / "adr").glob("0*.md"))
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    titles = [path.read_text(encoding="utf-8").partition("\n")[0] for path in pages]
    for path, title in zip(pages, titles, strict=True):
        number = int(path.name[:4])
        assert title.startswith(f"# {number}. "), path.name
        assert f"| {number} | [{title.partition('. ')[2]}]({path.name}) |" in index, path.name
    assert len(re.findall(r"^\| \d+ \|", index, re.MULTILINE)) == len(pages)


def test_every_dependency_has_its_reason() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    page = (ROOT / "docs" / "adr" / "0004-dependencies.md").read_text(encoding="utf-8")
    needed = re.findall(r"^([\w-]+)", setup["options"]["install_requires"], re.MULTILINE)
    first, second = page.split("\nExtras:\n")
    assert sorted(re.findall(r"^\| ([a-z]\S*) \|", first, re.MULTILINE)) == sorted(needed)
    extras = {
        extra: sorted(re.findall(r"^([\w-]+)", packages, re.MULTILINE))
        for extra, packages in setup["options.extras_require"].items()
    }
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", second, re.MULTILINE)
    assert {extra: sorted(packages.split(", ")) for extra, packages in rows} == extras


def test_the_hooks_run_what_make_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^ +entry: (.*)$", hooks, re.MULTILINE) == commands
    assert re.findall(r"repo: (\S+)", hooks) == ["local"]


def test_the_changelog_names_the_version_below_what_is_not_released() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, released, *_ = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert unreleased == "[Unreleased]"
    assert re.fullmatch(rf"\[{setup['metadata']['version']}\] - \d{{4}}-\d\d-\d\d", released)


def test_links_lead_somewhere() -> None:
    """Pages that are named exist, and so do their headings."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
    broken = []
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if "://" in link:
                continue
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def test_no_row_of_a_table_is_torn() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
    torn = [
        f"{page.relative_to(ROOT)}:{line}"
        for page in pages
        for line in torn_rows(page.read_text(encoding="utf-8"))
    ]
    assert torn == []


def torn_rows(text: str) -> list[int]:
    """The numbers of the lines of tables that have another number of cells than the first one, or
    no bar at an end. Text without a blank line before it belongs to a table, too. In a cell a bar
    is ``\\|``, in code as well."""
    found = []
    cells = 0  # of the table, if there is one
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        row = line.strip()
        is_code ^= row.startswith("```")
        if is_code or not row or row.startswith(("```", "<!--")):
            cells = 0
        elif cells or row.startswith("|"):
            count = len(re.findall(r"(?<!\\)\|", row)) - 1
            cells = cells or count
            if count != cells or not (row.startswith("|") and re.search(r"(?<!\\)\|$", row)):
                found.append(number)
    return found


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("| a | b |\n| - | - |\n| 1 | 2 |\n\n| c |\n| - |\n", []),
        ("| a | b |\n| - | - |\n| 1 | x\n  y |\n| 3 | 4 |\n", [3, 4]),
        ("| a | b |\n| - | - |\n| 1 | `x|y` |\n| 2 | `x\\|y` |\n", [3]),
        ("| a | b |\n| - | - |\n| 1 |\ntext\n\ntext\n", [3, 4]),
        ("| a | b |\n| - | - |\n| 1 | 2 |\n<!-- end -->\n", []),
        ("```\n| a |\n| b | c |\n```\n", []),
        ("- x\n\n  | a | b |\n  | - | - |\n  | 1 | 2 \\|\n", [5]),
    ],
)
def test_torn_rows_are_found(text: str, lines: list[int]) -> None:
    assert torn_rows(text) == lines


def test_the_recipes_name_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    recipes = text.partition("## Recipes")[2].partition("\n## ")[0]
    paths = re.findall(r"`((?:kafka08|tools|bin|tests)/[\w./-]*)`", recipes)
    assert len(paths) > 6
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_architecture_names_what_is_there() -> None:
    """Modules, and methods of classes, by the names they have in the code."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([^`\s]+)`", text))
    roots = (ROOT, ROOT / "kafka08")
    paths = {word for word in words if re.fullmatch(r"[\w./-]+\.(py|pyx|sh)", word) and "/" in word}
    missing = {path for path in paths if not any((root / path).exists() for root in roots)}
    sources = [path for top in ("kafka08", "zk", "tools") for path in (ROOT / top).rglob("*.py")]
    members: dict[str, set[str]] = {}
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                members.setdefault(node.name, set()).update(names_in(node))
    for word in words:
        named = re.fullmatch(r"([A-Z]\w+)\.(\w+)", word)
        if named and named[2] not in members.get(named[1], ()):
            missing.add(word)
    assert missing == set()
    assert len(paths) > 30


def names_in(class_: ast.ClassDef) -> set[str]:
    names = {node.name for node in class_.body if isinstance(node, ast.FunctionDef)}
    names |= {
        node.target.id
        for node in class_.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return names | {node.attr for node in ast.walk(class_) if isinstance(node, ast.Attribute)}


# Each of these has a plain, present-day form, such as "is not a" or "again".
ARCHAIC = re.compile(
    r"(?<!\bthere )\b(?:is|are|was|were) no(?! (?:longer|more)\b)\b"
    r"|\b(?:anew|for ever|forever|octets?|whoever|by and by|till|shall|hence|lest|rests)\b"
    r"|\b(?:there|here|where)(?:of|by|in)\b|\bvouch\w*|\bwhich 0\.8\.2\.2 has not\b"
    r"|\b(?:brokers?|none) of ours\b",
    re.IGNORECASE,
)
# A text of a source names its subject: "The bytes to send" instead of "What to send".
NO_SUBJECT = re.compile(r"(?:^|[.;:] )(?:What|Who)\b(?![^.;:]*\?)")
SOURCES = ("kafka08", "zk", "tools", "bin", "config", "integration", "tests")
SUFFIXES = ("", ".bash", ".h", ".properties", ".py", ".pyx", ".sh")
# 0.8.2.2 logs the first, which has "hence" in it; the second is a media type.
VERBATIM = ("I wrote this conflicted ephemeral node", "application/octet-stream")


def test_pages_are_in_present_day_english() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
    found = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
        words = ARCHAIC.finditer(" ".join(text.split()))
        found += [f"{page.relative_to(ROOT)}: {word[0]}" for word in words]
    assert found == []


def test_sources_are_in_present_day_english() -> None:
    paths = [path for top in SOURCES for path in (ROOT / top).rglob("*") if path.is_file()]
    found = []
    for path in [ROOT / "Makefile", ROOT / ".ci" / "run", *paths]:
        if path.suffix not in SUFFIXES or path == Path(__file__):
            continue
        source = path.read_text(encoding="utf-8")
        is_python = path.suffix in (".py", ".pyx")
        for line, text in python_texts(source) if is_python else enumerate(source.split("\n"), 1):
            word = ARCHAIC.search(text) or NO_SUBJECT.search(text.lstrip("#* "))
            if word and not any(each in text for each in VERBATIM):
                found.append(f"{path.relative_to(ROOT)}:{line}: {word[0]}")
    assert found == []


def python_texts(source: str) -> list[tuple[int, str]]:
    """(line, text) of the comments and strings; those that follow each other are one text."""
    texts: list[tuple[int, str]] = []
    last = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in {tokenize.NL, tokenize.INDENT, *F_STRING_ENDS}:
            continue
        alone = token.line.lstrip().startswith("#")
        is_text = token.type == tokenize.COMMENT or token.type in STRINGS
        kind = (token.type in STRINGS, alone) if is_text else None
        if kind is not None:
            text = " ".join(QUOTES.sub("", token.string).split())
            joins = kind == last and (alone or token.type != tokenize.COMMENT)
            line, before = texts.pop() if joins else (token.start[0], "")
            texts.append((line, f"{before} {text}".strip()))
        last = kind
    return texts


# From Python 3.12 on, an f-string is several tokens.
STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
F_STRING_ENDS = {getattr(tokenize, f"FSTRING_{end}", -1) for end in ("START", "END")}
QUOTES = re.compile(r"""^(?:#[ :]*|[a-zA-Z]*["']+)|["']+$""")


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("# for\n# ever\nx = 1  # one\n", [(1, "for ever"), (3, "one")]),
        ("x = (\n    'for '\n    f'ever'\n)\n", [(2, "for ever")]),
        ('def f():\n    """Is\n    no."""\n    # till\n', [(2, "Is no."), (4, "till")]),
        ("forever = 1\n", []),
    ],
)
def test_the_texts_of_a_source(source: str, texts: list[tuple[int, str]]) -> None:
    assert python_texts(source) == texts


@pytest.mark.parametrize("text", ["What to send", "It ends. Who asks is told", "a: What is left"])
def test_texts_without_a_subject_are_found(text: str) -> None:
    assert NO_SUBJECT.search(text)


@pytest.mark.parametrize("text", ["What is it? A page", "It does what it should", "Whole sets"])
def test_questions_and_clauses_may_begin_with_what(text: str) -> None:
    assert NO_SUBJECT.search(text) is None


@pytest.mark.parametrize(
    "text", ["There is no such topic", "It is no longer used", "what is done for each"]
)
def test_plain_words_are_not_taken_for_archaic_ones(text: str) -> None:
    assert ARCHAIC.search(text) is None


@pytest.mark.parametrize("text", ["That is no failure", "It waits for ever", "is made anew"])
def test_archaic_words_are_found(text: str) -> None:
    assert ARCHAIC.search(text)
