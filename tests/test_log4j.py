from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from pathlib import Path

import pytest

from kafka08.log4j import (
    TRACE,
    DailyRollingFileHandler,
    PatternLayout,
    configure,
    option_words,
)
from kafka08.protocol.schemas import ConsumerMetadataRequest, RequestHeader
from kafka08.server.requests import request_log

CONFIG = Path(__file__).parent.parent / "config"


@pytest.fixture(autouse=True)
def _keep_logging(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KAFKA_LOG4J_OPTS", raising=False)
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    monkeypatch.delenv("LOG_DIR", raising=False)
    monkeypatch.setattr(logging, "raiseExceptions", True)
    manager = logging.root.manager
    before = {
        logger: (logger.level, list(logger.handlers), logger.propagate)
        for logger in [logging.root, *manager.loggerDict.values()]
        if isinstance(logger, logging.Logger)
    }
    yield
    for logger in [logging.root, *manager.loggerDict.values()]:
        if isinstance(logger, logging.Logger):
            level, handlers, propagate = before.get(logger, (logging.NOTSET, [], True))
            for handler in set(logger.handlers) - set(handlers):
                handler.close()
            logger.handlers[:] = handlers
            logger.propagate = propagate
            logger.setLevel(level)


def record(level: int = logging.INFO, text: str = "text", created: float = 0.0):
    made = logging.LogRecord("kafka.server.KafkaServer", level, "f.py", 7, text, (), None)
    if created:
        made.created, made.msecs = created, created % 1 * 1000
    return made


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("%m%n", "text"),
        ("%p %m (%c)%n", "INFO text (kafka.server.KafkaServer)"),
        ("%-6p|%6p|%.2p", "INFO  |  INFO|FO"),
        ("%c{1} %L %F %% %m", "KafkaServer 7 f.py % text"),
        ("%d %m", "2013-04-22 15:01:37,500 text"),
        ("%d{ISO8601}", "2013-04-22 15:01:37,500"),
        ("%d{ABSOLUTE}", "15:01:37,500"),
        ("%d{DATE}", "22 Apr 2013 15:01:37,500"),
        ("%d{yyyy/MM/dd 'at' HH}", "2013/04/22 at 15"),
        ("%d{EEE h a}", "Mon 3 PM"),
    ],
)
def test_pattern_layout(pattern: str, expected: str) -> None:
    moment = time.mktime((2013, 4, 22, 15, 1, 37, 0, 0, -1)) + 0.5
    assert PatternLayout(pattern).format(record(created=moment)) == expected


class TestForgedLines:
    """Text from clients appears in log messages, and cannot look like further log lines."""

    HOSTILE = "c\r\n[2013-04-22 15:01:37,500] FATAL gone (kafka.x)\x1b[2J\x00\x85\u2028\u202e"
    SAFE = (
        r"c\r\n[2013-04-22 15:01:37,500] FATAL gone (kafka.x)"
        r"\x1b[2J\x00\x85\u2028\u202e"
    )

    @staticmethod
    def logged(text: str, *args: object, exc_info: object = None, name: str = "kafka.x") -> str:
        made = logging.LogRecord(name, logging.INFO, "f.py", 7, text, args, exc_info)
        return PatternLayout("%p %m (%c)%n").format(made)

    def test_in_an_argument(self) -> None:
        assert (
            self.logged("client %s left", self.HOSTILE) == f"INFO client {self.SAFE} left (kafka.x)"
        )

    def test_in_a_message_of_its_own(self) -> None:
        assert self.logged(self.HOSTILE) == f"INFO {self.SAFE} (kafka.x)"

    def test_in_the_names_of_threads(self) -> None:
        made = record()
        made.threadName = "a\nb"
        assert PatternLayout("%t").format(made) == r"a\nb"

    def test_no_control_character_gets_through(self) -> None:
        every = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
        written = self.logged("%s", every)
        assert written.isprintable()
        assert written.isascii()

    def test_other_languages_stay(self) -> None:
        assert self.logged("%s", "Grüße\u00a0日本") == "INFO Grüße\u00a0日本 (kafka.x)"

    def test_line_breaks_of_the_format_stay(self) -> None:
        text = "\n\tcleaned %s: %d\n\t%.1f%%"
        assert (
            self.logged(text, "t\nFATAL", 3, 0.5)
            == "INFO \n\tcleaned t\\nFATAL: 3\n\t0.5% (kafka.x)"
        )

    def test_tracebacks_stay_and_exceptions_do_not_forge(self) -> None:
        try:
            try:
                raise KeyError("first")
            except KeyError as error:
                raise ValueError("one\nFATAL two\r\x1b[2J\n\tat java") from error
        except ValueError:
            text = self.logged("failed", exc_info=sys.exc_info())
        lines = text.split("\n")
        assert lines[:2] == ["INFO failed (kafka.x)", "Traceback (most recent call last):"]
        assert lines[2].startswith('  File "')
        assert "KeyError: 'first'" in lines
        assert lines[-3:] == ["ValueError: one", r"    FATAL two\r\x1b[2J", "            at java"]
        assert "\x1b" not in text

    def test_a_traceback_is_pythons_own(self) -> None:
        try:
            raise ValueError("plain")
        except ValueError:
            text = self.logged("failed", exc_info=sys.exc_info())
            assert text == "INFO failed (kafka.x)\n" + traceback.format_exc().rstrip("\n")


