from __future__ import annotations

from probelight.reports.figure import drawn, head, panels, styled


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


def test_a_pdf_embeds_its_letters_and_is_the_same_bytes_each_time() -> None:
    with styled():
        canvas = panels(1)[0]
        canvas.text(0, 0, "−1.6 ≥ é $")
        figure = drawn("f", "t", "c", canvas)
    made = figure.pdf()
    assert made.startswith(b"%PDF")
    assert b"/FontFile2" in made  # a TrueType font: Type 42
    assert b"/Type3" not in made
    assert b"CreationDate" not in made
    assert figure.pdf() == made
