from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.download import NotThereError
from probelight.io.errors import RecordError
from probelight.probes.diagnostics.sets import SETS, load_set
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


def test_names_and_addresses() -> None:
    assert list(SETS) == list(SIZES)
    assert [one.recorded_as for one in SETS.values()][:5] == [
        "cprag", "role", "negsimp", "negnat", "ROLE-1500",
    ]  # fmt: skip
    assert {f"{one.mirror_folder} {one.base_url}" for one in SETS.values()} == {
        "lm-diagnostics https://raw.githubusercontent.com/aetting/lm-diagnostics/master",
        "extended-diagnostics https://raw.githubusercontent.com/text-machine-lab/"
        "extending_psycholinguistic_dataset/main/data",
    }


def test_another_file_of_a_mirror_is_read_and_said(tmp_path: Path) -> None:
    data = load_set("cprag", write_released(tmp_path))
    assert len(data.items) == 2
    [notice] = data.notices
    assert "CPRAG-102.tsv is not the released file" in notice


def test_what_a_mirror_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotThereError, match=r"lm-diagnostics/datasets/ROLE-88/ROLE-88\.tsv"):
        load_set("role", tmp_path)


def test_a_malformed_file_is_named(tmp_path: Path) -> None:
    write_released(tmp_path, {"extended-diagnostics/ROLE-1500.txt": "one line\n"})
    with pytest.raises(RecordError, match=r"ROLE-1500\.txt:1: a sentence that ends in a comma"):
        load_set("role_1500", tmp_path)
