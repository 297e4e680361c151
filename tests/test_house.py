"""The structure of the code stays within its limits, and every criterion finds what it is for."""

from __future__ import annotations

import pytest

from tests import house
from tests.house import CRITERIA, Criterion, Source

SOURCES = house.read()


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda criterion: str(criterion.name))
def test_the_code_is_within_the_limit(criterion: Criterion) -> None:
    value, findings = criterion.figure(SOURCES)
    assert value <= criterion.limit, "\n".join(findings)


WALK = """
def walk(view, position, end):
    while position < end:
        offset, size = OFFSET_AND_SIZE.unpack_from(view, position)
        {check}
        position += LOG_OVERHEAD + size
"""
EARLY = """
class A:
    def __init__(self):
        self._made = lambda: self._later.x
        self._later = B()
"""
SWITCH = "def f(a, b):\n    if a and b:\n        return [x for x in a if x]\n    return b or a\n"


@pytest.mark.parametrize(
    ("find", "path", "wrong", "right"),
    [
        (house.walks_by_hand, "tools/x.py", WALK.format(check="pass"), "def f():\n    walk(view)"),
        (
            house.checking_walks,
            "tools/x.py",
            WALK.format(check="has_right_crc(view)"),
            WALK.format(check="pass"),
        ),
        (house.code_from_text, "zk/x.py", "exec('a = 1')", "re.compile('a')\nos.execv(a, b)"),
        (house.callbacks, "kafka08/server/x.py", "def f(on_end): ...", "def f(end): ..."),
        (
            house.foreign_attributes,
            "kafka08/server/broker.py",
            "self.log.owner = self",
            "self.log = Log()",
        ),
        (
            house.early_lambdas,
            "zk/x.py",
            EARLY,
            EARLY.replace("        self._later = B()\n", ""),
        ),
        (
            house.early_lambdas,
            "zk/x.py",
            "def f():\n    g = lambda: a\n    a = 1",
            "def f():\n    a = 1\n    return lambda b: a + b",
        ),
        (house.long_wiring, "kafka08/server/broker.py", "a = 1", ""),
        (
            house.long_parameter_lists,
            "zk/x.py",
            "def f(a, b, c, d, e, f, g, h, *, i): ...",
            "def f(self, a, b, c, d, e, f, g, *, h): ...",
        ),
        (
            house.long_functions,
            "zk/x.py",
            "def f():" + "\n    a = 1" * 60,
            "def f():" + "\n    a = 1" * 59,
        ),
        (house.clusters, "kafka08/x.py", "ClusterClient([])", "cluster.close()"),
        (house.lazy_loaders, "kafka08/server/x/y.py", "import_module('z')", "import z"),
        (house.unowned_tasks, "zk/x.py", "gevent.spawn(f)", "self.task = gevent.spawn(f)"),
        (house.circles, "zk/x.py", "def f():\n    from zk import y", "from zk import z"),
        (
            house.late_imports,
            "zk/y.py",
            "def f():\n    from zk.x import a",
            "from zk.x import a\ndef f():\n    import json",
        ),
        (
            house.upward_imports,
            "kafka08/x.py",
            "from tools.options import run_tool",
            "from kafka08.topics import tools",
        ),
        (house.long_files, "zk/x.py", "a = 1\n" * 601, "a = 1\n" * 600),
        (
            house.long_middle,
            "kafka08/server/apis/fetch.py",
            "a = 1\n" * 171,
            "a = 1\n" * 170,
        ),
        (house.broad_excepts, "zk/x.py", "try: f()\nexcept: g()", "try: f()\nexcept A: g()"),
        (house.meters, "tools/x.py", "class Meter: ...", "class RequestMeter: ..."),
        (house.untyped, "zk/x.py", "a: list[Any]", "from typing import Any"),
        (
            house.requests_by_hand,
            "zk/x.py",
            "requests.fetch_request({}, 1)",
            "reading.fetch(call, {}, 1)",
        ),
        (
            house.unreachable_ends,
            "zk/x.py",
            'raise AssertionError("unreachable")',
            "raise KafkaError('unreachable')",
        ),
        (
            house.untyped_channels,
            "zk/x.py",
            "def f(channel: Callable[..., Any]): ...",
            "def f(channel: Connect, other: Any): ...",
        ),
    ],
)
def test_a_criterion_finds_what_it_is_for(
    find: house.Finder, path: str, wrong: str, right: str
) -> None:
    others = [Source("zk/x.py", ""), Source("zk/y.py", "import zk.x")]

    def found(text: str) -> list[str]:
        return find([each for each in others if each.path != path] + [Source(path, text)])

    assert found(wrong) != []
    assert found(right) == []


