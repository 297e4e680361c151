"""The names that are gone since Spark 1 and Python 2, or have no effect, and their successors."""

from __future__ import annotations

from kafka08.consumer.config import ConsumerConfig
from kafka08.spark import params

_FLUME = "have Flume's Kafka sink fill a topic, and read that with KafkaUtils"
_BRIDGE = "fill a topic from there, and read that with KafkaUtils"
_SERIALIZED = "without _SER: Python's data is always serialized"

# Modules, and what is in them, by their full names.
GONE = {
    "BaseHTTPServer": "http.server",
    "ConfigParser": "configparser",
    "Cookie": "http.cookies",
    "HTMLParser": "html.parser",
    "Queue": "queue",
    "SimpleHTTPServer": "http.server",
    "SocketServer": "socketserver",
    "StringIO": "io.StringIO for text, io.BytesIO for bytes",
    "UserDict": "collections.UserDict",
    "__builtin__": "builtins",
    "anydbm": "dbm",
    "cPickle": "pickle",
    "cStringIO": "io.StringIO for text, io.BytesIO for bytes",
    "commands": "subprocess",
    "cookielib": "http.cookiejar",
    "copy_reg": "copyreg",
    "htmlentitydefs": "html.entities",
    "httplib": "http.client",
    "md5": "hashlib.md5",
    "sets": "set",
    "sha": "hashlib.sha1",
    "thread": "threading",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "xmlrpclib": "xmlrpc.client",
    "base64.decodestring": "base64.decodebytes",
    "base64.encodestring": "base64.encodebytes",
    "collections.Callable": "collections.abc.Callable",
    "collections.Iterable": "collections.abc.Iterable",
    "collections.Mapping": "collections.abc.Mapping",
    "collections.MutableMapping": "collections.abc.MutableMapping",
    "collections.Sequence": "collections.abc.Sequence",
    "itertools.ifilter": "filter",
    "itertools.ifilterfalse": "itertools.filterfalse",
    "itertools.imap": "map",
    "itertools.izip": "zip",
    "itertools.izip_longest": "itertools.zip_longest",
    "os.getcwdu": "os.getcwd",
    "string.atoi": "int",
    "string.join": "separator.join(words)",
    "string.letters": "string.ascii_letters",
    "string.lower": "text.lower()",
    "string.lowercase": "string.ascii_lowercase",
    "string.maketrans": "str.maketrans",
    "string.replace": "text.replace(old, new)",
    "string.split": "text.split()",
    "string.strip": "text.strip()",
    "string.upper": "text.upper()",
    "string.uppercase": "string.ascii_uppercase",
    "sys.exc_clear": "nothing; an exception ends with its handler",
    "sys.maxint": "sys.maxsize",
    "sys.setdefaultencoding": "nothing; it is UTF-8",
    "time.clock": "time.perf_counter",
    "types.ListType": "list",
    "types.StringType": "str",
    "types.UnicodeType": "str",
    "urllib.quote": "urllib.parse.quote",
    "urllib.quote_plus": "urllib.parse.quote_plus",
    "urllib.unquote": "urllib.parse.unquote",
    "urllib.unquote_plus": "urllib.parse.unquote_plus",
    "urllib.urlencode": "urllib.parse.urlencode",
    "urllib.urlopen": "urllib.request.urlopen",
    "urllib.urlretrieve": "urllib.request.urlretrieve",
    "pyspark.StorageLevel.MEMORY_AND_DISK_SER": _SERIALIZED,
    "pyspark.StorageLevel.MEMORY_AND_DISK_SER_2": _SERIALIZED,
    "pyspark.StorageLevel.MEMORY_ONLY_SER": _SERIALIZED,
    "pyspark.StorageLevel.MEMORY_ONLY_SER_2": _SERIALIZED,
    "pyspark.sql.functions.callUDF": "functions.call_udf",
    "pyspark.sql.functions.cumeDist": "functions.cume_dist",
    "pyspark.sql.functions.denseRank": "functions.dense_rank",
    "pyspark.sql.functions.inputFileName": "functions.input_file_name",
    "pyspark.sql.functions.monotonicallyIncreasingId": "functions.monotonically_increasing_id",
    "pyspark.sql.functions.percentRank": "functions.percent_rank",
    "pyspark.sql.functions.rowNumber": "functions.row_number",
    "pyspark.sql.functions.sparkPartitionId": "functions.spark_partition_id",
    "pyspark.streaming.flume": _FLUME,
    "pyspark.streaming.mqtt": _BRIDGE,
    "pyspark.streaming.twitter": _BRIDGE,
    "pyspark.streaming.zeromq": _BRIDGE,
}

BUILTINS = {
    "apply": "function(*arguments)",
    "basestring": "str",
    "buffer": "memoryview",
    "cmp": "(a > b) - (a < b)",
    "execfile": "exec(open(path).read())",
    "file": "open",
    "intern": "sys.intern",
    "long": "int",
    "raw_input": "input",
    "reduce": "functools.reduce",
    "reload": "importlib.reload",
    "unichr": "chr",
    "unicode": "str",
    "xrange": "range",
}

