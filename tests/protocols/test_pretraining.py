"""The pairs of segments that the bundled model is trained on, and the folder of the model."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertForPreTraining

from probelight.build.pretraining_text import TOKENS, tokenise
from probelight.build.sources.verbalise import Document
from probelight.lightning_modules.baselines.esim import ESIM
from probelight.lightning_modules.masked_lm import MaskedLanguageModel
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.protocols import cli
from probelight.protocols.export import MODEL_DIR, export_language_model
from probelight.protocols.pretraining import CLS, IGNORE, MASK, SEP, DictionaryText, MaskedPairs
from tests.fixtures.checkout import ROOT
from tests.fixtures.dictionary import PIECES, small_dictionary
from tests.protocols.conftest import Refused


@pytest.fixture
def text(tmp_path: Path) -> DictionaryText:
    data = DictionaryText(**small_dictionary(tmp_path))
    data.prepare_data()  # finds the cache and needs no dictionary
    data.setup()
    return data


def test_batches_fit_the_budget_and_the_longest_pair(text: DictionaryText) -> None:
    for batch in text.train_dataloader():
        rows, width = batch["input_ids"].shape
        assert rows * width <= 96
        assert width <= 24
        assert (batch["input_ids"][:, 0] == CLS).all()
        assert ((batch["input_ids"] == SEP).sum(1) >= 1).all()


def test_whole_words_are_masked(text: DictionaryText) -> None:
    suffix = PIECES.index("##s")
    seen = 0
    for batch in text.train_dataloader():
        chosen = batch["labels"] != IGNORE
        assert chosen.any(dim=1).all()
        assert not chosen[:, 0].any()
        whole = torch.where(chosen, batch["labels"], batch["input_ids"])
        places = (whole[:, 1:] == suffix).nonzero()
        for row, place in places.tolist():
            assert chosen[row, place + 1] == chosen[row, place]
            seen += 1
        assert (batch["input_ids"][chosen] == MASK).float().mean() > 0.5
    assert seen > 20


def test_an_epoch_is_a_function_of_seed_and_epoch(text: DictionaryText) -> None:
    loader = text.train_dataloader()
    first = [batch["input_ids"] for batch in loader]
    again = [batch["input_ids"] for batch in text.train_dataloader()]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    loader.epoch_sampler.set_epoch(1)
    second = [batch["input_ids"] for batch in loader]
    assert not all(
        a.shape == b.shape and torch.equal(a, b) for a, b in zip(first, second, strict=True)
    )


def test_running_text_keeps_its_order_and_dictionaries_do_not(text: DictionaryText) -> None:
    """Sentence j of document i is "w(i) w(i+j)s w(i+20)", so its second word says which it is."""
    pairs = MaskedPairs(text.store, text.train_documents, None, text)

    def orders() -> set[tuple[int, ...]]:
        shown = set()
        for index, document in enumerate(text.train_documents):
            item = pairs[index]
            ids = np.where(item["labels"] == IGNORE, item["ids"], item["labels"])
            words = [i - PIECES.index("w0") - document for i in ids[: (item["types"] == 0).sum()]]
            shown.add(tuple(w for w in words[2::5] if 0 <= w < 3))
        return {order for order in shown if len(order) == 2}

    assert orders() > {(0, 1)}
    text.store.in_order[:] = True
    assert orders() == {(0, 1)}


@pytest.mark.parametrize("swap_rate", [0.0, 1.0])
def test_a_definition_is_asked_for_without_its_word(swap_rate: float, tmp_path: Path) -> None:
    """Document i begins with "w(i) : w(i+20)" and goes on with "w(i) w(i+10)"."""
    text = DictionaryText(**small_dictionary(tmp_path), definition_rate=1.0, swap_rate=swap_rate)
    pieces = text.vocab_path.read_text().splitlines()
    word = {piece: i for i, piece in enumerate([*pieces, ":"])}
    text.vocab_path.write_text("\n".join(word) + "\n")
    documents = [
        Document(f"d{i}", "wordnet", (f"w{i} : w{i + 20}", f"w{i} w{i + 10}")) for i in range(30)
    ]
    np.savez(text.folder / TOKENS, **vars(tokenise(documents, [*word], held_out_rate=0.2)))
    text.setup()
    firsts, seconds = set(), set()
    for index, document in enumerate(text.train_documents):
        item = MaskedPairs(text.store, text.train_documents, None, text)[index]
        ids = np.where(item["labels"] == IGNORE, item["ids"], item["labels"])
        first, second = ids[item["types"] == 0][1:-1], ids[item["types"] == 1][:-1]
        own = [word[f"w{document}"], word["."]]
        more = [word[f"w{document}"], word[f"w{document + 10}"], word["."]]
        assert first.tolist() in (own, [*own, *more])
        firsts.add(len(first))
        assert second[1:].tolist() == [word["."]]
        seconds.add(int(second[0]) - word[f"w{document + 20}"])
        assert item["is_next"] == 1 - swap_rate
    assert firsts == {2, 5}
    assert (seconds == {0}) if swap_rate == 0 else (0 not in seconds and len(seconds) > 5)


def test_training_and_held_out_documents_are_apart(text: DictionaryText) -> None:
    together = np.concatenate([text.train_documents, text.held_out_documents])
    assert sorted(together.tolist()) == list(range(30))
    assert len(text.held_out_documents) > 0


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (None, cli.FAILURE, "not a readable training state"),
        ([1], cli.FAILURE, "not a training state of Lightning"),
        ({"state_dict": {}, "hyper_parameters": [1]}, cli.FAILURE, "not a training state of"),
        ({"state_dict": {}, "hyper_parameters": {"odd": 1}}, cli.USAGE_ERROR, "keyword argument"),
    ],
)
def test_what_is_no_state_is_named_in_a_line_and_no_folder_is_made(
    content: object, code: int, message: str, tmp_path: Path, refused: Refused
) -> None:
    state = tmp_path / "last.ckpt"
    state.write_bytes(b"no state")
    if content is not None:
        torch.save(content, state)
    line = refused(["export", str(state), f"--output_dir={tmp_path / 'model'}"], code)
    assert f"{state}: " in line
    assert message in line
    assert not (tmp_path / "model").exists()


def test_the_folder_is_that_of_the_bundled_model_where_none_is_named() -> None:
    default = inspect.signature(export_language_model).parameters["output_dir"].default
    assert Path(default) == MODEL_DIR
    assert MODEL_DIR.resolve() == ROOT / "assets" / "bookshelf-lm"


@pytest.fixture
def state(tmp_path: Path, quiet_trainer: Callable[..., Any]) -> Path:
    """Three steps of a model of one layer."""
    torch.manual_seed(0)
    data = DictionaryText(**small_dictionary(tmp_path / "cache"))
    module = MaskedLanguageModel(len(PIECES), 16, num_layers=1, num_heads=2, max_length=24)
    trainer = quiet_trainer(max_epochs=-1, max_steps=3, limit_val_batches=0)
    trainer.fit(module, datamodule=data)
    path = tmp_path / "last.ckpt"
    trainer.save_checkpoint(path)
    return path


def test_the_folder_loads_by_name_and_replaces_the_one_that_is_there(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "old.txt").touch()
    assert export_language_model(str(state), str(folder)) == folder
    assert f'{folder}: held-out {{"val/loss": ' in capsys.readouterr().out
    assert not (folder / "old.txt").exists()
    assert (folder / "vocab.txt").read_text().split() == PIECES
    words = AutoTokenizer.from_pretrained(folder)("w3 w4s .")["input_ids"]
    assert [PIECES[place] for place in words] == ["[CLS]", "w3", "w4", "##s", ".", "[SEP]"]
    trained = torch.load(state, weights_only=True)["state_dict"]
    kept = BertForPreTraining.from_pretrained(folder, dtype="auto")
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(kept.state_dict()[name], trained[f"model.{name}"].half())
    assert AutoModelForMaskedLM.from_pretrained(folder).config.vocab_size == len(PIECES) == 67


def test_the_card_says_what_a_reader_can_count(state: Path, tmp_path: Path) -> None:
    folder = export_language_model(str(state), str(tmp_path / "model"))
    card = (folder / "README.md").read_text()
    weights = folder / "model.safetensors"
    model = BertForPreTraining.from_pretrained(folder)
    number = sum(parameter.numel() for parameter in model.parameters())
    assert f"(1 layers, hidden size 16, {number:,} parameters, 67 WordPiece pieces)" in card
    # Thirty documents of three sentences: w, w, ##s and w.
    counts = re.search(r"360 pieces in (\d+) training documents; (\d+) documents held out", card)
    assert counts is not None
    assert sum(map(int, counts.groups())) == 30
    assert "training | 3 steps of" in card
    assert "AdamW, precision 32-true, " in card
    assert "0% of a dictionary's are a definition" in card
    assert f"sha256 `{hashlib.sha256(weights.read_bytes()).hexdigest()}`" in card
    assert f"float16, {weights.stat().st_size / 1e6:.1f} MB" in card
    assert "{" not in card


def test_a_question_model_is_stored_in_half_precision(tmp_path: Path) -> None:
    trained = SentenceChoice("dictionary-lm", head="pooler", max_length=64, num_choices=5, seed=3)
    trained.save_pretrained(tmp_path / "best")
    assert export_language_model(str(tmp_path / "best"), str(tmp_path / "model")).is_dir()
    for path in (tmp_path / "model").glob("*.safetensors"):
        assert {value.dtype for value in load_file(path).values()} == {torch.float16}, path
    stored = SentenceChoice.from_folder(tmp_path / "model")
    assert (stored.head_kind, stored.max_length, stored.num_choices) == ("pooler", 64, 5)
    for name, value in stored.state_dict().items():
        assert torch.equal(value, trained.state_dict()[name].half().float()), name


def test_what_has_no_half_precision_is_named(tmp_path: Path, refused: Refused) -> None:
    ESIM(max_length=8).save_pretrained(tmp_path / "best")
    line = refused(["export", str(tmp_path / "best"), f"--output_dir={tmp_path / 'model'}"])
    assert f"{tmp_path / 'best'}: ESIM cannot be written in half precision" in line
    assert not (tmp_path / "model").exists()
