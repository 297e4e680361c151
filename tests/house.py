"""The structure of the code in figures, each with its limit: `make house` prints them.

Every criterion is a function from the sources to its findings, each with file and line. The figure
is their number, or what the criterion itself computes. tests/test_house.py holds the code to the
limits.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CODE = ("kafka08", "zk", "tools")
PACKAGES = (*CODE, "integration")
TESTS = "tests"
MAX_LINES = 600
MAX_ROOM = 18
MAX_PARAMETERS = 8
MAX_FUNCTION = 60
TWINS = (("kafka08/message/scan.py", "walk"),)
EQUALS = ("kafka08/server/apis",)
SERVER = "kafka08/server/"
LONG_LISTS = ("kafka08/settings/broker.py",)  # a list of settings, which nobody reads as a program
MIDDLE = {  # the parts on the way of each message, with their most lines
    "kafka08/log/segments/segment.py": 400,
    "kafka08/network/connection.py": 300,
    "kafka08/server/apis/fetch.py": 170,
    "kafka08/server/apis/produce.py": 130,
}
WIRING = (
    "kafka08/server/broker.py",
    "kafka08/server/rooms.py",
    "kafka08/server/replication/roles.py",
    "kafka08/controller/controller.py",
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.While, ast.For)
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)


@dataclass(frozen=True)
class Source:
    """One Python file; ``path`` is relative to the root of the checkout."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def module(self) -> str:
        """``kafka08/log/log.py`` is ``kafka08.log.log``; a package is its ``__init__``'s module."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def package(self) -> str:
        return self.path.split("/")[0]

    def at(self, node: ast.AST, what: str = "") -> str:
        return f"{self.path}:{getattr(node, 'lineno', 0)} {what}".rstrip()

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in self.nodes:
            if isinstance(node, FUNCTIONS):
                yield node


class Figure(NamedTuple):
    value: int
    findings: list[str]


Finder = Callable[[list[Source]], list[str]]


@dataclass(frozen=True)
class Criterion:
    """``limit`` is that of the figure, which counts findings: ``per`` so many lines if that is not
    0, rounded up."""

    name: str
    limit: int
    findings: Finder
    value: Callable[[list[str]], int] = field(default=len)
    per: int = 0

    def figure(self, sources: list[Source]) -> Figure:
        found = self.findings(sources)
        value = self.value(found)
        if self.per:
            value = -(-value * self.per // lines(product(sources)))
        return Figure(value, found)


def read(root: Path = ROOT) -> list[Source]:
    """All sources of the packages, and the unit tests."""
    return [
        Source(str(path.relative_to(root)), path.read_text(encoding="utf-8"))
        for package in (*PACKAGES, TESTS)
        for path in sorted((root / package).rglob("*.py"))
    ]


def lines(sources: list[Source]) -> int:
    return sum(len(source.text.splitlines()) for source in sources)


def below(sources: list[Source], *prefixes: str) -> list[Source]:
    return [source for source in sources if source.path.startswith(prefixes)]


def product(sources: list[Source]) -> list[Source]:
    """The sources without the integration tests."""
    return [source for source in sources if source.package in CODE]


def without_tests(sources: list[Source]) -> list[Source]:
    return [source for source in sources if source.package != TESTS]


def names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def called(node: ast.AST) -> Iterator[str]:
    """The last parts of the names of everything that is called: ``f``, ``unpack_from``."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            yield ast.unparse(each.func).rpartition(".")[2]


# How log entries are read


def steps_over_entries(loop: ast.AST) -> bool:
    """Whether a loop unpacks the headers of entries itself, instead of using the walk."""
    calls = set(called(loop))
    steps = {"OFFSET_AND_SIZE", "LOG_OVERHEAD"} & names(loop)
    return bool(steps and calls & {"unpack", "unpack_from"}) and "walk" not in calls


