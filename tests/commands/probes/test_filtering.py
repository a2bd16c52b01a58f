from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.builders.builder import Builder, BuildSettings, write_probe
from probelight.commands.probes.build import filtering_builder
from probelight.commands.probes.filtering import (
    FilterSettings,
    choice_only_model,
    cross_validated_scores,
    filter_probe,
    fold_of_items,
)
from probelight.io.errors import UsageError
from probelight.metrics.intervals import accuracy_interval
from probelight.probes.importers.items import read_file
from probelight.probes.record import Record
from probelight.training.settings import FitSettings


def item(number: int, leaks: bool) -> Record:
    gold = "zib" if leaks else "sea"
    meta = {"cluster": f"c{number // 2}"}
    return Record(str(number), f"number {number}?", (gold, "sky"), 0, meta)


PROBE = {
    "train": [item(n, n % 3 == 0) for n in range(24)],
    "dev": [item(n, n % 3 == 0) for n in range(24, 36)],
}
GROUPS = [record.meta["cluster"] for records in PROBE.values() for record in records]


def sees_zib(train: Sequence[Record], held_out: Sequence[Record], seed: int) -> list[float]:
    """Right where the gold leaks; one model in three, and ties, prove nothing."""
    golds = {record.meta["cluster"] for record in train}
    assert golds.isdisjoint({record.meta["cluster"] for record in held_out})
    return [1.0 if "zib" in r.choices else 1.0 * (seed == 2) or 0.5 for r in held_out]


def test_what_two_of_three_models_answer_goes() -> None:
    result = filter_probe(PROBE, GROUPS, FilterSettings(), sees_zib)
    assert {split: len(rows) for split, rows in result.probe.items()} == {"train": 16, "dev": 8}
    assert all("zib" not in r.choices for records in result.probe.values() for r in records)
    unfiltered, filtered = result.scores
    assert unfiltered.value == pytest.approx((12 + 24 * (1 + 0.5 + 0.5) / 3) / 36)
    assert filtered.value == pytest.approx(2 / 3)
    assert unfiltered.low < unfiltered.value < unfiltered.high
    *rows, accuracies = result.summary.splitlines()[-3:]
    assert rows == ["| train | 24 | 16 |", "| dev | 12 | 8 |"]
    assert re.match(r"\| choice-only \| 77\.8% \(.* 66\.7% \(", accuracies)
    assert filter_probe(PROBE, GROUPS, FilterSettings(agree=3), sees_zib).probe == result.probe
    with pytest.raises(UsageError, match="the filter leaves nothing of train and dev"):
        filter_probe(PROBE, GROUPS, FilterSettings(agree=1), sees_zib)


def test_the_interval_of_one_model_is_that_of_its_scores() -> None:
    result = filter_probe(PROBE, GROUPS, FilterSettings(seeds=[1], agree=1), sees_zib)
    scores = [1.0 if "zib" in record.choices else 0.5 for rows in PROBE.values() for record in rows]
    assert result.scores[0] == accuracy_interval(scores, GROUPS)


@pytest.mark.parametrize(
    ("probe", "more", "sizes", "words"),
    [
        (PROBE, {}, [(12, 24), (24, 12)], "trained on the other splits"),
        (PROBE, {"folds": 3}, [(24, 12)] * 3, "trained on the other parts of 3"),
        ({"train": PROBE["train"]}, {}, [(12, 12)] * 2, "trained on the other parts of 2"),
        (PROBE, {"folds": 3, "train_items": 10}, [(10, 12)] * 3, "the other parts of 3"),
    ],
)
def test_parts_are_the_splits_unless_a_number_is_given(
    probe: dict[str, list[Record]],
    more: dict[str, int],
    sizes: list[tuple[int, int]],
    words: str,
) -> None:
    calls: list[tuple[int, int]] = []

    def count(train: Sequence[Record], held_out: Sequence[Record], seed: int) -> list[float]:
        calls.append((len(train), len(held_out)))
        return [0.0] * len(held_out)

    how = FilterSettings(seeds=[0], agree=1, **more)  # type: ignore[arg-type]
    groups = GROUPS[: sum(map(len, probe.values()))]
    assert words in filter_probe(probe, groups, how, count).summary
    assert calls == sizes * 2


