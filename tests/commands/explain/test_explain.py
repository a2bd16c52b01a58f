"""What is told of an item equals what the raw model and its tokenizer give, and is shown whole."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    T5ForConditionalGeneration,
)

from probelight import cli
from probelight.commands.explain.explain import find_item
from probelight.commands.explain.explanation import (
    Candidate,
    Explanation,
    Guess,
    Piece,
    Spelling,
    print_explanations,
)
from probelight.commands.explain.model_view import explain_record
from probelight.evaluation.prompting import prompt_spec
from probelight.evaluation.sets import LoadedSet
from probelight.io.errors import UsageError
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.registry import ModelSettings
from probelight.probes.importers.items import write_ai2
from probelight.probes.prompts import Prompts, PromptSettings
from probelight.probes.record import Record, Setup
from probelight.probes.source import load_file
from probelight.results.row import Row
from probelight.runs.settings import TrainerSettings
from tests.fixtures.chats import chat_tokenizer
from tests.fixtures.checkout import ROOT

QUIET = TrainerSettings(accelerator="cpu", progress_bar=False)
MASKED = Record("1", "the grass is [MASK] .", ("green", "red"), 0)
COMPARED = Record("2", "a cat is [MASK] than a dog .", ("smaller", "warm old"), 0)


def explain(model: ModelSettings, setup: Setup, record: Record, **options: Any) -> Explanation:
    spec = prompt_spec(0, options.get("chat", "never"), PromptSettings())
    prompts = Prompts(spec.templates, setup, chat=spec.chat)
    return explain_record(model, prompts, record, QUIET)


def by_rank(row: torch.Tensor) -> list[tuple[int, float]]:
    """Entries and their probabilities, the best one first."""
    shares = row.double().softmax(dim=0)
    return [(int(i), float(shares[i])) for i in shares.argsort(descending=True)]


def check_place(view: Explanation, row: torch.Tensor, entries: dict[int, int]) -> None:
    """The best words, and of candidates (by place) the rank and share of their entry."""
    ranked = by_rank(row)
    best = [(guess.piece.id, guess.probability) for guess in view.best]
    assert [i for i, _ in best] == [i for i, _ in ranked[:10]]
    torch.testing.assert_close([p for _, p in best], [p for _, p in ranked[:10]])
    assert view.vocabulary_size == len(row)
    for number, entry in entries.items():
        choice = view.candidates[number]
        assert choice.entry is not None
        assert choice.entry.id == entry
        assert choice.rank == 1 + [i for i, _ in ranked].index(entry)
        assert choice.probability == pytest.approx(dict(ranked)[entry])


@torch.no_grad()
def test_a_masked_model_at_its_mask(tiny_model: Path) -> None:
    view = explain(ModelSettings(str(tiny_model), kind="transformer"), "mc_mlm", MASKED)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    encoded = tokenizer("the grass is [MASK] .", return_tensors="pt")
    logits = AutoModelForMaskedLM.from_pretrained(tiny_model).eval()(**encoded).logits[0, 4]
    ids = tokenizer.convert_tokens_to_ids(["green", "red"])

    (name, pieces), (of_letters, prompt) = view.reads
    assert (name, of_letters) == ("reads", "reads, for a letter")
    assert prompt[-2].text == tokenizer.mask_token
    assert [piece.text for piece in pieces] == "[CLS] the grass is [MASK] . [SEP]".split()
    assert [piece.id for piece in pieces] == encoded.input_ids[0].tolist()
    check_place(view, logits, dict(enumerate(ids)))
    for choice, entry in zip(view.candidates, ids, strict=True):
        assert choice.score == pytest.approx(float(logits[entry]), abs=1e-5)
        assert choice.log_likelihood == pytest.approx(float(logits.log_softmax(0)[entry]), abs=1e-5)
        assert (choice.num_tokens, choice.space) == (1, "left out by the tokenizer")
        assert choice.is_best == (entry == max(ids, key=lambda i: float(logits[i])))
    assert [s.text for s in view.candidates[0].spellings] == ["Green", "green", "Green"]
    assert all(s.pieces == view.candidates[0].pieces for s in view.candidates[0].spellings)
    assert view.notes == ()


@torch.no_grad()
def test_a_causal_model_behind_what_stands_before(causal_folder: Callable[[str], Path]) -> None:
    folder = causal_folder("gpt2")
    view = explain(ModelSettings(str(folder), kind="causal"), "mc_mlm", COMPARED)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = tokenizer("a cat is").input_ids
    pieces = dict(view.reads)["reads"]
    assert [piece.id for piece in pieces] == ids
    [entry] = tokenizer(" smaller").input_ids
    check_place(view, model(torch.tensor([ids])).logits[0, -1, : len(tokenizer)], {0: entry})

    small, two_words = view.candidates
    for choice in view.candidates:
        full = tokenizer(f"a cat is {choice.text} than a dog .").input_ids
        assert [piece.id for piece in choice.pieces] == full[len(ids) :]
        rows = model(torch.tensor([full])).logits[0].double().log_softmax(dim=-1)
        by_hand = [float(rows[at - 1, full[at]]) for at in range(len(ids), len(full))]
        assert choice.log_likelihood == pytest.approx(sum(by_hand), abs=1e-4)
        assert (choice.num_tokens, choice.space) == (len(by_hand), "in its first token")
    spelled = {(s.text, s.note): [piece.id for piece in s.pieces] for s in small.spellings}
    assert spelled == {
        ("Smaller", ""): tokenizer(" Smaller").input_ids,
        ("smaller", "without a space"): tokenizer("smaller").input_ids,
        ("Smaller", "without a space"): tokenizer("Smaller").input_ids,
    }
    assert (two_words.entry, two_words.rank, two_words.spellings) == (None, None, ())


@pytest.mark.parametrize(
    ("scoring", "kind", "family"), [("mean_char", "causal", "gpt2"), ("mean_char", "seq2seq", "t5")]
)
def test_a_scoring_is_shown_next_to_the_log_likelihoods_that_it_is_made_of(
    scoring: Any,
    kind: str,
    family: str,
    causal_folder: Callable[[str], Path],
    curve_lm: Callable[[str], Path],
) -> None:
    folder = str((causal_folder if kind == "causal" else curve_lm)(family))
    plain = explain(ModelSettings(folder, kind=kind), "mc_mlm", COMPARED)
    view = explain(ModelSettings(folder, kind=kind, scoring=scoring), "mc_mlm", COMPARED)
    for choice, raw in zip(view.candidates, plain.candidates, strict=True):
        assert choice.pieces == raw.pieces
        assert choice.log_likelihood == raw.log_likelihood
        assert raw.score is not None
        assert choice.score == pytest.approx(raw.score / len(choice.text.strip()), rel=1e-4)
    assert view.reads == plain.reads


@torch.no_grad()
def test_an_encoder_decoder_model_shows_both_of_its_texts(curve_lm: Callable[[str], Path]) -> None:
    folder = curve_lm("t5")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    record = Record("5", "a w3 is [MASK] than a w4 .", ("red", "green"), 0)
    view = explain(ModelSettings(str(folder), kind="seq2seq"), "mc_mlm", record)
    encoded = tokenizer("a w3 is <extra_id_0> than a w4 .", return_tensors="pt")
    start = [0, tokenizer.convert_tokens_to_ids("<extra_id_0>")]
    reads = {name: [piece.id for piece in pieces] for name, pieces in view.reads}
    del reads["reads, for a letter"], reads["decoder reads, for a letter"]
    assert reads == {"reads": encoded.input_ids[0].tolist(), "decoder reads": start}
    logits = model(**encoded, decoder_input_ids=torch.tensor([start])).logits[0, -1]
    [entry] = tokenizer("red", add_special_tokens=False).input_ids
    check_place(view, logits, {0: entry})
    texts = [[piece.text for piece in c.pieces] for c in view.candidates]
    assert texts == [["red", "<extra_id_1>"], ["gre", "##en", "<extra_id_1>"]]
    assert [c.space for c in view.candidates] == ["left out by the tokenizer"] * 2


def test_what_cannot_be_answered_is_said(tiny_model: Path, tmp_path: Path) -> None:
    split = Record("3", MASKED.stem, ("green", "yellowish green"), 0)
    view = explain(ModelSettings(str(tiny_model), kind="transformer"), "mc_mlm", split)
    assert [c.score for c in view.candidates] == [None, None]
    assert view.candidates[0].rank is not None
    assert view.candidates[1].log_likelihood is not None
    assert any("'yellowish green' is 2 tokens" in line for line in view.notes)

    SentenceChoice(str(tiny_model)).save_pretrained(tmp_path / "trained")
    record = Record("4", "what colour is the grass", ("green", "red"), 0)
    view = explain(ModelSettings(str(tmp_path / "trained"), kind="transformer"), "mc_qa", record)
    assert view.row.mode == "fine_tuned"
    assert view.best == ()
    assert [bool(c.score) for c in view.candidates] == [True, True]
    assert all((c.log_likelihood, c.space) == (None, None) for c in view.candidates)
    assert len([line for line in view.notes if "cannot compute" in line]) == 2


def test_the_command_shows_models_of_two_kinds_in_plain_text(
    tmp_path: Path,
    tiny_model: Path,
    causal_folder: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    path = tmp_path / "my.jsonl"
    write_ai2(path, [MASKED])
    command = ["explain", f"--data.path={path}", "--data.setup=mc_mlm", "--item=@1"]
    models = f"--models={tiny_model},{causal_folder('gpt2')}"
    assert cli.main([*command, models, "--trainer.accelerator=cpu"]) == 0
    out = capsys.readouterr().out
    assert "item 1, line 1 of the file my.jsonl" in out
    assert f"{causal_folder('gpt2')}: causal language model (architectures GPT2LMHeadModel)" in out
    for text in ("* green", "[MASK]:4", "Ġis:", "in its first token", "best word 10"):
        assert text in out
    assert "\x1b" not in out
    assert cli.main([*command[:-1], "--item=2"]) == cli.USAGE_ERROR
    assert "you can also give its line, such as @2" in capsys.readouterr().err


def loaded(folder: Path, name: str, *ids: str) -> LoadedSet:
    path = folder / f"{name}.jsonl"
    write_ai2(path, [Record(i, f"a [MASK] {i} .", ("red", "green"), 0) for i in ids])
    return LoadedSet(name, "", load_file(path, "mc_mlm"), is_own=True)


def test_an_item_is_found_by_id_by_id_and_line_or_by_line(tmp_path: Path) -> None:
    sets = [loaded(tmp_path, "colours", "7", "sky", "grün", "a@b")]
    lines = {"sky": 2, " sky ": 2, "sky@2": 2, "@2": 2, "7": 1, "grün": 3, "a@b": 4}
    assert {name: find_item(sets, name)[1].position for name in lines} == lines


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("dve-1", r"--item dve-1: no item of colours.*did you mean dev-1"),
        ("3", r"the first are dev-1, dev-2, test-1.*give its line, such as @3"),
        ("@4", r"is on that line; the last line is @3"),
        ("", "no item"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is_near(
    item: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        find_item([loaded(tmp_path, "colours", "dev-1", "dev-2", "test-1")], item)


def test_two_items_of_one_name_are_distinguished_by_set(tmp_path: Path) -> None:
    sets = [loaded(tmp_path, "one", "1", "2"), loaded(tmp_path, "other", "1")]
    assert find_item(sets, "2")[0].name == "one"
    with pytest.raises(
        UsageError, match=r"2 items.*1@1 of one, 1@1 of other; give only one of the sets"
    ):
        find_item(sets, "1")


ITEM = Record("a@3", "the \x1b[31msky is [MASK] .", ("blue", "red"), 0, position=3)


def model(name: str, *, notes: tuple[str, ...] = ()) -> Explanation:
    blue = Piece("Ġblue", 7)
    return Explanation(
        Row(model=name, kind="causal", mode="causal_likelihood"),
        (("reads", (Piece("sky", 1), Piece("Ġis", 2))),),
        (
            Candidate(
                "blue", (blue,), "in its first token", -1.5, True, -2.25, 1, blue, 0.125, 1234,
                (
                    Spelling("blue", "without a space", (Piece("bl", 3), Piece("ue", 4))),
                    Spelling("Blue", "", (Piece("<unk>", 9),), is_known=False),
                ),
            ),
            Candidate("red", (), None, math.nan),
        ),
        (Guess("blue", blue, 0.125),),
        50_000,
        notes,
    )  # fmt: skip


def shows(width: int, *models: Explanation) -> str:
    page = io.StringIO()
    print_explanations("colours (dev)", ITEM, models, Console(width=width, file=page))
    assert all(len(line) <= width for line in page.getvalue().split("\n")[5:])
    return page.getvalue()


def test_all_that_is_known_is_said_and_no_character_acts() -> None:
    page = shows(100, model("one", notes=("gives no \x1b[0m features",)))
    for text in (
        "item a@3, line 3 of colours (dev)",
        "stem: the \\x1b[31msky is [MASK] .",
        "  * blue",
        "sky:1 Ġis:2",
        "-1.5000, the best",
        "-2.2500 nats, the sum over 1 token ",
        "Ġblue:7, 12.5%, rank 1,234 of 50,000",
        "blue without a space: 2 tokens, bl:3 ue:4",
        "Blue: unknown, <unk>:9",
        "not a number",
        "it is not one token",
        "blue (Ġblue:7), 12.5%",
        "gives no \\x1b[0m features",
    ):
        assert text in page
    assert "\x1b" not in page
    assert "notes" not in shows(100, model("one"))


def test_models_are_side_by_side_where_there_is_room() -> None:
    models = [model("first"), model("second")]
    [heads] = [line for line in shows(120, *models).splitlines() if "first" in line and "┃" in line]
    assert "second" in heads
    assert shows(60, *models).count("scored by") == 2
    assert shows(120, *models).count("scored by") == 1


@torch.no_grad()
def test_letters_have_the_scores_of_the_raw_model() -> None:
    folder = ROOT / "assets" / "dictionary-lm"
    record = Record("4", "which is larger ?", ("a cat", "a dog", "a cow"), 2)
    view = explain(ModelSettings("dictionary-lm", kind="transformer"), "mc_qa", record)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    text = "Question: which is larger ?\nA. a cat\nB. a dog\nC. a cow\nAnswer: [MASK]"
    encoded = tokenizer(text, return_tensors="pt")
    logs = model(**encoded).logits[0, -2].log_softmax(0)
    reads = dict(view.reads)["reads, for a letter"]
    assert [piece.id for piece in reads] == encoded.input_ids[0].tolist()
    entries = tokenizer.convert_tokens_to_ids(["a", "b", "c"])
    scores = [float(logs[entry]) for entry in entries]
    assert [c.label for c in view.candidates] == ["A", "B", "C"]
    assert [[p.id for p in c.label_pieces] for c in view.candidates] == [[e] for e in entries]
    assert [c.label_score for c in view.candidates] == pytest.approx(scores, abs=1e-4)
    assert [c.is_best_label for c in view.candidates] == [s == max(scores) for s in scores]
    page = io.StringIO()
    print_explanations("mine", record, [view], Console(width=100, file=page))
    assert f"A: a:{entries[0]}, {scores[0]:.4f} nats" in page.getvalue()


def test_a_chat_is_shown_as_it_is_read(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer("bytes, BOS of both")
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 256}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    record = Record("4", "which is larger ?", ("a cat", "a dog"), 1)
    view = explain(ModelSettings(str(tmp_path), kind="causal"), "mc_qa", record, chat="auto")
    user = {"role": "user", "content": "which is larger ?"}
    options: dict[str, Any] = {"continue_final_message": True, "return_dict": False}
    cat, dog = (
        tokenizer.apply_chat_template([user, {"role": "assistant", "content": choice}], **options)
        for choice in ("a cat", "a dog")
    )
    num_shared = next(n for n, (c, d) in enumerate(zip(cat, dog, strict=True)) if c != d)
    chat_ids = cat[:num_shared]  # what the choices go on from; they are shown by themselves
    assert [piece.id for piece in dict(view.reads)["reads"]] == chat_ids
    assert view.row.mode == "causal_likelihood, chat"
    [entry] = tokenizer("A", add_special_tokens=False).input_ids
    assert [piece.id for piece in view.candidates[0].label_pieces] == [entry]
