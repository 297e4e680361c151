"""Settings declared as fields of a class."""

from __future__ import annotations

from functools import cached_property

import pytest

from kafka08.errors import ConfigError
from kafka08.settings.settings import BOOLEAN_IN_ANY_CASE, DURATION, MAP, Settings, dotted, setting


def test_the_mechanism_serves_other_classes() -> None:
    class ClientSettings(Settings):
        group_id: str = setting("group.id", doc="The group.")
        wait_ms: int = setting("wait.ms", 100, low=0, doc="How long.")

    assert ClientSettings.from_properties({"group.id": "g", "other": "x"}) == ClientSettings(
        group_id="g"
    )
    with pytest.raises(ConfigError, match=r"wait\.ms has value -1"):
        ClientSettings(group_id="g", wait_ms=-1)


class Sized(Settings):
    size: int = setting("size", 5, low=1, doc="Size.")
    double: int = setting("double", derive=lambda sized: 2 * sized.size, doc="Twice.")
    weights: dict[str, int] = setting("weights", {"a": 1}, MAP, doc="Weights.")


def test_settings_do_not_change_and_compare_as_a_whole() -> None:
    sized = Sized()
    with pytest.raises(AttributeError, match=r"Sized\.size cannot be changed"):
        sized.size = 6  # type: ignore[misc]
    assert sized.replace(size=6) == Sized(size=6, double=10) != Sized(size=6)
    assert repr(sized) == "Sized(size=5, double=10, weights={'a': 1})"
    with pytest.raises(ConfigError, match="size has value 0"):
        sized.replace(size=0)
    sized.weights["b"] = 2
    assert Sized().weights == {"a": 1}


def test_what_is_computed_from_the_values_is_not_one_of_them() -> None:
    class Doubled(Sized):
        @cached_property
        def fourfold(self) -> int:
            return 2 * self.double

    used = Doubled()
    assert used.fourfold == 20
    assert used == Doubled() and used.values() == Doubled().values()
    assert repr(used) == repr(Doubled())
    assert used.replace(double=6).fourfold == 12


def test_unknown_and_missing_arguments_are_refused() -> None:
    class Named(Sized):
        name: str = setting("name", doc="Name.")

    assert Named(name="n").double == 10
    with pytest.raises(TypeError, match="Named needs name"):
        Named()
    with pytest.raises(TypeError, match="Named has no settings \\['names'\\]"):
        Named(name="n", names="n")
    assert list(Named.settings()) == ["size", "double", "weights", "name"]
    assert list(Sized.settings()) == ["size", "double", "weights"]


def test_a_key_follows_from_its_attribute() -> None:
    class Dotted(Sized):
        max_wait_ms: int = dotted(100, low=0, doc="How long.")

    assert Dotted.keys() == {"size", "double", "weights", "max.wait.ms"}
    assert Dotted.from_properties({"max.wait.ms": "7"}).max_wait_ms == 7
    with pytest.raises(ConfigError, match=r"^max\.wait\.ms has value -1 which is not in"):
        Dotted(max_wait_ms=-1)


class Waits(Settings):
    delay_ms: int = setting("delay", 900_000, DURATION, doc="")
    strict: bool = setting("strict", False, BOOLEAN_IN_ANY_CASE, doc="")


@pytest.mark.parametrize(
    ("text", "millis"),
    [("5", 5), ("5ms", 5), (" 2 m ", 120_000), ("1Min", 60_000), ("1d", 86_400_000)],
)
def test_durations(text: str, millis: int) -> None:
    assert Waits.from_properties({"delay": text, "strict": "TRUE"}).values() == {
        "delay_ms": millis,
        "strict": True,
    }


@pytest.mark.parametrize("text", ["soon", "", "m", "5 x", "-1", "1.5s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ConfigError, match=r"delay has .* not a duration such as 15m\."):
        Waits.from_properties({"delay": text})