@pytest.mark.parametrize(
    ("level", "name"),
    [(TRACE, "TRACE"), (logging.WARNING, "WARN"), (logging.CRITICAL, "FATAL")],
)
def test_level_names(level: int, name: str) -> None:
    assert PatternLayout("%p").format(record(level)) == name


def test_default_is_info_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    logging.getLogger("kafka.x").info("hello")
    logging.getLogger("kafka.x").debug("unseen")
    out = capsys.readouterr().out
    assert out.endswith("] INFO hello (kafka.x)\n")
    assert out.startswith("[20")
    assert out.count("\n") == 1


def test_tools_log_warnings_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    configure(tool=True)
    logging.getLogger("kafka.x").info("unseen")
    logging.getLogger("kafka.x").warning("seen")
    assert capsys.readouterr().out.endswith("] WARN seen (kafka.x)\n")


def test_a_trace_follows_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    try:
        raise ValueError("inner")
    except ValueError:
        logging.getLogger("kafka.x").exception("outer")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("] ERROR outer (kafka.x)")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "ValueError: inner"


def test_loggers_additivity_and_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.properties"
    path.write_text(
        f"""
log4j.rootLogger=INFO, stdout, gone
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout.ConversionPattern=%m%n
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.Target=System.err
log4j.appender.err.Threshold=WARN
log4j.appender.err.layout.ConversionPattern=! %m%n
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={tmp_path}/sub/x.log
log4j.appender.file.layout.ConversionPattern=%p %m%n
log4j.appender.gone=org.apache.log4j.net.SMTPAppender
log4j.logger.quiet.a=TRACE, file
log4j.additivity.quiet.a=false
log4j.logger.loud=DEBUG, err, file
log4j.logger.off=OFF
"""
    )
    configure(path)
    logging.getLogger("quiet.a.b").log(TRACE, "one")
    logging.getLogger("loud").debug("two")
    logging.getLogger("loud").error("three")
    logging.getLogger("off").critical("four")
    logging.getLogger("other").info("five")
    captured = capsys.readouterr()
    assert captured.out == "two\nthree\nfive\n"
    assert captured.err == "log4j:ERROR Could not instantiate appender named [gone].\n! three\n"
    assert (tmp_path / "sub/x.log").read_text() == "TRACE one\nDEBUG two\nERROR three\n"


