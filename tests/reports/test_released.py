from __future__ import annotations

from typing import Any

import pytest

from probelight.io.files import DataFile
from probelight.reports.released import on_paper_task, paper_model, released_file
from probelight.results.load import Run
from probelight.results.row import Row
from tests.fixtures.results import record_of, role_of


def run(label: str, **facts: Any) -> Run:
    row = {"model": label, "value": 0.5}
    return Run(**vars(record_of((Row(**row, **role_of(row)),), **facts)))


SETS = ["arc_easy", "arc_challenge", "openbookqa", "sciq", "textbookqa"]


@pytest.mark.parametrize(
    ("label", "facts", "expected"),
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
    label: str, facts: dict[str, Any], expected: str | None
) -> None:
    known = {"hub_id": None, **facts}
    assert paper_model(run(label, **known)) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
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
def test_a_task_is_known_by_its_parts(parts: object, expected: bool) -> None:
    known = run("m", original_task="science", original_parts=parts)
    assert on_paper_task(known) is expected


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
    found = released_file(Run(protocol="curve", probe=probe, data=data), split)
    assert (found is not None) is expected


def test_a_recording_is_known_by_what_it_holds() -> None:
    released = "7a52da21f2031323a72282d62956026e49840f52851511548a59b96430bde67a"
    rows = (Row(model="bert", kind="recorded", value=0.5),)
    for sha256, expected in ((released, "bert-base-uncased"), ("0" * 64, None)):
        data = (DataFile(path="modelpreds-cprag-bert-base-uncased.txt", sha256=sha256),)
        assert paper_model(Run(protocol="diagnose", rows=rows, data=data)) == expected