# Attributes whose names say what they are of.
_JAR = "what KafkaUtils offers: there is no jar behind it"
METHODS = {
    "iteritems": "items()",
    "iterkeys": "keys()",
    "itervalues": "values()",
    "viewitems": "items()",
    "viewkeys": "keys()",
    "viewvalues": "values()",
    "has_key": "key in mapping",
    "jsonFile": "read.json(path)",
    "jsonRDD": "read.json(rdd)",
    "parquetFile": "read.parquet(path)",
    "inferSchema": "createDataFrame(rdd)",
    "applySchema": "createDataFrame(rdd, schema)",
    "registerAsTable": "createOrReplaceTempView(name)",
    "saveAsParquetFile": "write.parquet(path)",
    "insertIntoJDBC": "write.jdbc(url, table)",
    "createJDBCTable": "write.jdbc(url, table)",
    "clearFiles": "nothing; files stay until the context is stopped",
    "defaultMinSplits": "defaultMinPartitions",
    "_get_helper": _JAR,
    "_jBroker": _JAR,
    "_jOffsetRange": _JAR,
    "_jTopicAndPartition": _JAR,
}

# Of a DataFrame.
FRAME_METHODS = {
    "flatMap": "rdd.flatMap",
    "insertInto": "write.insertInto",
    "map": "rdd.map",
    "mapPartitions": "rdd.mapPartitions",
    "mapPartitionsWithIndex": "rdd.mapPartitionsWithIndex",
    "save": "write.save",
    "saveAsTable": "write.saveAsTable",
}

# Classes define these for Python 2; Python 3 has other names.
DEFINITIONS = {
    "__cmp__": "__lt__ and __eq__",
    "__div__": "__truediv__",
    "__nonzero__": "__bool__",
    "__unicode__": "__str__",
    "next": "__next__",
}

_NO_RECEIVER = "nothing; there is no receiver, and a batch's messages are read again from the topic"
_MEMORY = "spark.memory.fraction, or nothing"
# Nothing reads them; each stands for those with more parts, too.
CONFS = {
    "spark.akka": "nothing, or the settings spark.rpc.*",
    "spark.cleaner.ttl": "nothing",
    "spark.externalBlockStore": "nothing",
    "spark.memory.useLegacyMode": _MEMORY,
    "spark.mesos": "nothing; Spark 4 does not run on Mesos",
    "spark.shuffle.consolidateFiles": "nothing",
    "spark.shuffle.memoryFraction": _MEMORY,
    "spark.sql.dialect": "nothing",
    "spark.storage.memoryFraction": _MEMORY,
    "spark.storage.unrollFraction": _MEMORY,
    "spark.streaming.blockInterval": "nothing; an RDD has a partition for each one of Kafka",
    "spark.streaming.driver.writeAheadLog": _NO_RECEIVER,
    "spark.streaming.receiver.writeAheadLog": _NO_RECEIVER,
    "spark.tachyonStore": "nothing",
}

_FETCHES = "nothing; executors fetch the ranges of a batch"
_COMMITS = "nothing; offsets are committed after each batch that succeeded"
_ARGUMENT = "nothing; it is an argument of createStream"
# Settings of a consumer that streams of a group do not use.
UNUSED = {
    "api.versions.request": "nothing",
    "auto.commit.enable": _COMMITS,
    "auto.commit.interval.ms": _COMMITS,
    "commit.handed.out": _COMMITS,
    "consumer.timeout.ms": "nothing; a batch does not wait for messages",
    "exclude.internal.topics": "nothing; topics have names, not patterns",
    "fetch.message.limit.bytes": "nothing; a larger message is fetched too",
    "fetch.min.bytes": _FETCHES,
    "fetch.wait.max.ms": _FETCHES,
    "group.id": _ARGUMENT,
    "num.consumer.fetchers": _FETCHES,
    "offsets.commit.max.retries": "nothing; the next batch tries again",
    "queued.max.message.chunks": _FETCHES,
    "serializer.encoding": "valueDecoder",
    "socket.receive.buffer.bytes": "nothing",
    "zookeeper.connect": _ARGUMENT,
    "zookeeper.connection.timeout.ms": "nothing; it is always 10000, as it was",
}
GROUP_KEYS = ConsumerConfig.keys() - UNUSED.keys()
DIRECT_KEYS = params.KEYS
_GROUP = "nothing; the direct stream is in no group, and commits no offsets"
# Settings of a group that are common in direct streams.
DIRECT_UNUSED = {
    "auto.commit.enable": _GROUP,
    "auto.commit.interval.ms": _GROUP,
    "group.id": _GROUP,
    "zookeeper.connect": "nothing; brokers are asked",
}