@pytest.mark.parametrize("prefix", ["file:", "file://", ""])
def test_environment_names_the_file_and_the_directory(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.properties"
    path.write_text(
        "kafka.logs.dir=/nonexistent\n"
        "log4j.logger.kafka=WARN, f\n"
        "log4j.appender.f=org.apache.log4j.FileAppender\n"
        "log4j.appender.f.File=${kafka.logs.dir}/${name}.log\n"
    )
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("KAFKA_LOG4J_OPTS", f"-Dlog4j.configuration={prefix}{path} -Dname=abc")
    configure()
    logging.getLogger("kafka.a").warning("x")
    assert (tmp_path / "logs/abc.log").read_text() == "x\n"


@pytest.mark.parametrize("place", ["my kafka", "it's - kafka", "a  b/-c d's"])
def test_a_directory_may_have_any_name(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / place / "x.properties"
    path.parent.mkdir(parents=True)
    path.write_text(
        "log4j.logger.kafka=WARN, f\n"
        "log4j.appender.f=org.apache.log4j.FileAppender\n"
        "log4j.appender.f.File=${kafka.logs.dir}/${name}.log\n"
    )
    monkeypatch.setenv("LOG_DIR", str(path.parent / "logs"))
    monkeypatch.setenv("KAFKA_LOG4J_OPTS", f"-Dlog4j.configuration=file:{path} -Dname=abc")
    configure()
    logging.getLogger("kafka.a").warning("x")
    assert (path.parent / "logs/abc.log").read_text() == "x\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("-Da=1  -Db", ["-Da=1", "-Db"]),
        ("-Da='x y' \"-Db=1 2\"", ["-Da=x y", "-Db=1 2"]),
        (" -Da=/x y/z -Xmx1G ", ["-Da=/x y/z", "-Xmx1G"]),
        ("-Da=/it's/z -Db=2", ["-Da=/it's/z", "-Db=2"]),
    ],
)
def test_words_of_options(text: str, words: list[str]) -> None:
    assert option_words(text) == words


def test_a_missing_file_falls_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(tmp_path / "none", tool=True)
    logging.getLogger("kafka.x").warning("seen")
    captured = capsys.readouterr()
    assert captured.err.startswith("log4j:ERROR Could not read configuration file [")
    assert captured.out.endswith("WARN seen (kafka.x)\n")


