from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from probelight.io.files import DataFile
from probelight.metrics.intervals import wilson
from probelight.reports.numbers import Estimate
from probelight.reports.published import (
    COLUMNS,
    NumberKey,
    PublishedError,
    ScoreKey,
    difference,
    lies,
    on_paper_task,
    paper_model,
    published,
    published_scores,
    published_size_errors,
    released_file,
)
from probelight.results.load import Run
from probelight.results.row import Row
from tests.fixtures.results import record_of, role_of

HEADER = ",".join(COLUMNS)
ROW = "P 2020,6,,m,M,,p,,,,,accuracy,t,,q,,5,"


def test_every_number_has_its_place() -> None:
    rows = published()
    assert list(rows.columns) == list(COLUMNS)
    # Of each paper's tables, what they have: counted by hand in the papers.
    assert Counter(zip(rows.paper.str.partition(" ")[0], rows.table, strict=True)) == {
        ("Talmor", 1): 8, ("Talmor", 2): 40, ("Talmor", 3): 40, ("Talmor", 4): 8 * 7,
        ("Talmor", 5): 40, ("Talmor", 6): 6, ("Talmor", 7): 40, ("Talmor", 8): 6 * 4,
        ("Talmor", 9): 40, ("Talmor", 10): 6 * 4, ("Talmor", 11): 40,
        # Sixteen rows of five probes; people have no dev, and three models a change.
        ("Richardson", 7): 16 * 5 * 2 - 5 + 3 * 5, ("Richardson", 8): 4 * 4 * 2,
        ("Ettinger", 4): 24, ("Ettinger", 5): 4, ("Ettinger", 7): 16, ("Ettinger", 8): 16,
        ("Ettinger", 9): 4, ("Ettinger", 11): 6, ("Ettinger", 12): 6, ("Ettinger", 14): 12,
    }  # fmt: skip


def test_checkpoints_have_their_ids() -> None:
    rows = published()
    with_id = rows[rows.hub_id != ""]
    assert sorted(set(with_id.hub_id)) == [
        "FacebookAI/roberta-base",
        "FacebookAI/roberta-large",
        "google-bert/bert-base-uncased",
        "google-bert/bert-large-uncased",
        "google-bert/bert-large-uncased-whole-word-masking",
    ]
    of_expert_probes = with_id[with_id.paper.str.startswith("Richardson")]
    by_model = dict(zip(of_expert_probes.model, of_expert_probes.hub_id, strict=True))
    assert by_model["choice_only_bert"] == by_model["bert"] == sorted(set(with_id.hub_id))[-1]
    assert by_model["choice_only_roberta"] == by_model["roberta"] == "FacebookAI/roberta-large"
    names = with_id[~with_id.paper.str.startswith("Richardson")]
    assert (names.hub_id.str.partition("/")[2] == names.model).all()


def test_numbers_of_items_are_what_the_papers_say() -> None:
    rows = published()
    sizes = {(row.paper.split()[0], row.table, row.n) for row in rows[rows.n.notna()].itertuples()}
    assert sizes == {
        ("Richardson", 7, 500), ("Ettinger", 4, 34), ("Ettinger", 5, 34), ("Ettinger", 7, 88),
        ("Ettinger", 9, 44), ("Ettinger", 11, 18), ("Ettinger", 12, 18),
    }  # fmt: skip
    sized = rows[rows.n.notna()]
    assert not sized.perturbation.str.contains("shuffled").any()


def test_curves_as_printed() -> None:
    choices = published().dropna(subset="num_choices")
    assert set(zip(choices.table, choices.probe, choices.num_choices, strict=True)) == {
        (2, "age_comparison", 2), (3, "objects_comparison", 2), (5, "always_never", 5),
        (7, "antonym_negation", 2), (8, "property_conjunction", 3), (9, "taxonomy_conjunction", 3),
        (10, "encyclopedic_composition", 3), (11, "multihop_composition", 3),
    }  # fmt: skip
    assert [len(published_scores(probe)) for probe in sorted(set(choices.probe))] == [6] * 8
    assert published_scores("age_comparison")["roberta-large"] == {
        ScoreKey("zero_shot"): 0.98,
        ScoreKey("ws", "mlp"): 0.98,
        ScoreKey("max", "mlp"): 1.0,
        ScoreKey("ws", "linear"): 0.97,
        ScoreKey("max", "linear"): 1.0,
        ScoreKey("langsense_pert"): 0.31,
        ScoreKey("langsense_nolang"): 0.51,
    }
    assert published_scores("property_conjunction")["esim_baseline"] == {
        ScoreKey("ws", "full"): 0.39,
        ScoreKey("max", "full"): 0.49,
        ScoreKey("langsense_pert"): 0.0,
        ScoreKey("langsense_nolang"): 0.0,
    }
    assert published_scores("age_small") == {}


