"""``kafka08-spark-submit --check JOB.py``: finds lines of a job that do not run on Spark 4 and
Python 3, or run differently. Runs nothing of the job, and does not need Spark.

Each rule is a function from one node of the syntax tree to findings. Names come from ``rules``.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from kafka08.errors import ConfigError
from kafka08.spark.structured.sink_options import sink_options
from kafka08.spark.structured.source_options import source_options
from kafka08.spark.submit import python2, rules


class Finding(NamedTuple):
    """``warns``: the job runs with it, perhaps differently."""

    line: int
    what: str
    instead: str
    warns: bool = False

    def __str__(self) -> str:
        warning = " (warning)" if self.warns else ""
        return f"{self.line}: {self.what}{warning}: {self.instead}"


class JobFile:
    """A syntax tree, and what its names stand for."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    @cached_property
    def imports(self) -> dict[str, str]:
        """Name -> the full name of what is imported by it."""
        found = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    found[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        return found

    @cached_property
    def defined(self) -> set[str]:
        """All names that the job gives to something itself."""
        found = set(self.imports)
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
        return found

    @cached_property
    def values(self) -> dict[str, list[ast.expr]]:
        """Name -> what is assigned to it, wherever that is."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    found.setdefault(ast.unparse(target), []).append(node.value)
        return found

    @cached_property
    def frames(self) -> set[str]:
        """The names of DataFrames."""
        found: set[str] = set()
        while more := {
            name
            for name, values in self.values.items()
            if name not in found and any(is_frame(value, found) for value in values)
        }:
            found |= more
        return found

    @cached_property
    def casts_are_lenient(self) -> bool:
        return any(
            isinstance(node, ast.Constant) and node.value == "spark.sql.ansi.enabled"
            for node in self.nodes
        )

    def full_name(self, node: ast.AST) -> str:
        """``pyspark.sql.functions.rowNumber`` for ``F.rowNumber``; empty for other expressions."""
        if isinstance(node, ast.Name):
            return self.imports.get(node.id, "")
        if isinstance(node, ast.Attribute) and (owner := self.full_name(node.value)):
            return f"{owner}.{node.attr}"
        return ""

    def is_tried(self, node: ast.AST) -> bool:
        """Whether there is something else for an import that fails."""
        parent = self.parents.get(node)
        return isinstance(parent, ast.Try) and node in parent.body

    def entries(self, node: ast.expr | None) -> Iterator[tuple[ast.expr, str, ast.expr]]:
        """(place, key, value) of a dictionary, or of what the job assigns to a name."""
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key, key.value, value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "dict":
            yield from ((k.value, k.arg, k.value) for k in node.keywords if k.arg)
        elif isinstance(node, ast.Name):
            for target, values in self.values.items():
                if target == node.id:
                    for value in values:
                        if not isinstance(value, ast.Name):
                            yield from self.entries(value)
                elif subscript := re.fullmatch(rf"{node.id}\[(['\"])(.*)\1\]", target):
                    yield from ((value, subscript[2], value) for value in values)


# --- Python


def _gone(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    """Imports of what is gone, and its use by its full name."""
    names: list[str] = []
    if isinstance(node, ast.Import) and not job.is_tried(node):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not job.is_tried(node):
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    elif isinstance(node, ast.Attribute):
        names = [job.full_name(node)]
    for name in names:
        short = name.replace("pyspark.storagelevel.", "pyspark.")
        if instead := rules.GONE.get(short):
            yield Finding(_line(node), f"{name} is gone", instead)


def _builtin(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    name = node.id if isinstance(node, ast.Name) else ""
    if name in rules.BUILTINS and name not in job.defined:
        yield Finding(_line(node), f"{name} is gone", rules.BUILTINS[name])


def _method(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if not isinstance(node, ast.Attribute) or node.attr in job.defined:
        return
    if instead := rules.METHODS.get(node.attr):
        yield Finding(node.lineno, f"{node.attr} is gone", instead)
    called = job.parents.get(node)
    if node.attr == "next" and isinstance(called, ast.Call) and not called.args:
        yield Finding(node.lineno, "next() of an iterator is gone", "next(iterator)")


def _definition(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if not isinstance(node, ast.ClassDef):
        return
    names = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    for name, method in names.items():
        instead = rules.DEFINITIONS.get(name, "")
        if instead and (name != "next" or "__iter__" in names):
            yield Finding(method.lineno, f"{name} of a class is not called", instead, warns=True)
    for each in node.body:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__metaclass__":
            yield Finding(each.lineno, "__metaclass__ has no effect", "class X(metaclass=M)", True)


def _printed(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    """Print statements that are expressions in Python 3."""
    if not isinstance(node, ast.Expr):
        return
    value = node.value
    if isinstance(value, ast.Tuple) and isinstance(value.elts[0], ast.Call):
        if ast.unparse(value.elts[0].func) == "print":
            text = "print statement, which prints its first part alone"
            yield Finding(node.lineno, text, "print(...) around all", warns=True)
    elif isinstance(value, ast.Name) and value.id == "print":
        yield Finding(node.lineno, "print statement, which prints nothing", "print()", warns=True)
    left = value.elts[0] if isinstance(value, ast.Tuple) else value
    while isinstance(left, ast.BinOp):
        shifted = isinstance(left.op, ast.RShift)
        left = left.left
        if shifted and isinstance(left, ast.Name) and left.id == "print":
            yield Finding(node.lineno, "print >> file", "print(..., file=file)")
        elif isinstance(left, ast.Call) and ast.unparse(left.func) == "print":
            text = "print statement, whose % would follow the call"
            yield Finding(node.lineno, text, "print(... % ...)")
            return


_VIEWS = {"keys", "values", "items"}
_ITERATORS = {"map", "filter", "zip"}


def _lists(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    """Views and iterators that were lists."""
    value, use = None, ""
    if isinstance(node, ast.Subscript):
        value, use = node.value, "has no index"
    elif isinstance(node, ast.Attribute) and node.attr in ("sort", "append", "extend"):
        value, use = node.value, f"has no {node.attr}"
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and len(node.args) == 1:
        value, use = node.args[0], "has no len"
    if not isinstance(value, ast.Call):
        return
    function = value.func
    if isinstance(function, ast.Name) and function.id in _ITERATORS - job.defined:
        yield Finding(_line(node), f"{function.id}(...) {use}", f"list({function.id}(...))")
    elif use != "has no len" and (view := _view(value)):
        yield Finding(_line(node), f"{view}() {use}", f"list(d.{view}())")


def _view(call: ast.Call) -> str:
    """``keys`` for ``d.keys()``; empty for other calls."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in _VIEWS and not call.args:
        return function.attr
    return ""


def _compared(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if not isinstance(node, ast.Call) or not any(each.arg == "cmp" for each in node.keywords):
        return
    if ast.unparse(node.func).rpartition(".")[2] in ("sort", "sorted"):
        yield Finding(node.lineno, "sort with cmp", "key=functools.cmp_to_key(...)")


def _division(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return
    if _is_whole(node.left) and _is_whole(node.right):
        yield Finding(node.lineno, "division of integers gives a float", "//", warns=True)


def _is_whole(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in ("len", "count", "int")
    return isinstance(node, ast.Constant) and type(node.value) is int


_CODECS = {"hex", "base64", "string_escape", "zip", "bz2", "rot13"}


def _coded(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    method, codec = node.func.attr, _text(node.args[0]) if node.args else ""
    if method not in ("encode", "decode"):
        return
    if codec in _CODECS:
        yield Finding(node.lineno, f"{method}({codec!r}) is gone", "codecs, binascii or base64")
    elif method == "decode":
        text = "decode fails for str, which keys and values are without a decoder of the job"
        yield Finding(node.lineno, text, "without decode", warns=True)
    elif node.args:
        text = "encode gives bytes, which do not mix with str"
        yield Finding(node.lineno, text, "without encode", warns=True)


def _raised(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Constant | ast.JoinedStr):
        yield Finding(node.lineno, "a text is raised", "raise Exception(text)")


# --- Spark


def is_frame(node: ast.AST, frames: set[str]) -> bool:
    """Whether an expression is a DataFrame, as far as names tell."""
    if isinstance(node, ast.Name):
        return node.id in frames
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    method, owner = node.func.attr, node.func.value
    if method in _MAKES_FRAMES:
        return True
    if method in _READS_FRAMES:
        return bool(re.search(r"\.read(Stream)?\b", ast.unparse(owner)))
    return method in _KEEPS_FRAMES and is_frame(owner, frames)


_MAKES_FRAMES = {"createDataFrame", "sql", "toDF", "jsonRDD", "jsonFile", "parquetFile"}
_MAKES_FRAMES |= {"inferSchema", "applySchema"}
_READS_FRAMES = {"load", "json", "parquet", "csv", "jdbc", "orc", "table", "text"}
_KEEPS_FRAMES = {"select", "selectExpr", "filter", "where", "join", "withColumn", "drop", "limit"}
_KEEPS_FRAMES |= {"withColumnRenamed", "orderBy", "sort", "distinct", "unionAll", "union", "cache"}
_KEEPS_FRAMES |= {"persist", "repartition", "coalesce", "agg", "dropDuplicates", "sample", "alias"}


def _frame(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if not isinstance(node, ast.Attribute) or node.attr not in rules.FRAME_METHODS:
        return
    if is_frame(node.value, job.frames):
        instead = rules.FRAME_METHODS[node.attr]
        yield Finding(node.lineno, f"DataFrame.{node.attr} is gone", instead)


_CONTEXT = re.compile(r"(SQL|Hive)Context\(")


def _loaded(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if isinstance(node, ast.Attribute) and node.attr == "load":
        owner = ast.unparse(node.value)
        made = [ast.unparse(value) for value in job.values.get(owner, ())]
        if any(_CONTEXT.search(text) for text in (owner, *made)):
            yield Finding(node.lineno, "load of a context is gone", "read.load(path)")


def _jvm(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    """The outermost name of a class of the jar."""
    if not isinstance(node, ast.Attribute) or isinstance(job.parents.get(node), ast.Attribute):
        return
    if re.search(r"\b_jvm\.(.*\.)?kafka\b", ast.unparse(node)):
        yield Finding(node.lineno, "classes of the jar are gone", "what KafkaUtils offers")


_LENIENT = {"string", "binary", "StringType", "BinaryType"}
_CAST = re.compile(r"(?i)\bcast\s*\(.*?\bas\s+(\w+)")


def _cast(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if job.casts_are_lenient:
        return
    types: list[str] = []
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        types = _CAST.findall(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        name = _text(node.args[0]) or ast.unparse(node.args[0]).partition("(")[0]
        types = [name] if node.func.attr in ("cast", "astype") else []
    for name in types:
        if name.rpartition(".")[2] not in _LENIENT and name.lower() not in _LENIENT:
            what = f"a cast to {name} fails for other text, where it gave null"
            yield Finding(
                _line(node), what, "try_cast, or spark.sql.ansi.enabled=false", warns=True
            )


def _conf(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        for key, instead in rules.CONFS.items():
            if node.value == key or node.value.startswith(f"{key}."):
                yield Finding(node.lineno, f"{node.value} has no effect", instead, warns=True)


# --- Kafka


class _Signature(NamedTuple):
    """Where the arguments of a function of KafkaUtils are."""

    params: int
    decoders: int
    known: frozenset[str]
    unused: Mapping[str, str]


_DIRECT = (frozenset(rules.DIRECT_KEYS), rules.DIRECT_UNUSED)
_SIGNATURES = {
    "createStream": _Signature(4, 6, frozenset(rules.GROUP_KEYS), rules.UNUSED),
    "createDirectStream": _Signature(2, 4, *_DIRECT),
    "createRDD": _Signature(1, 4, *_DIRECT),
}


def _argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    named = [each.value for each in call.keywords if each.arg == name]
    return named[0] if named else next(iter(call.args[position : position + 1]), None)


def _kafka_params(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    signature = _signature(node)
    if signature is None:
        return
    assert isinstance(node, ast.Call)
    for place, key, value in job.entries(_argument(node, "kafkaParams", signature.params)):
        if key not in signature.known:
            instead = signature.unused.get(key, "nothing")
            yield Finding(place.lineno, f"{key} has no effect", instead, warns=True)
        elif key == "auto.offset.reset" and _text(value) not in ("", "smallest", "largest"):
            what = f"auto.offset.reset has value {_text(value)}, which 0.8 does not have"
            yield Finding(place.lineno, what, "smallest or largest", warns=signature.params < 4)


def _decoders(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    signature = _signature(node)
    if signature is None:
        return
    assert isinstance(node, ast.Call)
    for number, name in enumerate(("keyDecoder", "valueDecoder")):
        decoder = _argument(node, name, signature.decoders + number)
        if decoder is not None and "decode" not in _body(decoder, job):
            what = f"{name} gets bytes, where it got str"
            yield Finding(decoder.lineno, what, "data.decode('utf-8') first, for str", warns=True)


def _raw(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    if isinstance(node, ast.Attribute) and node.attr in ("_rawKey", "_rawMessage"):
        yield Finding(node.lineno, f"{node.attr} is bytes, where it was str", "key, message", True)


def _signature(node: ast.AST) -> _Signature | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _SIGNATURES.get(node.func.attr)
    return None


def _body(node: ast.expr, job: JobFile) -> str:
    """The source of a function that is given."""
    if isinstance(node, ast.Name):
        made = [f for f in job.nodes if isinstance(f, ast.FunctionDef) and f.name == node.id]
        lambdas = [v for v in job.values.get(node.id, ()) if isinstance(v, ast.Lambda)]
        return " ".join(ast.unparse(each) for each in (*made, *lambdas, node))
    return ast.unparse(node)


_SPARKS = """
    subscribe subscribePattern assign startingOffsets endingOffsets
    startingTimestamp endingTimestamp
    startingOffsetsByTimestamp endingOffsetsByTimestamp startingOffsetsByTimestampStrategy
    failOnDataLoss kafkaConsumer.pollTimeoutMs fetchOffset.numRetries fetchOffset.retryIntervalMs
    maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay minPartitions maxRecordsPerPartition
    groupIdPrefix includeHeaders topic checkpointLocation queryName path
"""
_KNOWN_TO_SPARK = {name.lower() for name in _SPARKS.split()}


def _format(node: ast.AST, job: JobFile) -> Iterator[Finding]:
    """The options in a chain of calls around ``.format("kafka08")``."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(".format"):
        return
    name = _text(node.args[0]) if node.args else ""
    chain = list(_chain(node, job))
    given = [each for call in chain for each in _options(call, job)]
    if name == "kafka08":
        yield from _kafka08_options(node, [ast.unparse(node.func), *map(ast.unparse, chain)], given)
    elif name == "kafka":
        for place, key, _ in given:
            if key.lower() not in _KNOWN_TO_SPARK and not key.lower().startswith("kafka."):
                what = f"the option {key} has no effect"
                yield Finding(place.lineno, what, "an option of Spark's Kafka source", warns=True)


def _chain(node: ast.Call, job: JobFile) -> Iterator[ast.Call]:
    """The calls before and behind ``node``: ``a.b().node().c()``."""
    before: ast.AST = node
    while isinstance(before, ast.Call) and isinstance(before.func, ast.Attribute):
        before = before.func.value
        if isinstance(before, ast.Call):
            yield before
    behind = job.parents.get(node)
    while isinstance(behind, ast.Attribute | ast.Call):
        if isinstance(behind, ast.Call):
            yield behind
        behind = job.parents.get(behind)


def _options(call: ast.Call, job: JobFile) -> Iterator[tuple[ast.expr, str, str]]:
    """(place, name, value) of those whose name is in the source; a value that is not is empty."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method == "option" and len(call.args) == 2 and (key := _text(call.args[0])):
        yield call.args[0], key, _text(call.args[1])
    if method in ("options", "load", "save", "start"):
        for keyword in call.keywords:
            if keyword.arg is None:
                for place, key, value in job.entries(keyword.value):
                    yield place, key, _text(value)
            elif method == "options":
                yield keyword.value, keyword.arg, _text(keyword.value)


def _kafka08_options(
    node: ast.Call, texts: list[str], given: list[tuple[ast.expr, str, str]]
) -> Iterator[Finding]:
    """The errors that the format has for them, one after the other."""
    text = max(texts, key=len)
    is_sink, streaming = ".write" in text, "Stream" in text
    lines = {key: place.lineno for place, key, _ in given}
    left = {key: value for _, key, value in given if value}
    left.setdefault("kafka.bootstrap.servers", "localhost:9092")
    if not {"subscribe", "subscribePattern", "assign"} & left.keys():
        left["subscribe"] = "t"
    while True:
        try:
            if is_sink:
                sink_options(left, {"value": "binary", "topic": "string"})
            else:
                source_options(left, streaming=streaming)
            return
        except ConfigError as error:
            named = [key for key in left if key.lower() in str(error).lower()]
            wrong = max(named, key=len, default="")
            yield Finding(lines.get(wrong, node.lineno), str(error), "an option in docs/spark.md")
            if left.pop(wrong, None) is None:
                return


def _text(node: ast.AST) -> str:
    """The value of a constant as text; empty for other expressions."""
    if not isinstance(node, ast.Constant) or node.value is None:
        return ""
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.value)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


Rule = Callable[[ast.AST, JobFile], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    *(_gone, _builtin, _method, _definition, _printed, _lists, _compared, _division, _coded),
    *(_raised, _frame, _loaded, _jvm, _cast, _conf, _kafka_params, _decoders, _raw, _format),
)


def findings(data: bytes) -> list[Finding]:
    """Of a source, by lines."""
    source = _decoded(data)
    found: list[Finding] = []
    try:
        tree = ast.parse(source)
    except SyntaxError:
        source, old = python2.translated(source)
        found += [Finding(*each) for each in old]
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            found.append(Finding(error.lineno or 1, str(error.msg), "syntax of Python 3"))
            return sorted(found)
    job = JobFile(tree)
    found += [each for node in job.nodes for rule in RULES for each in rule(node, job)]
    return sorted(set(found))


def _decoded(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").removeprefix("\ufeff")


def main(paths: list[str]) -> int:
    """1 if a job will not run, or cannot be read."""
    if not paths:
        print("kafka08-spark-submit --check needs the path of a job", file=sys.stderr)
        return 1
    status = 0
    for path in paths:
        try:
            found = findings(Path(path).read_bytes())
        except OSError as error:
            print(f"{path}: {error.strerror}", file=sys.stderr)
            status = 1
            continue
        for each in found:
            print(f"{path}:{each}")
        wrong = sum(not each.warns for each in found)
        status |= wrong > 0
        print(f"{path}: {wrong} to change, {len(found) - wrong} warnings", file=sys.stderr)
    return status
