from __future__ import annotations

import json
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.protocols.engine.settings import FileSettings
from probelight.protocols.jobs.job import RunContext
from probelight.protocols.zero_shot.command import load_sets, own_configs, read_set
from probelight.results.record import checksums

NONE = FileSettings()


def test_each_probe_has_its_own_split_that_of_all_or_dev() -> None:
    found = load_sets(["age_small", "taxonomy_small:test"], NONE, None, None)
    assert [(one.name, one.split) for one in found] == [
        ("age_small", "dev"),
        ("taxonomy_small", "test"),
    ]
    [only] = load_sets(["age_small"], NONE, "train", None)
    assert only.split == "train"


def test_a_file_of_ones_own_is_called_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "whales.jsonl.gz"
    write_ai2(path, [Record("1", "a whale is [MASK] than a mouse .", ("larger", "smaller"), 0)])
    [one] = load_sets((), FileSettings(str(path), "mc_mlm"), None, None)
    assert (one.name, one.split, len(one.data.records)) == ("whales", "", 1)
    assert checksums(one.data) == [one.data.files[0].sha256]


def test_what_the_catalogue_lacks_is_told_to_the_process_that_reads_it(
    tmp_path: Path, tiny_probes: Path
) -> None:
    path = tmp_path / "whales.v2.jsonl"
    write_ai2(path, [Record("1", "a whale is [MASK] than a mouse .", ("larger", "smaller"), 0)])
    table = tmp_path / "told.csv"
    table.write_text("sentence,gold\na whale is [MASK] .,large\n")
    mirror = str(tiny_probes / "mirror")
    named = ["age_small:test", str(tiny_probes / "first.yaml")]
    for sets in (
        load_sets((), FileSettings(str(table), choices="small,large"), None, None),
        load_sets((), FileSettings(str(path), "mc_mlm"), None, None),
        load_sets(named, NONE, None, mirror),
    ):
        planned = RunContext(mirror=mirror, own=own_configs(sets))
        context = RunContext.from_json(json.loads(json.dumps(planned.to_json())))
        for one in sets:
            read = read_set(context, one.name, one.split)
            assert (read.records, read.notices) == (one.data.records, one.data.notices)
            assert (read.config.name, checksums(read)) == (
                one.data.config.name,
                checksums(one.data),
            )
    assert list(own_configs(sets)) == ["first"]  # age_small is known everywhere


def test_two_probes_of_one_name_are_refused(tmp_path: Path, tiny_probes: Path) -> None:
    text = (tiny_probes / "second.yaml").read_text()
    (tmp_path / "first.yaml").write_text(text.replace("a test", "another"))
    named = f"{tiny_probes / 'first.yaml'}:test,{tmp_path / 'first.yaml'}:test"
    with pytest.raises(UsageError, match="two probes are called 'first'"):
        load_sets(named.split(","), NONE, None, str(tiny_probes / "mirror"))