def test_diagnostics_as_printed() -> None:
    rows = published().query("paper == 'Ettinger 2020'")
    assert len(rows) == 52 + 24 + 8 + 4  # perturbed, their spread, in the text
    assert {*rows.model} == {"bert-base-uncased", "bert-large-uncased"}
    numbers = rows.set_index(["model", *NumberKey._fields]).value

    def large(probe: str, metric: str, subset: str = "", perturbation: str = "") -> float:
        key = NumberKey(probe, metric, part=subset, perturbation=perturbation)
        return float(numbers["bert-large-uncased", *key])

    assert large("cprag", "sensitivity_margin") == 0.588
    assert large("role", "accuracy@5", "cloze <=.77") == 0.529
    assert large("neg_simp", "sensitivity", "negative") == 0.0
    assert large("neg_simp", "sensitivity_margin", "affirmative") == 1.0
    assert large("role", "accuracy@5", "", "generic_both") == pytest.approx(0.148)
    shuffled = [large("cprag", metric, "", "shuffled+truncated")
                for metric in ("accuracy@1", "accuracy@1_sd")]  # fmt: skip
    assert shuffled == [0.1, 0.03]
    natural = [large("neg_nat", "sensitivity", f"{polarity}natural")
               for polarity in ("", "affirmative ", "negative ")]  # fmt: skip
    assert natural == [0.875, 0.75, 1.0]


def test_sizes_and_templates_as_printed() -> None:
    # "Errors are concentrated around the diagonal, and when we compare objects to sun".
    wrong = published_size_errors()
    assert {second for _, second in wrong} == {"nail", "table", "airplane", "city", "sun"}
    assert len([pair for pair in wrong if pair[1] == "sun"]) == 4
    templates = published().query("paper == 'Talmor et al. 2020' and table == 6")
    assert [*templates.value] == [0.75, 0.68, 0.61, 0.47, 0.41, 0.3]
    assert templates.part.iloc[4] == "diet"


