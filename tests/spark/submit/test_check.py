from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.spark.submit import check

STREAM = "from pyspark.streaming.kafka import KafkaUtils\n"


def said(source: str) -> list[str]:
    return [str(each) for each in check.findings(source.encode())]


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        # Python
        ("import urllib2", "1: urllib2 is gone: urllib.request"),
        ("from itertools import izip", "1: itertools.izip is gone: zip"),
        ("import itertools as it\nit.imap", "2: itertools.imap is gone: map"),
        ("import sys\nsys.maxint", "2: sys.maxint is gone: sys.maxsize"),
        ("for i in xrange(3): pass", "1: xrange is gone: range"),
        ("for k in d.iteritems(): pass", "1: iteritems is gone: items()"),
        ("d.has_key(1)", "1: has_key is gone: key in mapping"),
        ("lines.next()", "1: next() of an iterator is gone: next(iterator)"),
        ("d.keys()[0]", "1: keys() has no index: list(d.keys())"),
        ("d.values().sort()", "1: values() has no sort: list(d.values())"),
        ("map(f, x)[0]", "1: map(...) has no index: list(map(...))"),
        ("len(filter(f, x))", "1: filter(...) has no len: list(filter(...))"),
        ("sorted(x, cmp=f)", "1: sort with cmp: key=functools.cmp_to_key(...)"),
        ("len(x) / 2", "1: division of integers gives a float (warning): //"),
        ("s.encode('hex')", "1: encode('hex') is gone: codecs, binascii or base64"),
        ("x[1].encode('utf-8')", "1: encode gives bytes, which do not mix with str (warning): "),
        ("x[1].decode('utf-8')", "1: decode fails for str, which keys and values are"),
        ("raise 'x'", "1: a text is raised: raise Exception(text)"),
        ("print >>f, x", "1: print >> file: print(..., file=file)"),
        ("print", "1: print statement, which prints nothing (warning): print()"),
        ("print ('a'), b", "1: print statement, which prints its first part alone (warning): "),
        ("print ('%d') % b", "1: print statement, whose % would follow the call: "),
        ("print 'a'", "1: print statement: print(...)"),
        ("class A:\n  def __nonzero__(self): pass", "2: __nonzero__ of a class is not called"),
        (
            "class A:\n  def __iter__(self): pass\n  def next(self): pass",
            "3: next of a class is not called (warning): __next__",
        ),
        ("class A:\n  __metaclass__ = M", "2: __metaclass__ has no effect (warning): "),
        # Spark
        ("from pyspark.streaming.flume import FlumeUtils", "1: pyspark.streaming.flume is gone: "),
        (
            "from pyspark import StorageLevel as L\nL.MEMORY_ONLY_SER",
            "2: pyspark.StorageLevel.MEMORY_ONLY_SER is gone: ",
        ),
        (
            "from pyspark.storagelevel import StorageLevel\nStorageLevel.MEMORY_AND_DISK_SER",
            "2: pyspark.storagelevel.StorageLevel.MEMORY_AND_DISK_SER is gone: ",
        ),
        (
            "import pyspark.sql.functions as F\nF.rowNumber()",
            "2: pyspark.sql.functions.rowNumber is gone: functions.row_number",
        ),
        ("context.jsonRDD(rdd)", "1: jsonRDD is gone: read.json(rdd)"),
        ("df = ctx.sql('x')\ndf.map(f)", "2: DataFrame.map is gone: rdd.map"),
        ("a = s.read.json(p)\nb = a.select('x')\nb.flatMap(f)", "3: DataFrame.flatMap is gone: "),
        ("ctx.sql('x').where('y').saveAsTable('t')", "1: DataFrame.saveAsTable is gone: "),
        ("c = SQLContext(sc)\nc.load(p)", "2: load of a context is gone: read.load(path)"),
        ("sc._jvm.org.apache.spark.streaming.kafka.X()", "1: classes of the jar are gone: "),
        ("KafkaUtils._get_helper(sc)", "1: _get_helper is gone: "),
        ("df.a.cast('int')", "1: a cast to int fails for other text, where it gave null (warning)"),
        ("df.a.cast(IntegerType())", "1: a cast to IntegerType fails for other text"),
        ("df.selectExpr('cast(a as double) x')", "1: a cast to double fails for other text"),
        ("c.set('spark.akka.threads', 2)", "1: spark.akka.threads has no effect (warning): "),
        (
            "c.set('spark.streaming.receiver.writeAheadLog.enable', 'true')",
            "1: spark.streaming.receiver.writeAheadLog.enable has no effect (warning): nothing; ",
        ),
        # Kafka
        (
            "KafkaUtils.createDirectStream(s, t, {'group.id': 'g'})",
            "1: group.id has no effect (warning): nothing; the direct stream is in no group",
        ),
        (
            "p = {'metadata.broker.list': b}\np['zookeeper.connect'] = z\n"
            "KafkaUtils.createRDD(sc, p, r)",
            "2: zookeeper.connect has no effect (warning): nothing; brokers are asked",
        ),
        (
            "p = dict(foo='x')\nKafkaUtils.createDirectStream(s, t, kafkaParams=p)",
            "1: foo has no effect (warning): nothing",
        ),
        (
            "KafkaUtils.createStream(s, z, 'g', {}, {'auto.commit.enable': 'false'})",
            "1: auto.commit.enable has no effect (warning): nothing; offsets are committed after",
        ),
        (
            "KafkaUtils.createDirectStream(s, t, {'auto.offset.reset': 'earliest'})",
            "1: auto.offset.reset has value earliest, which 0.8 does not have (warning): smallest",
        ),
        (
            "KafkaUtils.createStream(s, z, 'g', {}, {'auto.offset.reset': 'earliest'})",
            "1: auto.offset.reset has value earliest, which 0.8 does not have: smallest or largest",
        ),
        (
            "KafkaUtils.createDirectStream(s, t, p, valueDecoder=lambda v: v.split(','))",
            "1: valueDecoder gets bytes, where it got str (warning): data.decode('utf-8') first",
        ),
        (
            "def f(v):\n  return v\nKafkaUtils.createRDD(s, p, r, None, f)",
            "3: keyDecoder gets bytes, where it got str (warning): ",
        ),
        ("m._rawMessage", "1: _rawMessage is bytes, where it was str (warning): key, message"),
        (
            "r.format('kafka08')\\\n.option('subscribe', 't')\\\n.option('startingOfsets', 'x')",
            "3: Option startingofsets (x) is unknown; did you mean startingOffsets?",
        ),
        (
            "o = {'kafka.group.id': 'g'}\ns.readStream.format('kafka08').options(**o).load()",
            "1: kafka.group.id has value g, which is not supported: ",
        ),
        (
            "s.readStream.format('kafka08').options(endingOffsets='latest')",
            "1: endingOffsets has value latest: a stream has no end",
        ),
        (
            "df.write.format('kafka08').option('kafka.transactional.id', 'x').save()",
            "1: kafka.transactional.id has value x, which is not supported: ",
        ),
        (
            "s.read.option('foo', 1).format('kafka').load()",
            "1: the option foo has no effect (warning): an option of Spark's Kafka source",
        ),
    ],
)
def test_a_finding(source: str, finding: str) -> None:
    found = said(source)
    assert len(found) == 1, found
    assert found[0].startswith(finding)


