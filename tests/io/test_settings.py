from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import pytest

from probelight.io import ranges
from probelight.io.settings import RangeError, Settings, checked, settings_from

COLOURS = {"red": 1, "green": 2}


@dataclass(frozen=True)
class Inner(Settings):
    share: ranges.Share = 0.5
    sizes: Annotated[list[ranges.NumItems], ranges.Distinct(1)] = field(default_factory=lambda: [1])


def command(
    inner: Inner | None = None,
    rows: list[Inner] | None = None,
    rates: dict[str, ranges.LearningRate] | None = None,
    seed: ranges.Seed | bool = 0,
    kept: ranges.ShareOrNone | None = None,
    devices: ranges.NumDevices = 1,
    names: str | list[str] = "",
    models: ranges.Names = (),
    colour: Annotated[str, ranges.OneOf(COLOURS)] = "red",
) -> None: ...


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"inner": {"share": 0}}, "--inner.share 0: give a number more than 0 and less than 1"),
    ({"inner": {"share": 1.0}}, "--inner.share 1.0: "),
    ({"inner": {"share": float("nan")}}, "--inner.share nan: "),
    ({"inner": {"sizes": []}}, "--inner.sizes []: give at least one"),
    (
        {"inner": {"sizes": [3, 1, 3]}},
        "--inner.sizes 3,1,3: give at least one value, and each value only once",
    ),
    ({"models": "a, b,a"}, "--models a, b,a: give each value only once"),
    ({"rows": [{}, {"sizes": [5, 0]}]}, "--rows[1].sizes[1] 0: give a number from 1 to 10000000"),
    ({"rates": {"mlp": float("inf")}}, "--rates.mlp inf: give a number more than 0 and at most 1"),
    ({"seed": 2**32}, "--seed 4294967296: give a number from 0 to 4294967295"),
    ({"kept": 1}, "--kept 1: give a number at least 0 and less than 1"),
    ({"colour": "blue"}, "--colour blue: give one of red, green"),
    ({"devices": 0}, "--devices 0: give -1 (all) or a number from 1 to 4096"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[error[2:20] for _, error in WRONG])
def test_a_number_outside_its_range_is_named_with_the_range(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(RangeError) as caught:
        checked(command, arguments, "--{}".format)
    assert str(caught.value).startswith(message)


def test_numbers_at_the_ends_of_their_ranges_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    right = {
        "inner": {"share": 1e-9, "sizes": [1, 10_000_000]},
        "rows": [{"share": 0.999}],
        "rates": {"mlp": 1e-9, "linear": 1},
        "seed": 2**32 - 1,
        "kept": 0,
        "devices": -1,
        "names": ["a"],
    }
    checked(command, right, "--{}".format)
    checked(command, {"models": "a,b"}, "--{}".format)
    checked(command, {"seed": True, "kept": None, "names": "a,b", "inner": None}, "--{}".format)
    monkeypatch.setitem(COLOURS, "blue", 3)  # a name that is registered later is known
    checked(command, {"colour": "blue"}, "--{}".format)


def test_settings_made_in_python_are_checked_too() -> None:
    with pytest.raises(RangeError, match=r"^Inner\.share 2: give a number more than 0"):
        Inner(share=2)
    with pytest.raises(RangeError, match=r"^Inner\.sizes\[0\] 0: "):
        Inner(sizes=[0])
    with pytest.raises(RangeError, match=r"^Inner\.sizes\[0\] True: give a number from 1"):
        Inner(sizes=[True, 2])


@dataclass(frozen=True)
class Outer(Settings):
    name: str
    inner: Inner | None = None
    others: dict[str, int] = field(default_factory=dict)


def test_settings_are_made_again_from_their_plain_values() -> None:
    for settings in (Outer("a"), Outer("b", Inner(0.25, [2, 3]), {"x": 1})):
        assert settings_from(Outer, asdict(settings)) == settings
    with pytest.raises(RangeError, match=r"^Outer: `inner.share` is 2: give a number more than 0"):
        settings_from(Outer, {"name": "c", "inner": {"share": 2}})


def test_names_are_a_list_or_one_text_with_commas() -> None:
    def take(names: ranges.Names = ()) -> None: ...

    for names in (" a, b ,,c", ["a", "b", "c"]):
        assert checked(take, {"names": names}, str) == {"names": ["a", "b", "c"]}
    for blank in ("", " ,"):
        with pytest.raises(RangeError, match="give at least one name"):
            checked(take, {"names": blank}, str)
    with pytest.raises(RangeError, match=r"^names\[1\] 2: give text in quotes"):
        checked(take, {"names": ["a", 2]}, str)