def test_complexity_is_one_more_than_the_decisions() -> None:
    assert house.complexities([Source("kafka08/message/x.py", SWITCH)]) == [
        "6 kafka08/message/x.py:1 f"
    ]


def test_a_figure_may_be_per_lines() -> None:
    criterion = Criterion("of Any", 1, house.untyped, per=1000)
    assert criterion.figure([Source("zk/x.py", "a: Any\n" + "b = 1\n" * 399)]).value == 3


def test_the_percentile_leaves_out_the_largest_of_twenty() -> None:
    assert house.percentile_95([str(number) for number in range(1, 21)]) == 19


def test_rooms_of_the_server() -> None:
    few = [Source(f"kafka08/server/{path}.py", "") for path in ("a", "logs/b", "logs/c")]
    assert house.loose_in_server(few) == ["kafka08/server/a.py"]
    assert house.crowded_rooms(few) == []
    names = [f"{room}/m{number}" for room in ("apis", "logs") for number in range(19)]
    many = [Source(f"kafka08/server/{name}.py", "") for name in names]
    many += [Source(f"zk/m{number}.py", "") for number in range(18)]
    assert house.crowded_rooms(many) == ["kafka08/server/logs 19"]


def test_a_module_has_its_test_at_the_mirrored_place() -> None:
    paths = ["kafka08/log/x.py", "tools/logs/x.py", "kafka08/y.py", "zk/__init__.py"]
    modules = [Source(path, "a = 1") for path in paths]
    assert house.untested(modules) == paths[:3]
    tests = ["tests/log/test_x.py", "tests/tools/logs/test_x.py", "tests/test_y.py"]
    assert house.untested(modules + [Source(path, "") for path in tests]) == []


def test_a_stand_in_is_known_by_its_methods() -> None:
    ours = Source("zk/x.py", "class A:\n    def f(): ...\n    def g(): ...\n    def h(): ...")
    text = "class B{}:\n    def f(): ...\n    def {}(): ..."
    for base, method, found in (("", "g", 1), ("", "other", 0), ("", "_g", 0), ("(A)", "g", 0)):
        test = Source("tests/x.py", text.format(base, method))
        assert house.doubles([ours, test]) == ["tests/x.py:1 B"] * found


def test_private_names_are_those_of_other_objects_in_tests() -> None:
    text = "self._a\nsuper()._b\nx._replace(a=1)\nx.__dict__\nx.a._c\n"
    assert house.private_names([Source("tests/x.py", text), Source("zk/x.py", text)]) == [
        "tests/x.py:5 x.a._c"
    ]


def test_classes_of_one_name_are_counted_as_one() -> None:
    once = "class A: ...\nclass B:\n    class C: ...\n"
    twice = [Source("zk/x.py", once), Source("tools/y.py", "class C: ...\n")]
    tests = [Source("tests/x.py", once), Source("tests/y.py", "class A: ...\n")]
    assert house.repeated_in_product(twice + tests) == ["C: zk/x.py:3, tools/y.py:1"]
    assert house.repeated_in_tests(twice + tests) == ["A: tests/x.py:1, tests/y.py:1"]


def test_stand_ins_are_counted_in_the_tests_alone() -> None:
    text = "class FakeZooKeeper: ...\ndef f():\n    class Clock: ...\nclass Unlike: ...\n"
    assert house.fakes([Source("tests/x.py", text), Source("zk/x.py", text)]) == [
        "tests/x.py:1 FakeZooKeeper",
        "tests/x.py:3 Clock",
    ]
