"""Wire codes and their errors, in both directions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka08.errors import (
    BY_CODE,
    KafkaError,
    LaterCode,
    LeaderNotAvailableError,
    NotEnoughReplicasAfterAppendError,
    OutOfOrderSequenceError,
    UnknownError,
    code_name,
    code_of,
    for_code,
    raise_for_code,
)


def test_every_code_of_0_8_2_2_has_one_error() -> None:
    assert sorted(BY_CODE) == list(range(-1, 0)) + list(range(1, 21))
    assert all(type(for_code(code)) is BY_CODE[code] for code in BY_CODE)
    assert len({error.text for error in BY_CODE.values()}) == len(BY_CODE)


@pytest.mark.parametrize("code", [21, 45, 127, -2])
def test_a_code_that_0_8_2_2_does_not_know(code: int) -> None:
    assert type(for_code(code)) is UnknownError


def test_the_text_is_the_message_or_that_of_the_class() -> None:
    assert str(for_code(5)) == LeaderNotAvailableError.text
    assert str(for_code(5, "[t,0]")) == "[t,0]"


def test_the_code_of_an_exception() -> None:
    assert code_of(NotEnoughReplicasAfterAppendError()) == 20
    assert code_of(OutOfOrderSequenceError()) == 45
    assert code_of(KafkaError()) == code_of(ValueError()) == -1


def test_raising_by_code() -> None:
    raise_for_code(0)
    with pytest.raises(LeaderNotAvailableError, match="no leader"):
        raise_for_code(5, "no leader")


def test_errors_that_a_new_leader_cures() -> None:
    stale = {code for code, error in BY_CODE.items() if error.stale_metadata}
    assert stale == {3, 5, 6}
    assert stale < {code for code, error in BY_CODE.items() if error.retriable}


PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
ROW = re.compile(r"^\| (-?\d+) \| (\w+) \| (.*) \|$", re.MULTILINE)


def test_the_page_of_errors_has_every_code() -> None:
    rows = {int(code): (name, rest) for code, name, rest in ROW.findall(PAGE.read_text("utf-8"))}
    codes = {*BY_CODE, *(int(code) for code in LaterCode)}
    assert set(rows) == codes
    assert {code: rows[code][0] for code in codes} == {code: code_name(code) for code in codes}
    for code, error in BY_CODE.items():
        names, retry, _meaning = rows[code][1].split(" | ")
        assert f"`{error.java_class.rpartition('.')[2]}`" in names, code
        assert retry == ("yes" if error.retriable else "no"), code


# Texts of this project, as the page and the module have them.
OWN = {
    "kafka08/log/directory.py": ["Failed to acquire lock on file .lock in"],
    "kafka08/log/manager.py": ["was in use and is empty now. Is its disk mounted?"],
    "kafka08/network/client_login.py": ["and the broker offers"],
    "kafka08/network/failures.py": ["Failed authentication with /", "Rejected connection from"],
    "kafka08/network/hosts.py": ["The name of this machine,"],
    "kafka08/network/tls.py": [
        "ssl.keystore.location is not set, and a listener with TLS needs it.",
        "is JKS, which is not read. Convert it:",
        "TLS handshake with",
    ],
    "kafka08/network/transport.py": ["SSL handshake failed:"],
    "kafka08/server/storage/log_dir_failures.py": ["Halting:"],
    "kafka08/server/access/logins.py": ["has no value, and the listener"],
    "kafka08/spark/datasource.py": ["an interpreter that cannot import pyarrow"],
    "kafka08/spark/dstream.py": [
        "Error getting partition metadata for",
        "Couldn't find leaders for",
    ],
    "kafka08/spark/offsets.py": ["the brokers that answer know of no broker and no topic"],
    "kafka08/spark/reader.py": [
        "is out of range: the log has",
        "raise fetch.message.max.bytes",
    ],
    "kafka08/spark/structured/source_options.py": ["which is not supported", "is unknown"],
    "kafka08/spark/structured/source_plan.py": [
        "no such topic",
        "set failOnDataLoss to false to continue",
    ],
    "zk/client.py": ["Unable to connect to zookeeper server within timeout:"],
    "zk/registry.py": ["A broker is already registered on the path"],
}


@pytest.mark.parametrize("module", OWN)
def test_the_page_of_errors_has_the_texts_that_the_code_has(module: str) -> None:
    page = PAGE.read_text("utf-8")
    source = (PAGE.parents[1] / module).read_text("utf-8")
    source = re.sub(r'"\n\s*f?"', "", source)  # parts of one text on several lines
    assert [text for text in OWN[module] if text not in page or text not in source] == []
