from __future__ import annotations

import gzip
import hashlib
import http.server
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from probelight.io.download import DownloadError, NotThereError
from probelight.io.errors import ConfigError, RecordError
from probelight.io.files import DataFile
from probelight.probes import catalog
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record, groups_of
from probelight.probes.source import load_file, load_probe

AGE = "A {} year old person age is [MASK] than a {} year old person ."
AGES = tuple(
    Record(str(a), AGE.format(a, b), ("older", "younger"), int(a < b), {}, n)
    for n, (a, b) in enumerate([(41, 42), (42, 41), (50, 43)], start=1)
)
QUESTIONS = tuple(
    Record(f"q{n}", f"stem {n}", tuple("abcde"), n % 5, {"cluster": f"c{n // 2}"}, n)
    for n in range(1, 7)
)
AGE_PATH = "olmpics/challenge/number_comparison/number_comparison_age_compare_masked_train.jsonl.gz"
FIVE = "setup: mc_qa\nnum_choices: 5\nchance: 0.2\n"
HYPERNYMY_PATH = "semantic_fragments/data_mcqa/hypernymy/train.jsonl"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "my mirror"
    write_ai2(folder / AGE_PATH.removesuffix(".gz"), AGES)
    write_ai2(folder / f"{HYPERNYMY_PATH}.gz", QUESTIONS)
    write_ai2(folder / "science/ARC-Easy/train.jsonl.gz", QUESTIONS)
    return folder


@pytest.fixture
def served(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = partial(Quiet, directory=str(mirror))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_mirror_is_read_with_gzip_added_or_removed(mirror: Path) -> None:
    ages = load_probe("age_comparison", "train", mirror=mirror)
    assert [r.stem for r in ages.records] == [r.stem for r in AGES]
    assert ages.records[2].meta == {"arguments": ("50", "43")}
    questions = load_probe("hypernymy", "train", mirror=mirror.as_uri())
    assert questions.records == QUESTIONS
    assert "is not the released file: its sha256 is" in questions.notices[0]
    path = mirror / f"{HYPERNYMY_PATH}.gz"
    sha256 = hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
    assert questions.files == (DataFile(str(path), sha256, 6),)
    assert load_probe("arc_easy", "train", mirror=mirror).records == QUESTIONS
    write_ai2(path.with_suffix(""), QUESTIONS[:3])  # next to it, and read first
    assert load_probe("hypernymy", "train", mirror=mirror).records == QUESTIONS[:3]


def test_a_served_mirror(served: str, tmp_path: Path, config_file: Callable[..., Path]) -> None:
    read = partial(load_probe, mirror=served, cache_dir=tmp_path / "cache")
    path = config_file(f"{FIVE}files: {{train: {HYPERNYMY_PATH}}}\nbase_url: http://none")
    data = read(path, "train")
    assert data.records == QUESTIONS
    assert read(path, "train", offline=True) == data
    with pytest.raises(DownloadError, match=r"train\.jsonl\.gz: its content has sha"):
        read("hypernymy", "train")
    with pytest.raises(NotThereError, match=r"test\.jsonl: the server answered 404"):
        read("hypernymy", "test")


def test_a_download_that_cannot_be_read_names_its_address_and_spoils_nothing(
    served: str, mirror: Path, tmp_path: Path, config_file: Callable[..., Path]
) -> None:
    path = config_file(FIVE + f"base_url: {served}/\nfiles: {{train: d/train.jsonl}}")
    sent, cache = mirror / "d" / "train.jsonl", tmp_path / "cache"
    sent.parent.mkdir()
    sent.write_text('{"error": "log in"}\n')
    address = rf"{served}/d/train\.jsonl: the downloaded file cannot be read \(.*:1: .*"
    with pytest.raises(
        RecordError, match=address + r"downloads it again; .*kept as (.*)"
    ) as caught:
        load_probe(path, "train", cache_dir=cache)
    copy = Path(str(caught.value).rpartition(" kept as ")[2])
    assert copy.read_text() == sent.read_text()
    write_ai2(sent, QUESTIONS)
    data = load_probe(path, "train", cache_dir=cache)
    assert (data.records, data.config.name) == (QUESTIONS, "mine")
    cached = copy.with_suffix("")
    cached.write_text("{}\n")  # offline nothing is thrown away that could not be had again
    with pytest.raises(
        RecordError, match=address + rf"remove {cached} and run without offline mode"
    ):
        load_probe(path, "train", cache_dir=cache, offline=True)
    assert cached.read_text() == "{}\n"


def test_what_is_not_in_a_mirror_is_named(mirror: Path) -> None:
    with pytest.raises(
        NotThereError, match=r"train\.jsonl \(nor train\.jsonl\.gz\); leave out --mirr"
    ):
        load_probe("synonymy", "train", mirror=mirror)
    with pytest.raises(NotThereError, match="the mirror is not a folder"):
        load_probe("synonymy", "train", mirror=mirror / "none")
    with pytest.raises(ConfigError, match=r"no split 'tset' \(did you mean 'test'\?\); it has t"):
        load_probe("synonymy", "tset", mirror=mirror)


def test_offline_without_a_copy_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"hypernymy/train\.jsonl: not in .*--mirror FOLDER"):
        load_probe("hypernymy", "train", cache_dir=tmp_path, offline=True)
    with pytest.raises(NotThereError, match=r"Ask its authors.*<mirror>/science/mcql/train\.jsonl"):
        load_probe("mcql", "train", cache_dir=tmp_path)


