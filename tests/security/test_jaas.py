"""sasl.jaas.config, as Kafka reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ConfigError
from kafka08.security import jaas

BROKER = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin-secret" user_admin="admin-secret" user_alice="al=i;ce";'
)


def test_a_brokers_text() -> None:
    found = jaas.parse(BROKER)
    assert (found.name, found.flag) == (jaas.PLAIN_MODULE, "required")
    assert (found.username, found.password) == ("admin", "admin-secret")
    assert found.users == {"admin": "admin-secret", "alice": "al=i;ce"}


@pytest.mark.scenario("security-54")
def test_it_does_not_show_passwords() -> None:
    assert "admin-secret" not in repr(jaas.parse(BROKER))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("M REQUIRED;", {}),
        ("M required a=b;", {"a": "b"}),
        ("M required\n a = 'b c'\n\td=1;\n", {"a": "b c", "d": "1"}),
        ('M required a="";', {"a": ""}),
        (r'M required a="x\"y\\z\101\n";', {"a": 'x"y\\zA\n'}),
        ("M required // why\n a=/* here */b;", {"a": "b"}),
        ('M required a="// no /* comment";', {"a": "// no /* comment"}),
        ('M required a="é";', {"a": "é"}),
    ],
)
def test_options(text: str, options: dict[str, str]) -> None:
    assert jaas.parse(text).options == options


@pytest.mark.scenario("security-54")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "a login module is missing"),
        ("M", "a control flag after M is missing"),
        ("M maybe;", "the control flag of M is not one of"),
        ("M required", "an option or ; after the options of M is missing"),
        ("M required a;", "an option of M has no ="),
        ("M required a=;", "a value for a is missing"),
        ("M required a==;", "a value for a is missing"),
        ('M required a="secret;', "a quoted string is not closed"),
        ("M required a='secret\n';", "a quoted string is not closed"),
        ("M required a=b; N required;", "there must be one login module"),
        (";", "a login module is missing"),
    ],
)
def test_bad_texts(text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error) as raised:
        jaas.parse(text, "listener.name.sasl.plain.sasl.jaas.config")
    assert str(raised.value).startswith("listener.name.sasl.plain.sasl.jaas.config: ")
    assert "secret" not in str(raised.value)


@given(st.dictionaries(st.from_regex(r"[a-z_.]+", fullmatch=True), st.text()))
def test_quoted_values_come_back(options: dict[str, str]) -> None:
    def quoted(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    text = "M required " + " ".join(f'{key}="{quoted(v)}"' for key, v in options.items()) + ";"
    assert jaas.parse(text).options == options


@given(st.text(alphabet="M required=;\"'\\/*\n\t0x"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        jaas.parse(text)
    except ConfigError:
        pass


FILE = """
KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required user_a="x}y";
    Other optional;
}; // the broker
Client{M required username="k"password="p;{";};
Empty { };
"""


def test_sections_of_a_file() -> None:
    found = jaas.section(FILE, "Client", "jaas.conf")
    assert found is not None
    assert (found.name, found.username, found.password) == ("M", "k", "p;{")
    assert jaas.section(FILE, "Server", "jaas.conf") is None
    for name in ("KafkaServer", "Empty"):
        with pytest.raises(ConfigError, match=f"^jaas.conf: the section {name} must have one"):
            jaas.section(FILE, name, "jaas.conf")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Client", "{ is missing after Client"),
        ("Client M required;", "{ is missing after Client"),
        ("Client { M required; }", "; is missing after the section Client"),
        ("Client { M required;", "a login module is missing"),
        ("{ M required; };", "the name of a section is missing"),
    ],
)
def test_bad_files(text: str, error: str) -> None:
    with pytest.raises(ConfigError, match=f"^jaas.conf: {error}"):
        jaas.section(text, "Client", "jaas.conf")