def test_each_item_is_answered_once_by_each_model() -> None:
    def number(train: Sequence[Record], held_out: Sequence[Record], seed: int) -> list[float]:
        return [float(record.id) + seed for record in held_out]

    scores = cross_validated_scores(
        PROBE["train"], fold_of_items(GROUPS[:24], 3), FilterSettings(), number
    )
    assert scores == {seed: [float(n + seed) for n in range(24)] for seed in (0, 1, 2)}


def test_parts_have_whole_groups_and_like_sizes() -> None:
    groups = [f"g{n // 3}" for n in range(30)]
    folds = fold_of_items(groups, 4)
    assert len({(group, fold) for group, fold in zip(groups, folds, strict=True)}) == 10
    assert sorted(folds.count(n) for n in range(4)) == [6, 6, 9, 9]
    assert fold_of_items(groups[::-1], 4) == folds[::-1]
    with pytest.raises(UsageError, match="folds 11: the items have only 10 groups"):
        fold_of_items(groups, 11)


def test_a_real_model_finds_what_leaks_and_again(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("sea 1 0 0\nsky 0 1 0\nzib 0 0 1\n")
    fit = FitSettings(
        learning_rate=0.02, epochs=3, batch_size=8, weight_decay=0.0, max_grad_norm=10.0
    )
    answer = choice_only_model(FilterSettings(seeds=[0], agree=1, fit=fit, vectors=str(vectors)))
    sample = [item(3 * n, True) for n in range(16)]
    assert answer(sample, sample[:5], 0) == [1.0] * 5
    held_out = [Record(str(n), "?", ("sea", "sky"), n % 2) for n in range(4)]
    assert answer(sample, held_out, 0) == answer(sample, held_out, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "--filter is for one probe"),
        ("wordnet_qa", "--filter is for one probe"),
        ("hypernymy --filtering.agree=4", "filtering.agree 4 is more than the 3 models"),
        ("hypernymy --filtering.fit.patience=2", "filtering.fit.patience"),
    ],
)
def test_mistaken_filters_are_named(options: str, words: str, refused: Callable[..., str]) -> None:
    assert words in refused(f"probes build {options} --filter=true --output_dir=never")


def test_the_data_card_says_what_was_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # As builders of WordNetQA leave it: only the reader of a file makes a cluster of the synset.
    probe = {
        split: [
            replace(r, id=f"{split}-{r.id}", answer=n % 2, choices=r.choices[:: 1 - 2 * (n % 2)],
                    meta={"gold_synset": r.meta["cluster"]})
            for n, r in enumerate(records)
        ]
        for split, records in PROBE.items()
    }  # fmt: skip
    config = {"setup": "mc_qa", "num_choices": 2, "chance": 0.5, "group_by": "cluster"}
    builder = Builder("tiny", "Tiny.", BuildSettings, lambda settings: probe, config=config)
    shared: list[set[str]] = []

    def answer(train: Sequence[Record], held_out: Sequence[Record], seed: int) -> list[float]:
        first, second = ({r.meta["gold_synset"] for r in records} for records in (train, held_out))
        shared.append(first & second)
        return [1.0 * ("zib" in r.choices) for r in held_out]

    monkeypatch.setattr(
        "probelight.commands.probes.filtering.choice_only_model", lambda how: answer
    )
    filtered = filtering_builder(builder, BuildSettings(), FilterSettings())
    paths = write_probe(filtered, BuildSettings(), tmp_path)
    assert len(read_file(paths[0]).records) == 16
    printed = capsys.readouterr().out
    assert "| dev | 12 | 8 |" in printed
    assert printed.strip() in paths[-1].read_text()
    assert shared == [set()] * 12