def test_embedded_files_need_neither_mirror_nor_network(
    tmp_path: Path, config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "ASSETS", tmp_path / "assets")
    path = config_file(FIVE + "base_url: embedded\nfiles: {train: train.jsonl.gz}")
    with pytest.raises(NotThereError, match="this checkout is not complete; for a probe"):
        load_probe(path, "train")
    write_ai2(tmp_path / "assets/probes/mine/train.jsonl.gz", QUESTIONS)
    assert load_probe(path, "train", mirror=tmp_path, offline=True).records == QUESTIONS


def test_a_probe_of_ones_own_has_its_files_beside_its_config_or_in_a_folder(
    tmp_path: Path, config_file: Callable[..., Path], mirror: Path
) -> None:
    config_path = config_file(FIVE + "files: {dev: d/dev.jsonl, test: test.jsonl}")
    write_ai2(tmp_path / "d/dev.jsonl", QUESTIONS)
    write_ai2(mirror / "d/dev.jsonl", QUESTIONS[:3])
    for mirror_dir in (None, mirror):  # its own folder comes first
        assert load_probe(config_path, "dev", mirror=mirror_dir, offline=True).records == QUESTIONS
    named = tmp_path / "named.yaml"
    for folder in ("d", "./d/", str(tmp_path / "d")):
        named.write_text(config_path.read_text().replace("d/dev", "dev") + f"\nbase_url: {folder}")
        assert load_probe(named, "dev", offline=True).records == QUESTIONS
    with pytest.raises(NotThereError, match=r"/d/test\.jsonl \(nor test\.jsonl\.gz\); `base_url`"):
        load_probe(named, "test", offline=True)
    write_ai2(mirror / "test.jsonl", QUESTIONS[:3])
    assert load_probe(named, "test", mirror=mirror).records == QUESTIONS[:3]
    (mirror / "test.jsonl").unlink()
    with pytest.raises(NotThereError, match=r"my mirror/test.jsonl \(.*; nor is it in .*/d$"):
        load_probe(named, "test", mirror=mirror)


def test_rows_that_cannot_be_of_the_probe_are_errors(
    mirror: Path, tmp_path: Path, config_file: Callable[..., Path]
) -> None:
    write_ai2(mirror / AGE_PATH, QUESTIONS)
    with pytest.raises(RecordError, match=r"train\.jsonl\.gz:1: 0 \[MASK\]"):
        load_probe("age_comparison", "train", mirror=mirror)
    strange = Record("1", AGES[0].stem, ("older", "taller"), 0)
    write_ai2(mirror / AGE_PATH, [*AGES, strange])
    with pytest.raises(RecordError, match=r"gz:4: 'taller' is not one of the candidates"):
        load_probe("age_comparison", "train", mirror=mirror)
    four = "setup: mc_qa\nnum_choices: 4\nchance: 0.25\nfiles: {train: x}"
    write_ai2(tmp_path / "x", QUESTIONS)
    with pytest.raises(RecordError, match=r"x:1: 5 choices; mine has at most 4"):
        load_probe(config_file(four), "train")


