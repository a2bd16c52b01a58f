from __future__ import annotations

import pytest
from safetensors import safe_open

from probelight.io.files import sha256_of
from probelight.io.package import BUNDLED_MODEL, BUNDLED_MODELS, QUESTION_MODEL, SMALL_MODEL
from probelight.models.checkpoint_files import CheckpointRef, model_folder
from probelight.models.loading import MASKED_LM, load_pretrained
from probelight.probes.catalog import load_probe_config, probe_names
from probelight.probes.controls import NONSENSE_WORDS
from probelight.probes.source import load_probe
from tests.fixtures.checkout import ROOT

VECTORS = ROOT / "assets" / "word_vectors.txt"


def test_the_shipped_files_are_small() -> None:
    for name in BUNDLED_MODELS:
        assert (model_folder(name) / "model.safetensors").stat().st_size <= 20_000_000
    assert VECTORS.stat().st_size <= 4_000_000


@pytest.mark.parametrize(
    ("name", "shape"),
    [(SMALL_MODEL, [12000, 256]), (BUNDLED_MODEL, [14000, 256]), (QUESTION_MODEL, [14000, 256])],
)
def test_the_model_card_is_about_the_model_that_is_shipped(name: str, shape: list[int]) -> None:
    folder = model_folder(name)
    assert sha256_of(folder / "model.safetensors") in (folder / "README.md").read_text("utf-8")
    with safe_open(folder / "model.safetensors", "pt") as weights:
        slices = [weights.get_slice(key) for key in weights.keys()]  # noqa: SIM118
    assert shape in [tensor.get_shape() for tensor in slices]
    assert {tensor.get_dtype() for tensor in slices} == {"F16"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", [SMALL_MODEL, BUNDLED_MODEL])
def test_every_word_that_must_be_is_one_piece(name: str) -> None:
    _, tokenizer = load_pretrained(MASKED_LM, CheckpointRef(name))
    words = [*NONSENSE_WORDS, *map(str, range(121))]
    for probe in probe_names():
        words += load_probe_config(probe).candidates
    for split in ("train", "dev", "test"):
        words += [
            c for record in load_probe("taxonomy_small", split).records for c in record.choices
        ]
    split = [word for word in words if len(tokenizer.tokenize(word)) != 1]
    assert split == []
    assert tokenizer.unk_token not in {tokenizer.tokenize(word)[0] for word in words}


@pytest.mark.slow
def test_the_most_frequent_nouns_are_one_piece() -> None:
    for module in ("nltk", "wordfreq"):
        pytest.importorskip(module)
    from probelight.builders.sources.wordnet import DEFAULT_DIR, open_wordnet
    from tools.pretraining_text import frequent_nouns

    if not DEFAULT_DIR.is_dir():
        pytest.skip(f"no WordNet in {DEFAULT_DIR}")
    _, tokenizer = load_pretrained(MASKED_LM, CheckpointRef(SMALL_MODEL))
    nouns = frequent_nouns(open_wordnet(), 5000)
    assert len(nouns) >= 5000
    assert [noun for noun in nouns if len(tokenizer.tokenize(noun)) != 1] == []


def test_the_vectors_are_in_the_text_format_of_glove() -> None:
    words = set()
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        word, *values = line.split(" ")
        assert len(values) == 50
        assert all(abs(float(value)) < 100 for value in values)
        words.add(word)
    assert {"dog", "older", "younger", "21"} <= words


@pytest.mark.parametrize("name", [n for n in probe_names() if n.endswith("_small")])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_shipped_probe_loads(name: str, split: str) -> None:
    data = load_probe(name, split)
    assert len(data.records) >= 40
    assert {len(record.choices) for record in data.records} == {data.config.num_choices}