@pytest.mark.parametrize(
    "source",
    [
        STREAM + "KafkaUtils.createDirectStream(s, ['t'], {'metadata.broker.list': 'h:1'})",
        "try:\n  import cPickle as pickle\nexcept ImportError:\n  import pickle",
        "try:\n  unicode\nexcept NameError:\n  unicode = str\nunicode(x)",
        "from functools import reduce\nreduce(f, x)",
        "class Source:\n  def iteritems(self): pass\nSource().iteritems()",
        "rdd = sc.parallelize([1]).map(f)\nrdd.map(g).flatMap(h)",
        "df = ctx.sql('x')\ndf.rdd.map(f)\ndf.registerTempTable('t')\ndf.unionAll(df)",
        "HiveContext(sc).sql('select 1')",
        "df.a.cast('string')\nctx.sql('select cast(a as STRING) from t')",
        "c.set('spark.sql.ansi.enabled', 'false')\ndf.a.cast('int')",
        "KafkaUtils.createDirectStream(s, t, p, valueDecoder=lambda v: v.decode())",
        "from kafka import KafkaProducer\nproducer = KafkaProducer()\nfor x in range(3): print(x)",
        "KafkaUtils.createStream(s, z, 'g', {}, {'auto.offset.reset': 'smallest'})",
        "s.readStream.format('kafka08').options(subscribe=t, maxOffsetsPerTrigger=9)",
        "df.writeStream.format('kafka08').option('topic', 't').option('checkpointLocation', d)",
        "s.read.format('json').option('foo', 1).load()",
        "len(x) // 2\nx / 2",
    ],
)
def test_nothing_is_found(source: str) -> None:
    assert [each for each in said(source) if "decode fails" not in each] == []


def test_python_2_is_checked_as_far_as_names_go() -> None:
    source = "import urllib2\nprint 'a'\nfor k in d.iteritems():\n    print k\n"
    assert [each.partition(":")[0] for each in said(source)] == ["1", "2", "3", "4"]


def test_what_is_neither_python_2_nor_3() -> None:
    found = said("print 'a'\nx = = 1\nimport urllib2\n")
    assert found[0] == "1: print statement: print(...)"
    assert found[1].startswith("2: ")
    assert len(found) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfimport urllib2\r\n",
        b"# -*- coding: latin-1 -*-\nimport urllib2 # \xe4\n",
        b"# no coding \xe4\nimport urllib2\n",
        b"# coding: none-such\nimport urllib2\n",
    ],
)
def test_files_in_any_encoding(data: bytes) -> None:
    assert [each.what for each in check.findings(data)] == ["urllib2 is gone"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, warned, wrong = (tmp_path / name for name in ("good.py", "warned.py", "wrong.py"))
    good.write_text("x = 1\n")
    warned.write_text("m._rawKey\n")
    wrong.write_text("m._rawKey\nxrange(3)\n")
    assert check.main([str(good), str(warned)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{warned}:1: _rawKey is bytes, where it was str (warning): key, message\n"
    assert err == f"{good}: 0 to change, 0 warnings\n{warned}: 0 to change, 1 warnings\n"
    assert check.main([str(wrong), str(tmp_path / "none.py")]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[1] == f"{wrong}:2: xrange is gone: range"
    assert err.endswith("none.py: No such file or directory\n")
    assert check.main([]) == 1