def test_templates_are_named_and_strange_stems_counted(mirror: Path) -> None:
    choices = ("never", "rarely", "sometimes", "often", "always")
    stems = ("A robin [MASK] has a horn .", "bed is [MASK] placed in the hall .", "It [MASK] is .")
    records = [Record(str(n), stem, choices, 0) for n, stem in enumerate(stems)]
    config = catalog.load_probe_config("always_never")
    write_ai2(mirror / "olmpics" / config.files["dev"].path, records)
    data = load_probe("always_never", "dev", mirror=mirror)
    assert [r.meta.get("template") for r in data.records] == ["has", "placed", None]
    assert "1 stems fit no template of the config" in data.notices


def test_a_users_own_file_needs_no_config(tmp_path: Path) -> None:
    write_ai2(tmp_path / "my.jsonl", AGES)
    data = load_file(tmp_path / "my.jsonl", "mc_mlm")
    assert data.records == AGES
    assert (data.config.name, data.config.description) == ("my", "the file my.jsonl")
    assert data.config.candidates == ("older", "younger")
    assert (data.config.num_choices, data.config.chance, data.config.group_by) == (2, 0.5, "stem")
    write_ai2(tmp_path / "my.jsonl", [*QUESTIONS[:1], Record("1", "s", ("a", "b"), 0)])
    data = load_file(tmp_path / "my.jsonl", "mc_qa")
    assert data.config.chance == pytest.approx((1 / 5 + 1 / 2) / 2)
    assert data.config.candidates == ()
    write_ai2(tmp_path / "my.jsonl", QUESTIONS)
    assert load_file(tmp_path / "my.jsonl", "mc_qa").config.group_by == "cluster"
    with pytest.raises(ValueError, match="must be one of mc_mlm, mc_qa"):
        load_file(tmp_path / "my.jsonl", "mcqa")  # type: ignore[arg-type]
    (tmp_path / "bad.jsonl").write_text(json.dumps({"id": "1"}))
    with pytest.raises(RecordError, match=r"bad\.jsonl:1: no column for the sentence"):
        load_file(tmp_path / "bad.jsonl", "mc_qa")


def test_a_config_says_how_golds_are_read(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    (tmp_path / "dev.csv").write_text("question,answer,choices\n1+2?,3,1|2|3|4\n")
    config = config_file("setup: mc_qa\nnum_choices: 4\nchance: 0.25\nfiles: {dev: dev.csv}\n")
    with pytest.raises(RecordError, match=r"dev\.csv:2: the gold '3' can be .*`gold:`"):
        load_probe(config, "dev")
    config.write_text(config.read_text() + "gold: index\n")
    assert load_probe(config, "dev").records[0].gold == "4"
    write_ai2(tmp_path / "dev.jsonl", QUESTIONS)
    with pytest.raises(RecordError, match="all golds are labels of choices; leave out gold"):
        load_file(tmp_path / "dev.jsonl", gold="text")


def test_minimal_pairs_have_a_file_or_a_config_and_are_for_scoring_alone(
    tmp_path: Path, config_file: Callable[..., Path]
) -> None:
    path = tmp_path / "dev.tsv"
    path.write_text("a b\tb a\na b\ta a\nc d\td c\n")
    data = load_file(path, "minimal_pair")
    assert (data.config.chance, data.config.candidates) == (0.5, ())
    # Pairs that share their right sentence are one group.
    assert len(set(groups_of(data.records, data.config.group_by))) == 2
    text = "setup: minimal_pair\nnum_choices: 2\nchance: 0.5\nfiles: {dev: dev.tsv}\n"
    config = config_file(text + "leave_out: {dev: [2]}\n")
    assert [r.gold for r in load_probe(config, "dev", pairs=True).records] == ["a b", "c d"]
    with pytest.raises(ConfigError, match=r"mine has minimal pairs .* only `train.py zero-shot`"):
        load_probe(config, "dev")