def test_daily_rolling(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("before\n")
    ten = time.mktime((2015, 3, 1, 10, 59, 0, 0, 0, -1))
    os.utime(path, (ten, ten))
    handler = DailyRollingFileHandler(path, "'.'yyyy-MM-dd-HH")
    handler.emit(record(text="at ten", created=ten + 30))
    handler.emit(record(text="at eleven", created=ten + 90))
    handler.emit(record(text="late", created=ten + 30))
    handler.close()
    assert (tmp_path / "server.log.2015-03-01-10").read_text() == "before\nat ten\n"
    assert path.read_text() == "at eleven\nlate\n"


def test_date_patterns_that_have_no_meaning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert PatternLayout("%d{bad}").format(record(created=0.5)).endswith(",500")
    assert "Could not instantiate SimpleDateFormat with bad" in capsys.readouterr().err
    path = tmp_path / "x.properties"
    path.write_text(
        "log4j.logger.dated=INFO, f\n"
        "log4j.appender.f=org.apache.log4j.DailyRollingFileAppender\n"
        f"log4j.appender.f.File={tmp_path}/x.log\n"
        "log4j.appender.f.DatePattern=bad\n"
    )
    configure(path)
    assert "Could not set the options of appender [f]" in capsys.readouterr().err


def test_rolling_by_size(tmp_path: Path) -> None:
    path = tmp_path / "x.properties"
    path.write_text(
        "log4j.logger.sized=INFO, f\n"
        "log4j.appender.f=org.apache.log4j.RollingFileAppender\n"
        f"log4j.appender.f.File={tmp_path}/x.log\n"
        "log4j.appender.f.MaxFileSize=1KB\n"
        "log4j.appender.f.MaxBackupIndex=2\n"
    )
    configure(path)
    for _ in range(5):
        logging.getLogger("sized").info("x" * 600)
    assert sorted(p.name for p in tmp_path.glob("x.log*")) == ["x.log", "x.log.1", "x.log.2"]


@pytest.mark.parametrize(
    ("name", "own"), [("server.log", "server-7.log"), ("a.b/log", "a.b/log-7")]
)
def test_a_broker_of_a_unit_has_files_of_its_own(
    name: str, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.properties"
    path.write_text(
        f"log4j.rootLogger=INFO, f\nlog4j.appender.f=org.apache.log4j.FileAppender\n"
        f"log4j.appender.f.File={tmp_path}/{name}\n"
    )
    monkeypatch.setenv("KAFKA08_UNIT_BROKER", "7")
    configure(path)
    logging.getLogger("x").info("one")
    assert (tmp_path / own).read_text() == "one\n"
    assert not (tmp_path / name).exists()


def test_shipped_server_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOG_DIR", str(tmp_path))
    configure(CONFIG / "log4j.properties")
    logging.getLogger("kafka.server.KafkaServer").info("a")
    logging.getLogger("state.change.logger").log(TRACE, "b")
    logging.getLogger("kafka.request.logger").info("unseen")
    logging.getLogger("kafka.controller.KafkaController").debug("c")
    logging.getLogger("kafka.log.LogCleaner").info("d")
    logging.getLogger("org.apache.zookeeper.ZooKeeper").info("e")
    files = {p.name: [line[26:] for line in p.read_text().splitlines()] for p in tmp_path.iterdir()}
    assert files == {
        "server.log": ["INFO a (kafka.server.KafkaServer)"],
        "state-change.log": ["TRACE b (state.change.logger)"],
        "kafka-authorizer.log": [],
        "kafka-request.log": [],
        "controller.log": ["DEBUG c (kafka.controller.KafkaController)"],
        "log-cleaner.log": ["INFO d (kafka.log.LogCleaner)"],
    }
    assert [line[26:] for line in capsys.readouterr().out.splitlines()] == [
        "INFO a (kafka.server.KafkaServer)",
        "INFO e (org.apache.zookeeper.ZooKeeper)",
    ]


@pytest.mark.parametrize("name", ["tools-log4j.properties", "test-log4j.properties"])
def test_other_shipped_files_are_understood(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOG_DIR", str(tmp_path))
    configure(CONFIG / name)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("level", "lines"), [("WARN", 0), ("DEBUG", 1), ("TRACE", 1)])
def test_the_shipped_file_sends_requests_to_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, lines: int
) -> None:
    monkeypatch.setenv("LOG_DIR", str(tmp_path))
    text = (CONFIG / "log4j.properties").read_text()
    shipped = "log4j.logger.kafka.request.logger=WARN, "
    assert shipped in text
    chosen = tmp_path / "log4j.properties"
    chosen.write_text(text.replace(shipped, shipped.replace("WARN", level)))
    configure(chosen)
    assert request_log.is_wanted() is (lines == 1)
    header = RequestHeader(10, 0, 5, "evil\n[2013-04-22] client")
    request_log.completed(header, ConsumerMetadataRequest("g"), "10.0.0.7:40001", 0.25)
    written = (tmp_path / "kafka-request.log").read_text()
    assert written.count("\n") == lines
    if lines:
        assert f"] {level} Completed request:Name: ConsumerMetadataRequest; " in written
        assert "ClientId: evil\\n[2013-04-22] client; Group: g from client /10.0.0.7" in written
        assert written.endswith(" (kafka.request.logger)\n")


@pytest.mark.scenario("security-53")
def test_long_names_of_clients_are_cut() -> None:
    long = "x" * 32_000
    args = (long, 7, ValueError("\n" + long))
    written = TestForgedLines.logged("client %s did %d: %s", *args, name="kafka.server.KafkaApis")
    x = "x" * 300
    shown = f"INFO client {x}... (32000 characters) did 7: "
    assert written.startswith(shown + "\\n" + "x" * 299 + "... (32001 characters)")
    assert written.isprintable()
    written = TestForgedLines.logged(long, name="kafka.network.Processor")
    assert f" {'x' * 1000}... (32000 characters) (" in written


def test_long_lines_of_brokers_themselves_stay() -> None:
    long = ",".join(f"[t,{number}]" for number in range(1000))
    assert TestForgedLines.logged("partitions %s", long) == f"INFO partitions {long} (kafka.x)"


@pytest.mark.scenario("security-53")
def test_long_lines_of_tracebacks_are_cut() -> None:
    try:
        raise ValueError("x" * 5000)
    except ValueError:
        text = TestForgedLines.logged("failed", exc_info=sys.exc_info())
    assert text.endswith("x... (5012 characters)")
    assert max(map(len, text.split("\n"))) < 1100
