"""Accuracy by paradigm, worked out by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from probelight.metrics.intervals import wilson
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import GroupBy, Record
from probelight.probes.source import ProbeData
from probelight.protocols import cli
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.zero_shot.measures import pair_notices, pair_rows, paradigm_rows
from probelight.results.row import Row
from tests.fixtures.rows import read_predictions, read_results

UIDS = ("agreement", "agreement", "order", "order", "order", None)
PAIRS = tuple(
    Record(str(n), "", (f"good {n}", f"bad {n}"), 0, {"paradigm": uid} if uid else {}, n)
    for n, uid in enumerate(UIDS)
)
# By sums: right, wrong, a tie, right, right, wrong.
SUMS = Predictions("pairs", PAIRS, [[-4, -6], [-9, -8], [-5, -5], [-2, -3], [-1, -7], [-8, -6]])
# The means: -2 -2, -3 -8, -5 -2.5, -1 -3, -1 -7, -2 -3.
NUM_TOKENS = [[2, 3], [3, 1], [1, 2], [2, 1], [1, 1], [4, 2]]


def probe(group_by: GroupBy | None, records: tuple[Record, ...] = PAIRS) -> ProbeData:
    config = ProbeConfig("pairs", "minimal_pair", 2, 0.5, group_by=group_by)
    return ProbeData(config, records, (), ())


def test_accuracy_by_paradigm_by_sums_and_by_means_per_token() -> None:
    scores = [
        [total / number for total, number in zip(*row, strict=True)]
        for row in zip(SUMS.scores, NUM_TOKENS, strict=True)
    ]
    means = Predictions("pairs", PAIRS, scores)
    assert (scores[0], scores[5]) == ([-2, -2], [-2, -3])
    row = Row(model="m", mode="causal_likelihood")
    by_mean = paradigm_rows(means, None, replace(row, scoring="mean_token"))
    rows = [*pair_rows(SUMS, probe(None), row), *by_mean]
    values = {(r.scoring, r.metric, r.subset_text): (r.value, r.num_items) for r in rows}
    assert len(values) == len(rows)
    assert {r.mode for r in rows} == {"causal_likelihood"}
    assert values == {
        ("", "accuracy", ""): (3.5 / 6, 6),
        ("", "tied_share", ""): (1 / 6, 6),
        ("", "near_tied_share", ""): (0.0, 6),
        ("", "chance", ""): (0.5, 6),
        ("", "accuracy", "UID=agreement"): (0.5, 2),
        ("", "accuracy", "UID=order"): (2.5 / 3, 3),
        ("mean_token", "accuracy", "UID=agreement"): (0.75, 2),
        ("mean_token", "accuracy", "UID=order"): (2 / 3, 3),
    }
    assert (rows[0].ci_low, rows[0].ci_high) == pytest.approx(wilson(3.5, 6))


def test_items_of_no_paradigm_are_counted_where_others_have_one() -> None:
    said = "1 of 6 items have no UID and are in the overall accuracy alone"
    assert pair_notices(PAIRS) == [said]
    assert pair_notices(PAIRS[:5]) == pair_notices(PAIRS[5:]) == []


def test_intervals_by_paradigm_are_of_the_whole_and_within_one_of_its_pairs() -> None:
    said = Predictions("pairs", PAIRS[:5], SUMS.scores[:5])
    rows = pair_rows(said, probe("paradigm", PAIRS[:5]), Row())
    by_part = {row.subset_text: row for row in rows if row.metric == "accuracy"}
    assert by_part[""].num_groups == 2
    order = by_part["UID=order"]
    assert (order.ci_low, order.ci_high) == pytest.approx(wilson(2.5, 3))


BLIMP = [
    ("agreement", "grass is white .", "the grass what white ."),
    ("agreement", "what is the colour of snow", "what is the the colour"),
    ("order", "the sky is blue .", "sky the is blue ."),
    ("order", "blood is red .", "is blood red ."),
    ("order", "coal is black .", "black coal is a ."),
]


def test_a_file_in_blimps_form_is_scored_as_a_loop_over_the_plain_model_does(
    tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"sentence_good": good, "sentence_bad": bad, "UID": uid, "pairID": str(n)}
        for n, (uid, good, bad) in enumerate(BLIMP)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [
        "zero-shot", "--data.path", str(path), "--data.setup", "minimal_pair",
        "--trainer.progress_bar", "false", "--output_dir", str(tmp_path / "out"),
    ]  # fmt: skip
    assert cli.main([*command, "--model.name_or_path", str(tiny_model)]) == 0

    tokens = [[_token_scores(tiny_model, text) for text in pair] for _, *pair in BLIMP]
    said = read_predictions(tmp_path / "out", "zero-shot-pairs-*")
    assert [row["id"] for row in said] == [f"{uid}-{n}" for n, (uid, *_) in enumerate(BLIMP)]
    for row, pair in zip(said, tokens, strict=True):
        assert row["scores"] == pytest.approx([sum(scores) for scores in pair], abs=1e-4)
        means = [sum(scores) / len(scores) for scores in pair]
        assert row["by_rule"]["mean_token"]["scores"] == pytest.approx(means, abs=1e-4)
    expected = defaultdict[tuple[str, str], list[bool]](list)
    for (uid, *_), (good, bad) in zip(BLIMP, tokens, strict=True):
        for part in ("", f"UID={uid}"):
            expected["", part].append(sum(good) > sum(bad))
            expected["mean_token", part].append(sum(good) / len(good) > sum(bad) / len(bad))
    results = [r for r in read_results(tmp_path / "out/results.csv") if r["metric"] == "accuracy"]
    assert {row["mode"] for row in results} == {"pseudo_log_likelihood"}
    assert {(row["scoring"], row["subset"]): float(row["value"]) for row in results} == {
        key: pytest.approx(sum(right) / len(right)) for key, right in expected.items()
    }
    # Every other question about a place in a sentence is refused by name.
    ranks = [*command[:-1], str(tmp_path / "ranks"), "--ranks", "true"]
    assert cli.main(ranks) == cli.USAGE_ERROR
    scoring = [*command[:-1], str(tmp_path / "scoring"), "--scoring", "sum,pmi"]
    assert cli.main(scoring) == cli.USAGE_ERROR
    assert "they take sum, mean_token, mean_char" in capsys.readouterr().err


def _token_scores(folder: Path, text: str) -> list[float]:
    """log p of each token with that token masked, one sequence at a time."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    [ids] = tokenizer(text, return_tensors="pt")["input_ids"]
    scores = []
    for place in range(1, len(ids) - 1):
        masked = ids.clone()
        masked[place] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(masked[None]).logits[0, place]
        scores.append(float(logits.log_softmax(0)[ids[place]]))
    return scores