def walks_by_hand(sources: list[Source]) -> list[str]:
    """Functions with a loop that goes from entry to entry by their sizes."""
    return [
        source.at(function, function.name)
        for source in product(sources)
        for function in source.functions()
        if any(steps_over_entries(node) for node in ast.walk(function) if isinstance(node, LOOPS))
    ]


def checking_walks(sources: list[Source]) -> list[str]:
    """Those that also check crcs: the pass over each set that is produced or copied."""
    return [
        source.at(function, function.name)
        for source in product(sources)
        for function in source.functions()
        if any(
            steps_over_entries(node) and "has_right_crc" in called(node)
            for node in ast.walk(function)
            if isinstance(node, LOOPS)
        )
    ]


# How parts are put together


def code_from_text(sources: list[Source]) -> list[str]:
    """Calls of exec, eval and compile."""
    return [
        source.at(node, node.func.id)
        for source in product(sources)
        for node in source.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("exec", "eval", "compile")
    ]


def callbacks(sources: list[Source]) -> list[str]:
    """Parameters named on_something in kafka08/server."""
    found = []
    for source in below(sources, "kafka08/server/"):
        for function in source.functions():
            arguments = function.args
            every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            found += [source.at(each, each.arg) for each in every if each.arg.startswith("on_")]
    return found


def foreign_attributes(sources: list[Source]) -> list[str]:
    """Attributes that the wiring of a broker sets on other objects."""
    return [
        source.at(node, ast.unparse(node))
        for source in below(sources, *WIRING)
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) != "self"
    ]


