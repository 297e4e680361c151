from __future__ import annotations

import ast

import pytest

from kafka08.spark.submit import python2


@pytest.mark.parametrize(
    ("source", "parsed", "what"),
    [
        ('print "a", b\n', 'print, "a", b\n', "print statement"),
        ("print u'ä'\n", "print, u'ä'\n", "print statement"),
        ("if x: print `y`\n", "if x: print, repr(y)\n", "backticks"),
        ("print x; print y\n", "print, x; print, y\n", "print statement"),
        ('print "%d" % \\\n  3\n', 'print, "%d" % \\\n  3\n', "print statement"),
        ("try:\n  f()\nexcept E, e: pass\n", "try:\n  f()\nexcept E as  e: pass\n", "except"),
        (
            "try:\n  f()\nexcept (A, b.B), e:\n  pass\n",
            "try:\n  f()\nexcept (A, b.B) as  e:\n  pass\n",
            "except",
        ),
        ('raise E, "a, b"\n', 'raise E; "a, b"\n', "raise"),
        ("raise m.E(1), None, t\n", "raise m.E(1); None, t\n", "raise"),
        ("f(lambda (k, v): k)\n", "f(lambda  k, v : k)\n", "lambda"),
        ("lambda a, (b, (c, d)): a\n", "lambda a,  b,  c, d  : a\n", "lambda"),
        ("def f(a, (b, c)): pass\n", "def f(a,  b, c ): pass\n", "parameter"),
        ("a <> b\n", "a != b\n", "operator"),
        ("x = 0755\n", "x = 0o755\n", "octal"),
        ("x = 10L + 0xFFl\n", "x = 10 + 0xFF\n", "long"),
        ("x = 017L\n", "x = 0o17\n", "octal"),
        ('x = ur"\\d"\n', 'x = r"\\d"\n', "prefix"),
        ('exec "a = 1" in {}\n', 'exec, "a = 1" in {}\n', "exec"),
        ("f(async=True)\n", "f(async_=True)\n", "keyword"),
        ("x.async\n", "x.async_\n", "keyword"),
        ("if x:\n    a\n\tb\n", "if x:\n    a\n        b\n", "tabs"),
    ],
)
def test_python_2(source: str, parsed: str, what: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(source)
    made, found = python2.translated(source)
    assert made == parsed
    assert any(what in each.what for each in found)
    assert {each.line for each in found} <= set(range(1, source.count("\n") + 1))
    if "tabs" not in what:
        ast.parse(made)


def test_lines_are_those_of_the_source() -> None:
    source = '"""\nprint x\n"""\nprint 1L\n\n# print y\nx = "except A, e:"\nprint x\n'
    made, found = python2.translated(source)
    assert [(each.line, each.what) for each in found] == [
        (4, "long integer"),
        (4, "print statement"),
        (8, "print statement"),
    ]
    assert made.count("\n") == source.count("\n")
    ast.parse(made)


@pytest.mark.parametrize(
    "source",
    [
        "print('a')\nprint(b, file=c)\n",
        "lambda a=(1, 2): a\n",
        "def f(a=(1, 2), b=g(3)) -> int: pass\n",
        "try:\n    f()\nexcept (A, B) as e:\n    raise C(1, 2) from e\n",
        "x = [0, 00, 0.5, 07.5, 10_0, 0o7, a[1:2]]\n",
        "async def f():\n    async with a: await b\n",
        "s = 'it' \"'s\" '''print \"x\"\n`y`'''\nprint_it = s\n",
        "f(x, # lambda (a, b): a\n  y)\n",
    ],
)
def test_python_3_stays_as_it_is(source: str) -> None:
    ast.parse(source)
    assert python2.translated(source) == (source, [])
