from __future__ import annotations

from probelight.build.dictionary_probe.entries import check_senses
from probelight.probes.record import Record


def test_a_wrong_answer_that_says_what_the_right_one_says() -> None:
    choices = ("To bear; to endure", "To last; to endure", "To load the back heavily")
    record = Record("1", "Given 'to stand pain', 'stand' is", choices, 0, {"sense_choices": 3})
    [found] = check_senses([record])
    assert found.check == "wrong answer like the gold"
    assert "To last; to endure" in found.text
    assert check_senses([Record("1", record.stem, choices, 0)]) == []  # of no dictionary
