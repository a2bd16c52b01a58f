from __future__ import annotations

import io
import math

from rich.console import Console

from probelight.probes.record import Record
from probelight.protocols.explain.explanation import (
    Candidate,
    Explained,
    Guess,
    Piece,
    Spelling,
    print_explained,
)
from probelight.results.row import Row

ITEM = Record("a@3", "the \x1b[31msky is [MASK] .", ("blue", "red"), 0, position=3)


def model(name: str, *, notes: tuple[str, ...] = ()) -> Explained:
    blue = Piece("Ġblue", 7)
    return Explained(
        Row(model=name, kind="causal", mode="causal_likelihood"),
        (("reads", (Piece("sky", 1), Piece("Ġis", 2))),),
        (
            Candidate(
                "blue", (blue,), "in its first piece", -1.5, True, -2.25, 1, blue, 0.125, 1234,
                (
                    Spelling("blue", "without a space", (Piece("bl", 3), Piece("ue", 4))),
                    Spelling("Blue", "", (Piece("<unk>", 9),), is_known=False),
                ),
            ),
            Candidate("red", (), None, math.nan),
        ),
        (Guess("blue", blue, 0.125),),
        50_000,
        notes,
    )  # fmt: skip


def shown(width: int, *models: Explained) -> str:
    page = io.StringIO()
    print_explained("colours (dev)", ITEM, models, Console(width=width, file=page))
    assert all(len(line) <= width for line in page.getvalue().split("\n")[5:])
    return page.getvalue()


def test_all_that_is_known_is_said_and_no_character_acts() -> None:
    page = shown(100, model("one", notes=("gives no \x1b[0m features",)))
    for text in (
        "item a@3, line 3 of colours (dev)",
        "stem: the \\x1b[31msky is [MASK] .",
        "  * blue",
        "sky:1 Ġis:2",
        "-1.5000, the best",
        "-2.2500 nats, the sum over 1 token ",
        "Ġblue:7, 12.5%, rank 1,234 of 50,000",
        "blue without a space: 2 pieces, bl:3 ue:4",
        "Blue: not known, <unk>:9",
        "not a number",
        "it is none",
        "blue (Ġblue:7), 12.5%",
        "gives no \\x1b[0m features",
    ):
        assert text in page
    assert "\x1b" not in page
    assert "notes" not in shown(100, model("one"))


def test_models_are_side_by_side_where_there_is_room() -> None:
    models = [model("first"), model("second")]
    [heads] = [line for line in shown(120, *models).splitlines() if "first" in line and "┃" in line]
    assert "second" in heads
    assert shown(60, *models).count("scored by") == 2
    assert shown(120, *models).count("scored by") == 1
