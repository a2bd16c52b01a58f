"""Controls without training, of models whose answers are known by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BertForMaskedLM, BertTokenizer

import probelight
from probelight import cli
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.reports.overview.skills import verdicts
from probelight.results.load import load_results
from tests.fixtures.architectures import byte_bpe
from tests.fixtures.rows import read_predictions, read_results
from tests.fixtures.seq2seq import seq2seq
from tests.fixtures.tiny import COLOURS

__all__ = ["byte_bpe", "seq2seq"]  # fixtures

CHOICES = tuple(COLOURS[:4])
THINGS = [f"thing{letter}" for letter in "abcdefghijklmnop"]
ITEMS = [Record(str(n), f"what colour is {t}", CHOICES, n % 4) for n, t in enumerate(THINGS)]


@pytest.fixture
def knowing(tmp_path: Path) -> list[str]:
    """Asks a model that gives each thing its colour: the two have the same vector."""
    words = [*zip(CHOICES, range(4), strict=True), *((t, n % 4) for n, t in enumerate(THINGS))]
    rows = [f"{word} {' '.join('01'[n == i] for i in range(4))}" for word, n in words]
    (tmp_path / "vectors.txt").write_text("\n".join(rows) + "\n")
    return asked(
        tmp_path, ITEMS, "--model.kind=vec_similarity", f"--model.vectors={tmp_path}/vectors.txt"
    )


def asked(folder: Path, items: Sequence[Record], *options: str, setup: str = "mc_qa") -> list[str]:
    path = folder / "things.jsonl"
    if setup == "minimal_pair":
        path.write_text('{"sentence_good": "a sky is blue", "sentence_bad": "a blue is sky"}\n')
    else:
        write_ai2(path, items)
    return [
        "zero-shot", f"--data.path={path}", f"--data.setup={setup}", f"--output_dir={folder}/out",
        "--trainer.progress_bar=false", "--trainer.accelerator=cpu", *options,
    ]  # fmt: skip


def accuracies(folder: Path, **columns: str) -> dict[str, float]:
    """The accuracy under each control."""
    wanted = {"metric": "accuracy", "subset": "", "scoring": "", **columns}
    rows = read_results(folder / "out" / "results.csv")
    return {
        row["control"]: float(row["value"])
        for row in rows
        if all(row[name] == value for name, value in wanted.items())
    }


@pytest.mark.thorough
def test_a_model_that_knows_needs_the_question_but_not_the_order_of_its_words(
    tmp_path: Path, knowing: list[str]
) -> None:
    assert cli.main([*knowing, "--controls=choice_only,other_question"]) == 0
    by_control: dict[str, list[dict[str, Any]]] = {}
    for path in (tmp_path / "out" / "runs").iterdir():
        lines = read_predictions(tmp_path / "out", path.name)
        by_control[lines[0].get("control", "standard")] = lines
    assert [line["question"] for line in by_control["standard"]] == [item.stem for item in ITEMS]
    assert {line["question"] for line in by_control["choice_only"]} == {""}
    others = by_control["other_question"]
    # Each question once, none its own; right where the two things have the same colour.
    stems = [item.stem for item in ITEMS]
    assert sorted(line["question"] for line in others) == sorted(stems)
    assert all(line["question"] != stem for line, stem in zip(others, stems, strict=True))
    same = [THINGS.index(line["question"].split()[-1]) % 4 == line["answer"] for line in others]
    assert [line["correct"] for line in others] == same
    # Without a question no word is nearer than another: four that tie.
    measured = {"standard": 1.0, "choice_only": 0.25, "other_question": sum(same) / 16}
    assert accuracies(tmp_path) == measured
    [verdict] = verdicts(load_results(tmp_path / "out"))
    assert verdict.word == "knew it"
    assert "25.0% from the choices alone" in verdict.reason
    assert "% with another question" in verdict.reason
    # The same folder takes more controls; a bag of words is as good as a question to this model.
    assert cli.main([*knowing, "--controls=auto"]) == 0
    assert accuracies(tmp_path) == {**measured, "shuffled_words": 1.0}
    [verdict] = verdicts(load_results(tmp_path / "out"))
    assert verdict.word == "cannot tell"
    assert verdict.evidence[1] == ("with its words shuffled", 1.0)
    # Answers under a control are no system of their own, and the page has them all.
    assert cli.main(["report", f"{tmp_path}/out"]) == 0
    assert cli.main(["compare", f"{tmp_path}/out", f"--output_dir={tmp_path}/compared"]) == 2


@pytest.fixture(scope="module")
def blind_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that likes red best, then green, whatever it reads."""
    folder = tmp_path_factory.mktemp("models") / "blind"
    model, tokenizer = (
        BertForMaskedLM.from_pretrained(tiny_model),
        BertTokenizer.from_pretrained(tiny_model),
    )
    model.get_input_embeddings().weight.data.zero_()
    for rank, colour in enumerate(COLOURS):
        model.cls.predictions.bias.data[tokenizer.convert_tokens_to_ids(colour)] = 5.0 - rank
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("setup", ["mc_qa", "mc_mlm"])
def test_of_a_model_that_ignores_the_question_the_choices_alone_tell_as_much(
    setup: str, tmp_path: Path, blind_model: Path
) -> None:
    """The right answer is the best-liked of each item's choices, at 15 of 16 items."""
    end = " [MASK] ." if setup == "mc_mlm" else ""
    items = [
        Record(
            str(n), f"what colour is w{n}{end}", (COLOURS[1 + n % 4], COLOURS[n % 4]), int(n > 0)
        )
        for n in range(16)
    ]
    command = asked(tmp_path, items, f"--model.name_or_path={blind_model}", setup=setup)
    assert cli.main([*command, "--controls", "auto"]) == 0
    names = ("standard", "shuffled_words", "choice_only", "other_question")
    assert accuracies(tmp_path) == dict.fromkeys(names, 15 / 16)
    [verdict] = verdicts(load_results(tmp_path / "out"))
    assert verdict.word == "cannot tell"
    assert "it is 93.8%, which is not clearly lower" in verdict.reason
    rows = read_results(tmp_path / "out" / "results.csv")
    assert {row["num_groups"] for row in rows if row["metric"] == "accuracy"} == {"16"}


