from __future__ import annotations

from kafka08.server.unit.joined_metrics import joined

ONE = b"""\
# HELP a_total Things with a { in the text.
# TYPE a_total counter
a_total 1.0
a_total{topic="x y}"} 2.0
# HELP only_one There.
# TYPE only_one gauge
only_one{} 3.0
"""
OTHER = b"""\
# HELP a_total Things with a { in the text.
# TYPE a_total counter
a_total 10.0
"""
UP = """\
# HELP kafka_server_unit_broker_up 1 for a broker of this unit whose metrics are below, 0 for \
another one.
# TYPE kafka_server_unit_broker_up gauge
"""


def test_series_have_the_broker_and_stand_by_family() -> None:
    assert joined({4: ONE, 5: OTHER}).decode() == UP + (
        'kafka_server_unit_broker_up{broker_id="4"} 1\n'
        'kafka_server_unit_broker_up{broker_id="5"} 1\n'
        "# HELP a_total Things with a { in the text.\n"
        "# TYPE a_total counter\n"
        'a_total{broker_id="4"} 1.0\n'
        'a_total{broker_id="4",topic="x y}"} 2.0\n'
        'a_total{broker_id="5"} 10.0\n'
        "# HELP only_one There.\n"
        "# TYPE only_one gauge\n"
        'only_one{broker_id="4"} 3.0\n'
    )


def test_a_broker_without_an_answer_is_down() -> None:
    text = joined({4: OTHER, 5: None}).decode()
    assert 'kafka_server_unit_broker_up{broker_id="5"} 0\n' in text
    assert text.count('broker_id="5"') == 1
    none = joined({4: None, 5: None}).decode()
    assert none == UP + (
        'kafka_server_unit_broker_up{broker_id="4"} 0\n'
        'kafka_server_unit_broker_up{broker_id="5"} 0\n'
    )


def test_a_family_of_a_later_broker_has_its_head() -> None:
    text = joined({4: OTHER, 5: ONE}).decode()
    assert text.count("# TYPE only_one gauge\n") == 1
    assert text.count("# TYPE a_total counter\n") == 1
    assert text.index("# TYPE only_one") < text.index('only_one{broker_id="5"} 3.0')
