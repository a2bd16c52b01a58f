from __future__ import annotations

from reports.kit.figure import head, panels


def test_small_print_of_a_head_is_wrapped() -> None:
    axis = panels(2)[1][0]
    model = "bert-large-uncased-whole-word-masking"
    head(axis, "hypernymy", f"{model} · original task: science · test\nrate 1e-5")
    (text,) = axis.texts
    assert text.get_text().splitlines() == [
        f"{model} · original task:",
        "science · test",
        "rate 1e-5",
    ]