@pytest.mark.thorough
def test_letters_and_rules_are_asked_under_controls_in_any_batches(
    tmp_path: Path, tiny_model: Path
) -> None:
    options = [
        f"--model.name_or_path={tiny_model}",
        "--scoring=sum,letter",
        "--model.max_length=32",
    ]
    items = ITEMS[:6]
    answers = []
    for number, tokens in enumerate((32, 4096)):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = asked(folder, items, *options, "--controls=auto", "--limit=5")
        assert cli.main([*command, f"--trainer.max_eval_tokens={tokens}"]) == 0
        runs = sorted(path.name for path in (folder / "out" / "runs").iterdir())
        answers.append([read_predictions(folder / "out", run) for run in runs])
        assert [*accuracies(folder, scoring="letter")] == [*accuracies(folder)]
        assert len(accuracies(folder)) == 4
    assert [[[line["question"], line["best"]] for line in run] for run in answers[0]] == [
        [[line["question"], line["best"]] for line in run] for run in answers[1]
    ]


@pytest.mark.parametrize(
    ("setup", "option", "message"),
    [
        ("mc_qa", "choices_only", "there is no control 'choices_only' (did you mean 'choice_only'"),
        ("mc_qa", "Auto", "did you mean 'auto'"),
        (
            "mc_qa",
            "no_language",
            "things cannot be asked under no_language: there is no `arguments`",
        ),
        (
            "minimal_pair",
            "choice_only",
            "things cannot be asked under choice_only: there is no question",
        ),
    ],
)
def test_controls_that_do_not_exist_or_fit_are_refused(
    setup: str,
    option: str,
    message: str,
    tmp_path: Path,
    tiny_model: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = asked(tmp_path, ITEMS, f"--model.name_or_path={tiny_model}", setup=setup)
    assert cli.main([*command, f"--controls={option}"]) == cli.USAGE_ERROR
    assert message in capsys.readouterr().err


def test_what_of_auto_does_not_fit_is_said(
    tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [Record("1", "colours", CHOICES, 0), Record("2", "colours", CHOICES, 1)]
    command = asked(tmp_path, items, f"--model.name_or_path={tiny_model}", "--controls=auto")
    assert cli.main(command) == 0
    assert {*accuracies(tmp_path)} == {"standard", "choice_only"}
    printed = capsys.readouterr().out
    assert "things.jsonl:1: no two different words to shuffle in 'colours'" in printed
    assert "all of its items are one group" in printed


def test_controls_from_python(tmp_path: Path, knowing: list[str]) -> None:
    settings = {"kind": "vec_similarity", "vectors": f"{tmp_path}/vectors.txt"}
    results = probelight.zero_shot(
        settings, tmp_path / "things.jsonl", controls="auto", device="cpu"
    )
    frame = results.frame
    frame = frame[(frame.metric == "accuracy") & (frame.subset == "")]
    assert {*frame.control} == {"standard", "shuffled_words", "choice_only", "other_question"}
    assert "shuffled_words" in repr(results)


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5", "bart"])
@pytest.mark.parametrize("setup", ["mc_qa", "mc_mlm"])
def test_decoders_score_choices_without_a_question_by_all_their_tokens(
    family: str,
    setup: str,
    tmp_path: Path,
    causal_folder: Callable[[str], Path],
    seq2seq: Callable[[str], Path],
) -> None:
    """A choice has one score, whatever the item; the first token is not left out."""
    folder = seq2seq(family) if family in ("t5", "bart") else causal_folder(family)
    choices = ("a cat", "an old dog", "snow")
    end = " is [MASK]" if setup == "mc_mlm" else ""
    items = [Record(str(n), f"what {n}{end}", choices[n % 2 :], 0) for n in range(4)]
    kind = "seq2seq" if family in ("t5", "bart") else "causal"
    command = asked(
        tmp_path, items, f"--model.name_or_path={folder}", f"--model.kind={kind}", setup=setup
    )
    assert cli.main([*command, "--controls", "choice_only"]) == 0
    folders = [*(tmp_path / "out" / "runs").iterdir()]
    [lines] = [
        lines
        for path in folders
        if (lines := read_predictions(tmp_path / "out", path.name))[0].get("control")
    ]
    scores: dict[str, set[float]] = {}
    for line in lines:
        for choice, score in zip(line["choices"], line["scores"], strict=True):
            scores.setdefault(choice, set()).add(round(score, 4))
    assert {choice: len(found) for choice, found in scores.items()} == dict.fromkeys(choices, 1)
    assert max(map(max, scores.values())) < -1.0  # of vocabularies of hundreds of words
    if family == "gpt2" and setup == "mc_qa":
        model = AutoModelForCausalLM.from_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ids = tokenizer("snow", add_special_tokens=False).input_ids
        inputs = torch.tensor([[tokenizer.bos_token_id, *ids]])
        log_probs = model(inputs).logits[0].log_softmax(dim=-1)
        expected = sum(log_probs[n, token].item() for n, token in enumerate(ids))
        [score] = scores["snow"]
        assert score == pytest.approx(expected / len(ids), abs=1e-3)