def test_expert_probes_as_printed() -> None:
    rows = published()
    rows = rows[(rows.paper == "Richardson & Sabharwal 2020") & (rows.probe == "hyponymy")]
    by_key = {(row.table, row.group, row.model, row.metric, row.split): row.value
             for row in rows.itertuples()}  # fmt: skip
    assert by_key[7, "science_zero_shot", "roberta", "probe_accuracy_before", "test"] == 0.586
    assert by_key[7, "inoculated", "roberta", "probe_accuracy", "dev"] == 0.812
    assert by_key[7, "inoculated", "roberta", "probe_accuracy", "test"] == 0.894
    assert by_key[7, "inoculated", "roberta", "original_task_change", ""] == pytest.approx(-0.0164)
    assert by_key[7, "human", "human", "accuracy", "test"] == 0.955
    assert (7, "human", "human", "accuracy", "dev") not in by_key
    assert by_key[8, "", "roberta", "strict_cluster_accuracy", "dev"] == pytest.approx(0.367)
    assert by_key[8, "", "choice_only", "delta", "dev"] == pytest.approx(-0.337)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table,probe,model\n", "csv:1: the columns are not paper, table, group"),
        (f"{HEADER}\n", "the file has no rows"),
        (f"{HEADER}\nP,6,m\n", "csv:2: value is not a percentage"),
        (f"{HEADER}\n{ROW}\n{ROW},,\n", "cannot be read .*line 3, saw 20"),
        (
            f"{HEADER}\n{ROW}\n{ROW.replace(',5,', ',6,')}\n",
            "csv:3: an earlier row has the same key",
        ),
        (f"{HEADER}\n{ROW.replace(',5,', ',x,')}\n", "value is not a percentage: .* x, "),
        (f"{HEADER}\n{ROW.replace(',5,', ',120,')}\n", "csv:2: value is not a percentage"),
        (f"{HEADER}\n{ROW.replace(',5,', ',,')}\n", "csv:2: value is not a percentage"),
        (f"{HEADER}\n{ROW.replace(',6,', ',T,')}\n", "csv:2: table is not a whole"),
        (f"{HEADER}\n{ROW.replace(',6,', ',,')}\n", "csv:2: table is missing"),
        (f"{HEADER}\n{ROW}1.5\n", "csv:2: n is not a whole"),
    ],
)
def test_damaged_files_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "published.csv"
    path.write_text(text)
    with pytest.raises(PublishedError, match=message):
        published(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(PublishedError, match=r"published\.csv: cannot be read"):
        published(tmp_path / "published.csv")
    (tmp_path / "latin.csv").write_bytes(f"{HEADER}\n{ROW}".encode() + b"\xff")
    with pytest.raises(PublishedError, match=r"latin\.csv: cannot be read"):
        published(tmp_path / "latin.csv")


def test_a_difference_from_so_many_items_has_an_interval() -> None:
    # Newcombe 1998: 56 of 70 against 48 of 80.
    gap = difference(Estimate(0.8, *wilson(56, 70)), 0.6, 80)
    assert (gap.value, gap.ci_low, gap.ci_high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert difference(Estimate(0.65, 0.55, 0.75), 0.6) == Estimate(pytest.approx(0.05))
    assert difference(Estimate(0.65), 0.6, 80) == Estimate(pytest.approx(0.05))


@pytest.mark.parametrize(
    ("value", "where"), [(0.39, "above it"), (0.4, "in our interval"), (0.61, "below it")]
)
def test_where_a_printed_number_lies(value: float, where: str) -> None:
    assert lies(Estimate(value, value - 0.1, value + 0.1), 0.5) == where
    assert lies(Estimate(value), 0.5) is None


# What is of the same model and items.


def run(label: str, **fields: Any) -> Run:
    row = {"model": label, "value": 0.5}
    return Run(**vars(record_of((Row(**row, **role_of(row)),), **fields)))


SETS = ["arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa"]


@pytest.mark.parametrize(
    ("label", "fields", "expected"),
    [
        ("roberta-large", {"hub_id": "roberta-large"}, "roberta-large"),
        ("roberta-large", {"hub_id": "FacebookAI/roberta-large"}, "roberta-large"),
        ("mine", {"hub_id": "google-bert/bert-base-uncased"}, "bert-base-uncased"),
        ("roberta-large", {"hub_id": "roberta-large", "revision": "a" * 40},
         "roberta-large"),
        ("roberta-large", {"hub_id": "roberta-large", "revision": "other"}, None),
        ("roberta-large", {"hub_id": "someone/roberta-large"}, None),
        ("roberta-large", {"model_sha256": "0" * 64}, None),  # a folder
        ("roberta-large", {}, None),
        ("roberta-large (random weights)", {"hub_id": "roberta-large"}, None),
        ("MLM-baseline (word_vectors)", {}, None),
        ("MLM-baseline (glove.6B.50d)", {}, "mlm_baseline"),
        ("ESIM (glove.6B.50d.txt)", {}, "esim_baseline"),
    ],
)  # fmt: skip
def test_a_checkpoint_is_known_by_its_id(
    label: str, fields: dict[str, Any], expected: str | None
) -> None:
    settings = {"hub_id": None, **fields}
    assert paper_model(run(label, **settings)) == expected


@pytest.mark.parametrize(
    ("original_parts", "expected"),
    [
        ({"sets": SETS, "train_items": None}, True),
        ({"sets": [*SETS[::-1], "mcql"], "train_items": None}, True),
        ({"sets": SETS[:-1], "train_items": None}, False),
        ({"sets": [*SETS, "race"], "train_items": None}, False),
        ({"sets": ["mine/sciq.yaml", *SETS[:3], "textbookqa"], "train_items": None}, False),
        ({"sets": SETS, "train_items": 1000}, False),
        (None, False),
    ],
)
def test_a_task_is_known_by_its_parts(original_parts: object, expected: bool) -> None:
    task_run = run("m", original_task="science", original_parts=original_parts)
    assert on_paper_task(task_run) is expected


AGES = "006b225ff6efd2f2fb2bba111bdf7bbae91e1a9be537074cc5f4cb49de296fb3"


@pytest.mark.parametrize(
    ("probe", "split", "path", "sha256", "expected"),
    [
        ("age_comparison", "dev", "mine.jsonl", AGES, True),  # what it holds, not its name
        ("age_comparison", "dev", "number_comparison_age_compare_masked_dev.jsonl", "0", False),
        ("age_comparison", "test", "mine.jsonl", AGES, False),  # none was released
        ("dictionary_qa", "test", "test.jsonl", "0", True),  # of this no checksum is known
        ("dictionary_qa", "test", "test.jsonl.gz", "0", True),
        ("dictionary_qa", "test", "dev.jsonl", "0", False),
        ("age_small", "test", "test.jsonl.gz", "0", False),  # the shipped ones are no paper's
        ("of_my_own", "dev", "dev.jsonl", "0", False),
    ],
)
def test_items_are_known_by_their_file(
    probe: str, split: str, path: str, sha256: str, expected: bool
) -> None:
    data = (DataFile(path="train.jsonl", sha256="1"), DataFile(path=path, sha256=sha256))
    released = released_file(Run(protocol="curve", probe=probe, data=data), split)
    assert (released is not None) is expected


def test_a_recording_is_known_by_what_it_holds() -> None:
    released = "7a52da21f2031323a72282d62956026e49840f52851511548a59b96430bde67a"
    rows = (Row(model="bert", kind="recorded", value=0.5),)
    for sha256, expected in ((released, "bert-base-uncased"), ("0" * 64, None)):
        data = (DataFile(path="modelpreds-cprag-bert-base-uncased.txt", sha256=sha256),)
        assert paper_model(Run(protocol="diagnose", rows=rows, data=data)) == expected
