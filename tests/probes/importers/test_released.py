"""The released files themselves, from the folder of PROBELIGHT_DATA_MIRROR."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from probelight.probes.catalog import load_probe_config, probe_names
from probelight.probes.controls import (
    choose_nonsense,
    draw_substitutes,
    no_language,
    perturbed_language,
)
from probelight.probes.record import group_of
from probelight.probes.source import load_probe

pytestmark = pytest.mark.paper_data

REPEATED = "3 rows repeat a choice that is not the gold one (lines 1456, 2747, 2806)"
# split: items, groups, notices
RELEASED = {
    "always_never": {"dev": (280, 277, ())},
    "age_comparison": {"train": (4032, 2016, ()), "dev": (500, 253, ())},
    "objects_comparison": {"dev": (500, 500, ())},
    "antonym_negation": {"dev": (500, 491, ())},
    "multihop_composition": {"dev": (500, 378, ("20 ids repeat",))},
    "definitions": {"train": (3000, 1803, ("31 ids repeat",))},
    "synonymy": {"train": (3000, 2712, ("6 ids repeat",))},
    "hypernymy": {"train": (3000, 1341, ("505 ids repeat",)), "test": (2254, 1533, ())},
    "hyponymy": {"train": (3000, 1327, ("23 ids repeat",))},
    "dictionary_qa": {"train": (3000, 2630, ()), "dev": (3000, 2288, ())},
    "arc_easy": {"train": (2251, 2245, ()), "test": (2376, 2371, ())},
    "arc_challenge": {"train": (1119, 1118, ()), "test": (1172, 1170, ())},
    "openbookqa": {"train": (4957, 4831, (REPEATED,))},
}
CASES = [(name, split) for name, splits in RELEASED.items() for split in splits]


@pytest.mark.parametrize(("name", "split"), CASES)
def test_released_files_load_as_they_are(data_mirror: Path, name: str, split: str) -> None:
    data = load_probe(name, split, mirror=data_mirror)
    groups = {group_of(record, data.config.group_by) for record in data.records}
    assert (len(data.records), len(groups), data.notices) == RELEASED[name][split]
    assert data.files[0].sha256 == data.config.files[split].sha256


def test_no_released_file_is_left_out(data_mirror: Path) -> None:
    paths = set()
    for name in probe_names():
        config = load_probe_config(name)
        paths |= {data_mirror / config.mirror_folder / f.path for f in config.files.values()}
    stems = {path.as_posix().removesuffix(".gz") for path in paths}
    files = list(data_mirror.rglob("*.jsonl*"))
    assert files
    assert [f for f in files if f.as_posix().removesuffix(".gz") not in stems] == []


@pytest.mark.parametrize(
    ("name", "split"), [case for case in CASES if load_probe_config(case[0]).arguments]
)
def test_controls_fit_every_row(data_mirror: Path, name: str, split: str) -> None:
    data = load_probe(name, split, mirror=data_mirror)
    nonsense = choose_nonsense(data.config, lambda word: True)
    substitutes = draw_substitutes(data.config, seed=1)
    for record in data.records:
        control = no_language(record, data.config, nonsense)
        arguments = list(record.meta["arguments"])
        words = control.stem.replace("[MASK]", " ").split()
        if record.meta.get("template") == "larger":  # the pair alone does not decide the answer
            [decides] = {"larger", "smaller"} & set(record.stem.split())
            assert control.stem == f"{arguments[0]} [MASK] {decides} {arguments[1]}"
            words.remove(decides)
        assert " ".join(words) == " ".join(arguments)
        assert len(set(control.choices)) == len(set(record.choices))
        changed = perturbed_language(record, data.config, substitutes)
        assert changed.choices == record.choices
        assert all(argument in changed.stem for argument in arguments)


def test_always_never_templates(data_mirror: Path) -> None:
    records = load_probe("always_never", "dev", mirror=data_mirror).records
    counts = Counter(record.meta["template"] for record in records)
    assert counts == {"contains": 80, "larger": 70, "has": 68, "diet": 43, "placed": 19}


def test_known_leaks_and_clusters(data_mirror: Path) -> None:
    def clusters(name: str, split: str) -> Counter[str]:
        records = load_probe(name, split, mirror=data_mirror).records
        return Counter(record.meta["cluster"] for record in records)

    train, test = clusters("hypernymy", "train"), clusters("hypernymy", "test")
    assert len(train.keys() & test.keys()) == 39
    assert sum(size == 1 for size in test.values()) == 1064
    senses = clusters("dictionary_qa", "train"), clusters("dictionary_qa", "dev")
    assert len(senses[0].keys() & senses[1].keys()) == 689
