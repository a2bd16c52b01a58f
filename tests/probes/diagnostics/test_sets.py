from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.download import NotThereError
from probelight.io.errors import RecordError
from probelight.probes.diagnostics.items import InferenceItem, RoleItem
from probelight.probes.diagnostics.sets import SETS, load_set, perturbations_of, shuffled
from tests.fixtures.diagnostics import write_released

SIZES = {  # items and prompts
    "cprag": (34, 102),
    "role": (88, 88),
    "neg_simp": (18, 72),
    "neg_nat": (16, 64),
    "role_1500": (750, 1500),
    "neg_1500_simp_temp": (770, 1540),
    "neg_1500_simp_gen": (750, 1500),
}


@pytest.mark.paper_data
@pytest.mark.parametrize("name", SETS)
def test_released_sets_have_their_sizes(name: str, data_mirror: Path) -> None:
    data = load_set(name, data_mirror)
    assert (len(data.items), len(data.prompts)) == SIZES[name]
    assert data.notices == ()
    assert data.files[0].sha256 == data.source.file.sha256


def test_other_missing_and_malformed_files_of_a_mirror_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotThereError, match=r"lm-diagnostics/datasets/ROLE-88/ROLE-88\.tsv"):
        load_set("role", tmp_path)
    data = load_set("cprag", write_released(tmp_path))
    assert len(data.items) == 2
    [notice] = data.notices
    assert "CPRAG-102.tsv is not the released file" in notice
    write_released(tmp_path, {"extended-diagnostics/ROLE-1500.txt": "one line\n"})
    with pytest.raises(RecordError, match=r"ROLE-1500\.txt:1: the sentence must end in a comma"):
        load_set("role_1500", tmp_path)


ITEM = InferenceItem("“Oh,” he said at once.", "She ate the last", "a", "b", "c", "H")


def test_each_set_has_its_own(tmp_path: Path) -> None:
    mirror = write_released(tmp_path)
    by_set = {name: perturbations_of(load_set(name, mirror)) for name in SETS}
    assert {name: [p.name for p in listed] for name, listed in by_set.items() if listed} == {
        "cprag": ["shuffled", "truncated", "shuffled+truncated"],
        "role": ["generic_object", "generic_subject", "generic_both"],
    }
    item, *_ = load_set("role", mirror).items
    assert [p.context(item, 0) for p in by_set["role"]] == [
        "the owner forgot which one the customer had",
        "the owner forgot which waitress the other had",
        "the owner forgot which one the other had",
    ]
    assert [p.is_drawn for p in by_set["cprag"]] == [True, False, True]


def test_the_words_of_the_first_sentence_alone_are_shuffled() -> None:
    orders = [shuffled(ITEM, seed) for seed in range(100)]
    assert {tuple(sorted(order.split())) for order in orders} == {tuple(sorted(ITEM.first.split()))}
    # 120 orders of five words: a hundred draws are about 68 different ones.
    assert 50 < len(set(orders)) < 90
    assert orders == [shuffled(ITEM, seed) for seed in range(100)]


def test_both_are_the_one_and_the_other(tmp_path: Path) -> None:
    data = load_set("cprag", write_released(tmp_path))
    shuffles, cuts, shuffled_cuts = perturbations_of(data)
    item = data.items[1]
    assert isinstance(item, InferenceItem)
    assert cuts.context(item, 7) == "She lit a candle. ate the"
    assert shuffles.context(item, 7) == f"{shuffled(item, 7)} She ate the"
    assert shuffled_cuts.context(item, 7) == f"{shuffled(item, 7)} ate the"


def test_nouns_of_several_words() -> None:
    item = RoleItem("1", "a", "I know which big bathe lot the tall man had", ("x",), 0.1, "x")
    assert item.with_nouns("one", None) == "I know which one the tall man had"
    assert item.with_nouns(None, "other") == "I know which big bathe lot the other had"


@pytest.mark.paper_data
def test_all_released_items_can_be_perturbed(data_mirror: Path) -> None:
    for name, number in (("cprag", 34), ("role", 88)):
        data = load_set(name, data_mirror)
        for change in perturbations_of(data):
            assert len(data.items) == number
            assert all(change.context(item, 0) != item.prompts[0].context for item in data.items)
    generic = [perturbation.context(data.items[0], 0) for perturbation in perturbations_of(data)]
    assert generic[2] == "The librarian documented which one the other had"