def stored(function: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a function assigns, as (name or self.name, line)."""
    added = {id(each.target) for each in ast.walk(function) if isinstance(each, ast.AugAssign)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in added:
            continue  # what is added to has been assigned before
        if isinstance(node.ctx, ast.Store):
            yield ast.unparse(node), node.lineno


def early_lambdas(sources: list[Source]) -> list[str]:
    """Lambdas that name a variable, or an attribute of self, which is first assigned below them."""
    found = []
    for source in product(sources):
        for function in source.functions():
            lambdas = [node for node in ast.walk(function) if isinstance(node, ast.Lambda)]
            if not lambdas:
                continue
            first: dict[str, int] = {}
            for name, line in stored(function):
                first[name] = min(line, first.get(name, line))
            for node in lambdas:
                own = {each.arg for each in node.args.args}
                used = {ast.unparse(each) for each in ast.walk(node.body)} - own
                end = node.end_lineno or node.lineno
                late = sorted(name for name in used if first.get(name, 0) > end)
                found += [source.at(node, name) for name in late]
    return found


def unowned_tasks(sources: list[Source]) -> list[str]:
    """Calls of spawn whose result nobody keeps."""
    return [
        source.at(node, ast.unparse(node.value))
        for source in product(sources)
        for node in source.nodes
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).rpartition(".")[2].startswith("spawn")
    ]


# Imports


def imported(source: Source, modules: set[str]) -> Iterator[tuple[str, ast.stmt]]:
    """The modules of ours that a source imports, wherever in it."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            deeper = [f"{node.module}.{alias.name}" for alias in node.names]
            targets = [name if name in modules else node.module for name in deeper]
        else:
            continue
        for name in targets:
            if name in modules and name != source.module:
                yield name, node


def circles(sources: list[Source]) -> list[str]:
    """Modules that import each other, directly or by way of others."""
    sources = without_tests(sources)
    modules = {source.module for source in sources}
    graph = {s.module: {name for name, _ in imported(s, modules)} for s in sources}
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        left = [start]
        while left:
            for following in graph[left.pop()] - seen:
                seen.add(following)
                left.append(following)
        reached[start] = seen
    rings = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    return sorted(" <-> ".join(sorted(ring)) for ring in rings)


def late_imports(sources: list[Source]) -> list[str]:
    """Imports of our own modules within functions."""
    sources = without_tests(sources)
    modules = {source.module for source in sources}
    return [
        source.at(node, name)
        for source in sources
        for name, node in imported(source, modules)
        if node.col_offset and any(node in ast.walk(f) for f in source.functions())
    ]


def upward_imports(sources: list[Source]) -> list[str]:
    """Imports in kafka08 of the command line."""
    return [
        source.at(node, node.module)
        for source in below(sources, "kafka08/")
        for node in source.nodes
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tools"
    ]


# Sizes


def long_files(sources: list[Source]) -> list[str]:
    """Files over MAX_LINES."""
    return [
        f"{source.path} {count}"
        for source in product(sources)
        if (count := lines([source])) > MAX_LINES and source.path not in LONG_LISTS
    ]


def long_middle(sources: list[Source]) -> list[str]:
    """Files of MIDDLE over their own limits."""
    return [
        f"{source.path} {count}"
        for source in sources
        if (count := lines([source])) > MIDDLE.get(source.path, count)
    ]


def complexity(function: ast.AST) -> int:
    """Cyclomatic complexity after McCabe: one more than the number of decisions, those of nested
    functions apart."""
    count = 1
    left = list(ast.iter_child_nodes(function))
    while left:
        node = left.pop()
        if isinstance(node, FUNCTIONS):
            continue
        left += ast.iter_child_nodes(node)
        if isinstance(node, BRANCHES):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
    return count


def complexities(sources: list[Source]) -> list[str]:
    """The complexity of each function of kafka08/message, largest first."""
    found = [
        (complexity(function), source.at(function, function.name))
        for source in below(sources, "kafka08/message/")
        for function in source.functions()
    ]
    return [f"{number} {where}" for number, where in sorted(found, reverse=True)]


def percentile_95(found: list[str]) -> int:
    """The complexity that 95 % of the functions do not exceed."""
    ordered = sorted(int(line.split()[0]) for line in found)
    return ordered[-(-len(ordered) * 95 // 100) - 1]


# Untyped values and broad handlers


def broad_excepts(sources: list[Source]) -> list[str]:
    """Handlers of Exception, BaseException or everything."""
    return [
        source.at(node)
        for source in product(sources)
        for node in source.nodes
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or {"Exception", "BaseException"} & names(node.type))
    ]


def untyped(sources: list[Source]) -> list[str]:
    """Each mention of Any, imports apart."""
    return [
        source.at(node)
        for source in product(sources)
        for node in source.nodes
        if isinstance(node, ast.Name) and node.id == "Any"
    ]


ASKING = re.compile(r"^(offsets|times|(offset_)?fetch)_request$")


def requests_by_hand(sources: list[Source]) -> list[str]:
    """Requests for offsets, times or messages that are not made in kafka08/client."""
    return [
        source.at(node, name)
        for source in product(sources)
        if not source.path.startswith("kafka08/client/")
        for node in source.nodes
        if isinstance(node, ast.Call)
        and ASKING.match(name := ast.unparse(node.func).rpartition(".")[2])
    ]


def unreachable_ends(sources: list[Source]) -> list[str]:
    """Functions that end in AssertionError("unreachable"), as a loop of tries without an exit."""
    return [
        source.at(node)
        for source in product(sources)
        for node in source.nodes
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and ast.unparse(node.exc) == "AssertionError('unreachable')"
    ]


def untyped_channels(sources: list[Source]) -> list[str]:
    """Parameters named channel, for a connection to a broker, without its type."""
    return [
        source.at(node, ast.unparse(node.annotation))
        for source in product(sources)
        for node in source.nodes
        if isinstance(node, ast.arg)
        and node.arg == "channel"
        and node.annotation is not None
        and "Any" in names(node.annotation)
    ]


# Ideas that stand in one place


def meters(sources: list[Source]) -> list[str]:
    """Classes named Meter: a count with its rates."""
    return [
        source.at(node, node.name)
        for source, node in classes(product(sources))
        if node.name == "Meter"
    ]


# Tests


STAND_IN = re.compile(r"^(?:Fake|Stub|Mock|Dummy)|(?:Clock|Runtime)$")


def public_methods(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        each.name
        for each in node.body
        if isinstance(each, FUNCTIONS) and not each.name.startswith("_")
    )


def classes(sources: list[Source]) -> Iterator[tuple[Source, ast.ClassDef]]:
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                yield source, node


def fakes(sources: list[Source]) -> list[str]:
    """Classes of the tests whose names say that they stand for a clock, a runtime, a ZooKeeper or
    a peer."""
    return [
        source.at(node, node.name)
        for source, node in classes(below(sources, f"{TESTS}/"))
        if STAND_IN.search(node.name)
    ]


def doubles(sources: list[Source]) -> list[str]:
    """Other classes of the tests that stand for one of ours: they have two methods or more, all of
    which it has. Derived classes of ours are not counted, nor the parts of the common ones
    and of the simulation."""
    real = [node for _, node in classes(product(sources))]
    ours = {public_methods(node) for node in real}
    bases = {node.name for node in real}
    return [
        source.at(node, node.name)
        for source, node in classes(below(sources, f"{TESTS}/"))
        if not source.path.startswith((f"{TESTS}/fakes/", f"{TESTS}/simulation/"))
        and not bases & {ast.unparse(base) for base in node.bases}
        and len(methods := public_methods(node)) > 1
        and any(methods <= each for each in ours)
    ]


NAMED_TUPLE = {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}


def private_names(sources: list[Source]) -> list[str]:
    """Private attributes of other objects that tests read or set."""
    return [
        source.at(node, ast.unparse(node))
        for source in below(sources, f"{TESTS}/")
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and re.match(r"_(?!_)", node.attr)
        and node.attr not in NAMED_TUPLE
        and ast.unparse(node.value) not in ("self", "cls", "super()")
    ]


def repeated_classes(sources: list[Source]) -> list[str]:
    """The names that more than one class has, with the places."""
    places: dict[str, list[str]] = {}
    for source, node in classes(sources):
        places.setdefault(node.name, []).append(source.at(node))
    return [f"{name}: {', '.join(at)}" for name, at in places.items() if len(at) > 1]


def repeated_in_product(sources: list[Source]) -> list[str]:
    return repeated_classes(product(sources))


def repeated_in_tests(sources: list[Source]) -> list[str]:
    return repeated_classes(below(sources, f"{TESTS}/"))


def mirrored(path: str) -> str:
    """The test of a module: ``kafka08/log/log.py`` has ``tests/log/test_log.py``."""
    folder, _, name = path.removeprefix("kafka08/").rpartition("/")
    return "/".join(filter(None, (TESTS, folder, f"test_{name}")))


def loose_in_server(sources: list[Source]) -> list[str]:
    """Modules of the server that are in none of its rooms."""
    return [s.path for s in below(sources, SERVER) if s.path.count("/") == SERVER.count("/")]


def crowded_rooms(sources: list[Source]) -> list[str]:
    """Rooms with more modules than one can oversee. Those of EQUALS are lists of like parts."""
    rooms = Counter(source.path.rpartition("/")[0] for source in product(sources))
    return [f"{r} {n}" for r, n in rooms.items() if n > MAX_ROOM and r not in EQUALS]


def long_wiring(sources: list[Source]) -> list[str]:
    """The lines of the module that starts a broker."""
    return [line for s in below(sources, f"{SERVER}broker.py") for line in s.text.splitlines()]


def lazy_loaders(sources: list[Source]) -> list[str]:
    """Modules of the server that load others by name."""
    return [s.path for s in below(sources, SERVER) if "import_module" in s.text]


def long_functions(sources: list[Source]) -> list[str]:
    """Functions over MAX_FUNCTION lines. A walk whose twin is compiled stays as its twin is."""
    return [
        source.at(function, function.name)
        for source in product(sources)
        for function in source.functions()
        if (function.end_lineno or 0) - function.lineno >= MAX_FUNCTION
        and (source.path, function.name) not in TWINS
    ]


def long_parameter_lists(sources: list[Source]) -> list[str]:
    """Functions with more than MAX_PARAMETERS, without self."""
    return [
        source.at(function, function.name)
        for source in product(sources)
        for function in source.functions()
        if len(parameters(function)) > MAX_PARAMETERS and (source.path, function.name) not in TWINS
    ]


def clusters(sources: list[Source]) -> list[str]:
    """Places that make a ClusterClient: each a kind of client, which makes one for a process.

    A tool is a process, and makes its own.
    """
    return [
        source.at(node)
        for source in below(product(sources), "kafka08/")
        for node in source.nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ClusterClient"
    ]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    every = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
    return [name for name in every if name not in ("self", "cls")]


def untested(sources: list[Source]) -> list[str]:
    """Modules without a like-named test at the mirrored place."""
    there = {source.path for source in sources}
    return [
        source.path
        for source in product(sources)
        if source.text
        and not source.path.endswith("/__init__.py")
        and mirrored(source.path) not in there
    ]


CRITERIA = [
    Criterion("functions that walk log entries by hand", 4, walks_by_hand),
    Criterion("of these, with crcs: copies of the fast path", 1, checking_walks),
    Criterion("exec, eval, compile", 0, code_from_text),
    Criterion("parameters named on_* in kafka08/server", 0, callbacks),
    Criterion("attributes set on other objects in the wiring", 0, foreign_attributes),
    Criterion("lambdas that name what is assigned later", 0, early_lambdas),
    Criterion("tasks without an owner", 0, unowned_tasks),
    Criterion("import circles", 0, circles),
    Criterion("imports of our own modules within functions", 0, late_imports),
    Criterion("`from tools` in kafka08", 0, upward_imports),
    Criterion(f"files over {MAX_LINES} lines", 0, long_files),
    Criterion("files in the middle over their own limits", 0, long_middle),
    Criterion("complexity of kafka08/message, 95th percentile", 8, complexities, percentile_95),
    Criterion(f"functions over {MAX_FUNCTION} lines", 0, long_functions),
    Criterion(f"functions over {MAX_PARAMETERS} parameters", 0, long_parameter_lists),
    Criterion("places that make a ClusterClient", 7, clusters),
    Criterion("class names used more than once", 15, repeated_in_product),
    Criterion("the same in the tests", 15, repeated_in_tests),
    Criterion("mentions of Any", 300, untyped),
    Criterion("broad excepts per 10,000 lines", 12, broad_excepts, per=10_000),
    Criterion("untyped channels", 0, untyped_channels),
    Criterion("classes Meter", 1, meters),
    Criterion('AssertionError("unreachable")', 0, unreachable_ends),
    Criterion("requests for offsets and fetches made by hand", 0, requests_by_hand),
    Criterion("modules directly in kafka08/server", 6, loose_in_server),
    Criterion("lines of kafka08/server/broker.py", 200, long_wiring),
    Criterion(f"rooms over {MAX_ROOM} modules", 0, crowded_rooms),
    Criterion("modules of kafka08/server with import_module", 1, lazy_loaders),
    Criterion("stand-ins of the unit tests", 6, fakes),
    Criterion("other classes of the tests that stand for ours", 14, doubles),
    Criterion("private names of the product in tests", 100, private_names),
    Criterion("modules without a like-named test", 29, untested),
]


def main(arguments: list[str]) -> int:
    """Print the table; with ``-v`` also what was found. 1 if a figure is above its limit."""
    sources = read()
    bad = 0
    for criterion in CRITERIA:
        value, findings = criterion.figure(sources)
        over = value > criterion.limit
        bad += over
        limit = f"<= {criterion.limit}"
        note = "TOO MUCH" if over else ""
        print(f"{criterion.name:<52} {value:>6} {limit:>6} {note}".rstrip())
        if over or "-v" in arguments:
            print("".join(f"    {each}\n" for each in findings), end="")
    count = lines(product(sources))
    for path in ROOT.glob("kafka08/_native/*.pyx"):
        count += len(path.read_text(encoding="utf-8").splitlines())
    print(f"{'lines of ' + ', '.join(CODE):<52} {count:>6}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
