"""Where a released file is looked for, and what is said where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.io.download import NotThereError
from probelight.probes.catalog import FileSource, ProbeConfig
from probelight.probes.released import locate

SOURCE = FileSource("d/train.jsonl")


def probe(base_url: str | None = None, get: str = "") -> ProbeConfig:
    return ProbeConfig(
        "mine", "mc_qa", 2, 0.5, base_url=base_url, mirror_folder="released", get=get
    )


def put(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n")
    return path


def test_a_mirror_has_a_folder_for_each_address(tmp_path: Path) -> None:
    path = put(tmp_path, "released/d/train.jsonl.gz")
    assert locate(probe(), SOURCE, tmp_path, None, None).path == path
    assert locate(probe(), SOURCE, tmp_path.as_uri(), None, None).path == path


def test_the_files_own_name_comes_before_that_with_gzip(tmp_path: Path) -> None:
    put(tmp_path, "released/d/train.jsonl.gz")
    path = put(tmp_path, "released/d/train.jsonl")
    assert locate(probe(), SOURCE, tmp_path, None, None).path == path


def test_a_probes_own_folder_comes_before_a_mirror(tmp_path: Path) -> None:
    put(tmp_path, "mirror/released/d/train.jsonl")
    own = put(tmp_path, "own/d/train.jsonl")
    config = probe(str(tmp_path / "own"))
    assert locate(config, SOURCE, tmp_path / "mirror", None, None).path == own
    own.unlink()
    with pytest.raises(NotThereError, match=r"own/d/train\.jsonl \(nor train\.jsonl\.gz\)"):
        locate(config, SOURCE, None, None, None)


def test_without_an_address_it_says_how_to_get_the_file() -> None:
    with pytest.raises(NotThereError, match=r"Ask. Put it .* at <mirror>/released/d/train\.jsonl"):
        locate(probe(get="Ask."), SOURCE, None, None, None)
