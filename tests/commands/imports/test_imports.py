"""The command on files of other programs and on mistaken ones, and which item an answer is of."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from probelight import cli
from probelight.commands.imports.fitting import answers_in_order, items_of_file, with_kept_scores
from probelight.io.errors import RecordError
from probelight.io.files import DataFile
from probelight.probes.catalog import ProbeConfig
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.reports.build import title, to_html
from probelight.reports.items import items_of
from probelight.reports.sections import filled_sections
from probelight.reports.zero_shot.consistency import rule_rows
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.details import ComparisonDetails
from probelight.results.importers.answers import Answer, Imported
from probelight.results.load import load_results
from probelight.results.predictions import read_item_lines
from tests.fixtures.rows import read_results

WRITTEN = Path(__file__).parents[2] / "fixtures" / "lm_eval" / "tiny-gpt2"
SAMPLES = sorted(WRITTEN.glob("samples_own_[pt]*.jsonl"))
ITEMS = [
    Record("a", "Is a cat an animal?", ("no", "yes"), 1),
    Record("b", "Is an oak an animal?", ("no", "yes"), 0),
    Record("c", "Are they alive?", ("yes", "some", "no"), 0),
]
SCORES = {"c": {"some": 0.25, "no": 0.25, "yes": 0.5}, "b": {"yes": 0.5, "no": 0.5}}
SCORES["a"] = {"yes": 0.0, "no": 1.0}


def scored(folder: Path, scores: dict[str, dict[str, float]]) -> Path:
    path = folder / "scored.jsonl"
    lines = (json.dumps({"id": name, "scores": row}) + "\n" for name, row in scores.items())
    path.write_text("".join(lines), encoding="utf-8")
    return path


def imported(out: Path, *arguments: str) -> int:
    """The exit code of `import`, which writes into `out`."""
    return cli.main(["import", *arguments, f"--output_dir={out}"])


def numbers(out: Path) -> dict[tuple[str, str], float]:
    rows = [row for row in read_results(out / "results.csv") if not row["subset"]]
    return {(row["probe"], row["metric"]): float(row["value"]) for row in rows}


@pytest.mark.thorough
def test_nobody_says_that_imported_scores_are_from_before_training(tmp_path: Path) -> None:
    """The rules of verdicts and the glossary may say it, of other results."""
    assert imported(tmp_path, "lm_eval", *map(str, SAMPLES)) == 0
    results = load_results(tmp_path)
    sections = filled_sections(results)
    page = to_html(results, sections, items_of(results))
    rules = re.compile('<details class="overview-more">.*?</details>', re.DOTALL)
    texts = [title(results), rules.sub("", page)]
    for section in sections:
        texts += [section.title, section.summary, *(figure.title for figure in section.figures)]
        for table in section.tables:
            texts += [table.title, *(f"{c.text} {c.detail}" for row in table.rows for c in row)]
    assert title(results) == "What tiny-gpt2 scored"
    assert "Accuracy in the imported scores" in texts
    assert any("in the imported scores 75.0" in text for text in texts)  # a verdict's number
    text = " ".join(texts).partition('<section id="words"')[0]
    assert not re.search("before (any )?training", text, re.IGNORECASE)


def test_files_of_the_harness_are_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path, "lm_eval", *map(str, SAMPLES)) == 0
    hits = [[json.loads(line)["acc"] for line in path.read_text().splitlines()] for path in SAMPLES]
    values = numbers(tmp_path)
    assert values["own_pairs", "accuracy"] == sum(hits[0]) / len(hits[0])
    assert values["own_taxonomy", "accuracy"] == pytest.approx(sum(hits[1]) / len(hits[1]))
    results = load_results(tmp_path)
    assert {(run.model, run.kind) for run in results.runs} == {("tiny-gpt2", "imported")}
    [run] = [run for run in results.runs if run.probe == "own_pairs"]
    assert run.notices[0].endswith("measured by another program; 4 items as the file has them")
    lines = read_item_lines(results, run)
    assert [(line.prediction, line.correct) for line in lines] == [(0, 1), (1, 0), (0, 1), (0, 1)]
    assert lines[0].scores == (-61.876259, -69.264977)
    capsys.readouterr()
    assert imported(tmp_path, "lm_eval", *map(str, SAMPLES)) == 0
    assert "own_pairs, tiny-gpt2: complete" in capsys.readouterr().out.replace("\n", " ")


def test_probabilities_of_items_of_a_file(tmp_path: Path) -> None:
    items_file, out = tmp_path / "alive.jsonl", tmp_path / "out"
    write_ai2(items_file, ITEMS)
    command = ["plain", str(scored(tmp_path, SCORES)), "--model=gpt"]
    command += ["--scores=logarithm", f"--data.path={items_file}", "--data.setup=mc_qa"]
    assert imported(out, *command) == 0
    values = numbers(out)
    # a is wrong, b a tie of two, c right; two of the three have two choices.
    assert values["alive", "accuracy"] == pytest.approx((0 + 1 / 2 + 1) / 3)
    assert values["alive", "tied_share"] == pytest.approx(1 / 3)
    assert values["alive", "chance"] == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)
    results = load_results(out)
    lines = read_item_lines(results, results.runs[0])
    assert [line.id for line in lines] == ["a", "b", "c"]
    assert lines[0].scores == (0.0, None)  # the probability 0
    assert lines[2].scores == (-0.693147, -1.386294, -1.386294)
    contents = (out / "results.csv").read_bytes()
    scored(tmp_path, {**SCORES, "a": {"yes": 1.0, "no": 0.0}})
    assert imported(out, *command) == cli.USAGE_ERROR
    assert (out / "results.csv").read_bytes() == contents


LEGS = ["two", "four", "six", "eight"]
# Thing, gold, and what each of two models ranks first; by hand 5 of 6 and 2 of 6 are right, four of
# the gold answers are "four", and their classes are right in 4/4, 1/1, 0/1 and 1/4, 1/1, 0/1.
THINGS = [
    ("cat", "four", "four", "six"),
    ("dog", "four", "four", "four"),
    ("cow", "four", "four", "two"),
    ("pig", "four", "four", "six"),
    ("hen", "two", "two", "two"),
    ("bee", "six", "four", "eight"),
]


def ranked(folder: Path, model: int, blank: str, choices: list[str] | None = None) -> Path:
    """The answers of a model as a fill-mask pipeline gives them, best first."""
    path = folder / f"model{model}.jsonl"
    rows = []
    for noun, gold, *firsts in THINGS:
        answers = [f"{leg} {noun}" for leg in LEGS] if choices is None else choices
        best = next(answer for answer in answers if answer.startswith(firsts[model]))
        lower = [answer for answer in answers if answer != best]
        order = [best, *(lower if model == 0 else reversed(lower))]
        right = next(answer for answer in answers if answer.startswith(gold))
        scores = {answer: 0.9 - rank / 5 for rank, answer in enumerate(order)}
        rows.append({"text": f"A {noun} has {blank} legs.", "scores": scores, "gold": right})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("blank", ["[MASK]", "<mask>", "____"])
def test_ranked_candidates_of_one_set_are_classes_by_their_texts(
    blank: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert imported(out, "plain", f"{ranked(tmp_path, 0, blank, LEGS)}=first") == 0
    values = numbers(out)
    by_hand = {"accuracy": 5 / 6, "majority_accuracy": 4 / 6, "macro_accuracy": (1 + 1 + 0) / 3}
    assert {name: values["model0", name] for name in by_hand} == pytest.approx(by_hand)
    shares = [row for row in read_results(out / "results.csv") if row["subset"]]
    by_hand = {"four": 5 / 6, "two": 1 / 6}
    assert {row["subset"]: float(row["value"]) for row in shares} == pytest.approx(by_hand)
    results = load_results(out)
    assert read_item_lines(results, results.runs[0])[0].question == "A cat has [MASK] legs."


def test_ranked_candidates_that_differ_have_no_majority(tmp_path: Path) -> None:
    files = [f"{ranked(tmp_path, model, '<mask>')}=model{model}" for model in (0, 1)]
    out = tmp_path / "out"
    assert imported(out, "plain", *files, "--data.name=legs") == 0
    rows = read_results(out / "results.csv")
    # The second model's scores are in no order of the first one's file, but that is one of ranks.
    metrics = {"accuracy", "tied_share", "near_tied_share", "chance"}
    assert {row["metric"] for row in rows} == metrics
    for run in load_results(out).runs:
        assert any("scores: positions are ranks" in notice for notice in run.notices)


@pytest.mark.parametrize("scores", ["as_given", "per_character"])
def test_an_order_is_told_by_the_scores_of_the_file(scores: str, tmp_path: Path) -> None:
    path, out = ranked(tmp_path, 1, "<mask>"), tmp_path / "out"
    assert imported(out, "plain", str(path), "--model=m", f"--scores={scores}") == 0
    assert ("model1", "majority_accuracy") not in numbers(out)


def test_a_file_whose_order_is_no_rank_has_classes_but_no_majority(tmp_path: Path) -> None:
    path, out = ranked(tmp_path, 0, "<mask>"), tmp_path / "out"
    *first, last = path.read_text(encoding="utf-8").splitlines()
    row = json.loads(last)
    row["scores"] = dict(sorted(row["scores"].items()))
    path.write_text("\n".join([*first, json.dumps(row)]), encoding="utf-8")
    assert imported(out, "plain", f"{path}=m") == 0
    assert ("model0", "macro_accuracy") in numbers(out)
    assert ("model0", "majority_accuracy") not in numbers(out)


@pytest.mark.thorough
def test_files_of_one_command_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The second one in another order, with another form of a blank, and its gold in a file.
    files = [f"{ranked(tmp_path, m, '____' if m else '<mask>', LEGS)}=model{m}" for m in (0, 1)]
    path = tmp_path / "model1.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("\n".join(map(json.dumps, rows[::-1])), encoding="utf-8")
    golds = [f"A {noun} has [MASK] legs.,{gold}\n" for noun, gold, *_ in THINGS]
    (tmp_path / "gold.csv").write_text("".join(["text,gold\n", *golds]), encoding="utf-8")
    files.append(f"--gold={tmp_path / 'gold.csv'}")
    apart, out, compared = (tmp_path / name for name in ("apart", "out", "compared"))
    assert imported(apart, "plain", *files) == 0
    assert cli.main(["compare", str(apart), f"--output_dir={compared}"]) == cli.USAGE_ERROR
    assert "FILE=MODEL with --data.name NAME, or with --probe" in capsys.readouterr().err
    assert imported(out, "plain", *files, "--data.name=legs") == 0
    assert cli.main(["compare", str(out), f"--output_dir={compared}"]) == 0
    table = {(r["metric"], r["subset"]): r["value"] for r in read_results(compared / "results.csv")}
    assert float(table["difference", "model0 − model1"]) == pytest.approx(5 / 6 - 2 / 6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("lm-eval x", "there is no format 'lm-eval' (did you mean 'lm_eval'?)"),
        ("plain SCORED --model=m --output_dir=", "give --output_dir FOLDER for the results"),
        ("plain SCORED", "the file does not name its model; give --model NAME"),
        ("plain SCORED --model=a,b", "--model: 2 names, but 1 files"),
        ("plain SCORED SCORED --model=a OWN", "2 files have results of a on alive"),
        ("plain SCORED --model=a OWN --probe=age_small", "--probe or --data.path"),
        ("plain SCORED --model=a --probe=a,b", "--probe: give one probe per command"),
        ("lm_eval SCORED", "its name is not that of a file of samples"),
        ("plain FILE=a --model=b", "--model and FILE=MODEL both name the model"),
        ("plain FILE=", "FILE=MODEL needs both"),
        ("plain FILE=a OTHER=b --data.name=x", "other.jsonl:1: it matches no item of x"),
        ("plain FILE=a IDS=b --data.name=x", "it matches no item of x"),
        ("plain IDS=a OTHER_IDS=b --data.name=x", "the item '1' asks 'Two?', but 'One?'"),
        (
            "plain FILE=a --data.name=x --probe=age_small",
            "--data.name is for items that are not a probe",
        ),
        (
            "plain FILE=a --data.setup=mc_qa",
            "--data.setup, .choices and .gold need a file; give it as",
        ),
    ],
)
def test_mistaken_commands_end_with_one_line(
    arguments: str, words: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    scored(tmp_path, SCORES)
    write_ai2(tmp_path / "alive.jsonl", ITEMS)
    item = {"scores": {"yes": 0.9, "no": 0.1}, "gold": "yes"}
    for name, fields in {
        "file": {"text": "Is it?"},
        "other": {"text": "Is it not?"},
        "ids": {"id": "1", "text": "One?"},
        "other_ids": {"id": "1", "text": "Two?"},
    }.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({**fields, **item}), encoding="utf-8")
    out, command = tmp_path / "out", ["import", f"--output_dir={tmp_path / 'out'}"]
    for word in arguments.replace("OWN", "--data.path=ALIVE --data.setup=mc_qa").split():
        command.append(re.sub("[A-Z_]{3,}", lambda n: f"{tmp_path / n[0].lower()}.jsonl", word))
    assert words in refused(command, 1 if "matches" in words or "asks" in words else 2)
    assert not out.exists()


FILE = DataFile("f", "sha", 2)
CAT = Record("q1", "A cat is [MASK].", ("animal", "plant"), 0, position=1)
OAK = Record("q2", "An oak is [MASK].", ("cat", "animal", "plant"), 2, position=2)
SAYS_CAT = Answer(where="f:1", id="q1", choices=("plant", "animal"), scores=(1.0, 2.0), gold=1)
SAYS_OAK = Answer(where="f:2", id="q2", choices=("animal", "plant", "cat"), scores=(0.5, 3.0, -4.0))


def probe(*records: Record) -> ProbeData:
    return ProbeData(ProbeConfig("kinds", "mc_mlm", 3, 0.4), records, (), ())


def scores_in_order(imported: Imported, data: ProbeData) -> tuple[list[list[float]], str]:
    answers, matched_by = answers_in_order(imported, data)
    return [list(answer.scores) for answer in answers], matched_by


def file_of(*answers: Answer) -> Imported:
    return Imported((FILE,), answers, "mine")


KINDS = probe(CAT, OAK)


def test_by_ids_or_texts_in_the_order_of_items_and_choices() -> None:
    scores = [[2.0, 1.0], [-4.0, 0.5, 3.0]]
    assert scores_in_order(file_of(SAYS_OAK, SAYS_CAT), KINDS) == (scores, "ids")
    # By texts where no id is one of the probe.
    cat = replace(SAYS_CAT, id="0", texts=("Say: A cat is", "A cat\nis  [MASK]."))
    oak = replace(SAYS_OAK, id="", texts=(OAK.stem,), choices=("animal ", "plant", "cat"))
    assert scores_in_order(file_of(cat, oak), KINDS) == (scores, "texts")


def test_pairs_are_known_by_their_sentences() -> None:
    pair = Record("p", "", ("Cats sleep.", "Cats sleeps."), 0, position=1)
    cats = Answer(where="f:1", texts=("",), choices=("Cats sleeps.", "Cats sleep."), scores=(1, 2))
    assert scores_in_order(file_of(cats), probe(pair)) == ([[2, 1]], "texts")


def test_ids_that_repeat_are_told_apart_by_line() -> None:
    again = replace(OAK, id="q1")
    with pytest.raises(
        RecordError, match=r"f:1: it matches 2 items of kinds, q1@1, q1@2; .* ID@LINE"
    ):
        scores_in_order(file_of(SAYS_CAT), probe(CAT, again))
    answers = file_of(replace(SAYS_CAT, id="q1@1"), replace(SAYS_OAK, id="q1@2"))
    assert scores_in_order(answers, probe(CAT, again))[0] == [[2.0, 1.0], [-4.0, 0.5, 3.0]]


def test_a_choice_that_is_there_twice_has_both_scores() -> None:
    twice = replace(OAK, choices=("cat", "plant", "cat"), answer=1)
    answer = replace(SAYS_OAK, choices=("cat", "cat", "plant"), scores=(1.0, 2.0, 3.0))
    assert scores_in_order(file_of(answer), probe(twice))[0] == [[1.0, 3.0, 2.0]]


ROW_1 = Answer(where="f: row 1", scores=(1.0, 2.0), gold=0)
ROW_2 = Answer(where="f: row 2", scores=(1.0, 2.0, 3.0))


def test_items_without_ids_meet_by_their_order() -> None:
    assert scores_in_order(file_of(ROW_1, ROW_2), KINDS) == ([[1.0, 2.0], [1.0, 2.0, 3.0]], "order")


NO_ID = replace(SAYS_CAT, id="")
OTHER = replace(SAYS_CAT, where="f:2")
GOLD = replace(ROW_1, gold=1)


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((SAYS_CAT, replace(SAYS_OAK, id="q3")), "f:2: kinds has no item with the id 'q3'"),
        ((SAYS_CAT, OTHER), "f:2: the item q1@1 of kinds is already answered at f:1"),
        (
            (SAYS_CAT, replace(SAYS_OAK, gold=0)),
            "the right choice is 'animal', but .*q2@2 it is 'pl",
        ),
        (
            (SAYS_CAT, replace(SAYS_OAK, choices=("dog", "plant", "cat"))),
            "q2@2: the item does not have 'dog'",
        ),
        (
            (SAYS_CAT, replace(SAYS_OAK, choices=("plant", "cat"), scores=(1, 2))),
            "missing are 'animal'",
        ),
        (
            (SAYS_CAT, replace(SAYS_OAK, choices=("plant", "cat", "cat", "animal"))),
            "one occurs a different number of times",
        ),
        ((SAYS_CAT,), "f: 1 of 2 items of kinds are not answered: q2@2"),
        (
            (replace(NO_ID, texts=("A dog is",)),),
            "matches no item .*; an example of an item is 'q1'",
        ),
        ((NO_ID,), "f:1: kinds has no item with the id ''"),
        (
            (replace(SAYS_OAK, id="", texts=(CAT.stem,)),),
            "not those of .* q1@1: the item does not have 'cat'",
        ),
        ((ROW_1,), "f: 1 rows, but kinds has 2 items"),
        ((ROW_2, ROW_1), "f: row 2: 3 scores, but the item q1@1 has 2 choices"),
        ((GOLD, ROW_2), r"f: row 1: the right choice is '1', but for .*q1@1 it is 0"),
    ],
)
def test_what_does_not_fit_is_refused(answers: tuple[Answer, ...], words: str) -> None:
    with pytest.raises(RecordError, match=words):
        scores_in_order(file_of(*answers), KINDS)


def test_items_of_the_file_itself() -> None:
    cat = replace(SAYS_CAT, texts=("A cat is [MASK].",))
    oak = replace(SAYS_OAK, id="", texts=("An oak is [MASK].",), gold=1)
    data = items_of_file(file_of(cat, oak))
    assert [(record.id, record.stem, record.gold) for record in data.records] == [
        ("q1", "A cat is [MASK].", "animal"),
        ("item-2", "An oak is [MASK].", "plant"),
    ]
    fields = (data.config.name, data.config.setup, data.config.chance)
    assert fields == ("mine", "mc_mlm", pytest.approx(5 / 12))
    qa_data = items_of_file(file_of(replace(cat, texts=("What is a cat?",)), oak))
    assert qa_data.config.setup == "mc_qa"
    sentences = items_of_file(file_of(replace(cat, texts=("",), paradigm="sv")))
    assert sentences.config.setup == "minimal_pair"
    assert sentences.records[0].meta == {"paradigm": "sv"}


ASKED = replace(SAYS_CAT, texts=("A cat is",))


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((SAYS_CAT,), "f:1: the file does not have the item's question; give the probe as --probe"),
        ((replace(SAYS_OAK, texts=("x",)),), "item's gold; .* as --gold"),
        ((Answer(where="f:1", scores=(1, 2)),), "question and candidates and gold"),
        ((replace(ASKED, choices=("a", "a")),), "f:1: the gold choice 'a' appears tw"),
        ((ASKED, replace(ASKED, where="f:9")), "f:9: the id 'q1' is already at f:1"),
    ],
)
def test_items_that_are_none_are_refused(answers: tuple[Answer, ...], words: str) -> None:
    with pytest.raises(RecordError, match=words):
        items_of_file(file_of(*answers))


SAID = Answer(where="f:1", choices=("a", "b\u00e4 "), scores=(0.0, 0.25))


def test_scores_are_kept_as_given_or_converted() -> None:
    assert with_kept_scores([SAID], "as_given") == (SAID,)
    logarithm = (-math.inf, pytest.approx(-math.log(4)))
    assert with_kept_scores([SAID], "logarithm")[0].scores == logarithm
    assert with_kept_scores([SAID], "per_character")[0].scores == (0.0, 0.125)


@pytest.mark.parametrize(
    "words", [r"logarithm: 1\.5 is not a probability", "per_character: the texts of the choices"]
)
def test_what_cannot_be_kept_is_refused(words: str) -> None:
    with pytest.raises(RecordError, match=f"f:1: --scores {words}"):
        with_kept_scores([Answer(where="f:1", scores=(0.5, 1.5))], words.partition(":")[0])


LABELS = """\
{"id": "q2", "order": ["cat", "animal", "plant"], "scores": {"A": 0.7, "B": 0.2, "C": 0.1}}
{"id": "q1", "order": ["plant", "animal"], "scores": {"A": 0.9, "B": 0.1}}
{"id": "q1", "order": ["animal", "plant"], "scores": {"A": 0.6, "B": 0.4}}
{"id": "q2", "order": ["animal", "plant", "cat"], "scores": {"A": 0.1, "B": 0.8, "C": 0.1}}
{"id": "q2", "order": ["plant", "cat", "animal"], "scores": {"A": 0.5, "B": 0.3, "C": 0.2}}
"""


@pytest.mark.thorough
def test_labels_in_several_orders_give_the_table_of_letters(tmp_path: Path) -> None:
    """By hand: q1 is right in the file's order and not in the other; q2 in two orders of three."""
    (tmp_path / "said.jsonl").write_text(LABELS)
    write_ai2(tmp_path / "kinds.jsonl", [CAT, OAK])
    line = ["import", "letters", str(tmp_path / "said.jsonl"), "--model", "gpt-x"]
    line += ["--data.path", str(tmp_path / "kinds.jsonl"), "--data.setup", "mc_mlm"]
    line += ["--output_dir", str(tmp_path / "out"), "--scores", "logarithm"]
    assert cli.main(line) == 0
    [run] = load_results(tmp_path / "out").runs
    rows = {(r.scoring, r.metric, r.subset_text): r.value for r in run.rows}
    # q2 in its file's order is answered "cat" by its label A.
    assert rows["letter", "accuracy", ""] == 0.5
    over_orders = pytest.approx((1 / 2 + 2 / 3) / 2)
    assert rows["letter", "mean_order_accuracy", ""] == rows["", "accuracy", ""] == over_orders
    # A is right in one of two orders of q1 and in one of three of q2; no model sees a position.
    assert rows["", "majority_accuracy", ""] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert rows["letter", "all_orders_accuracy", ""] == 0
    assert rows["letter", "unstable_share", ""] == 1
    # q1: 0.9 x 0.4 for "plant" against 0.1 x 0.6; q2: 0.1 x 0.8 x 0.5 against 0.7 x 0.1 x 0.3.
    assert rows["letter_debiased", "accuracy", ""] == 0.5
    assert rows["letter", "label_share", "A"] == pytest.approx(4 / 5)
    assert rows["letter", "label_share", "B"] == pytest.approx(1 / 5)
    # Without a preference q1 gives A and B a half each in two orders, q2 a third in three.
    even = [(2 / 2 + 3 / 3) / 5, (2 / 2 + 3 / 3) / 5, (3 / 3) / 5]
    bias = (abs(0.8 - even[0]) + abs(0.2 - even[1]) + even[2]) / 2
    assert rows["letter", "label_bias", ""] == pytest.approx(bias)
    page = {
        table.name
        for section in filled_sections(load_results(tmp_path / "out"))
        for table in section.tables
    }
    assert {"zero_shot_letters", "zero_shot_rules", "zero_shot_calibration"} <= page
    assert cli.main([*line[:-1], "per_character"]) == 1


def test_a_model_that_always_says_a_is_not_taken_for_ranked_choices(tmp_path: Path) -> None:
    lines = []
    for number in range(12):
        order = [f"x{number}", f"y{number}"]
        gold = order[number % 2]
        for presented in (order, order[::-1])[: 1 + (number > 0)]:
            scores = {"B": -2.0, "A": -0.1}
            lines.append({"id": str(number), "text": "Q?", "order": presented, "scores": scores})
            lines[-1]["gold"] = gold
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    line = ["import", "letters", str(tmp_path / "said.jsonl"), "--model", "gpt-x"]
    assert cli.main([*line, "--output_dir", str(tmp_path / "out")]) == 0
    [run] = load_results(tmp_path / "out").runs
    rows = {(r.scoring, r.metric): r.value for r in run.rows if r.subset is None}
    assert rows["letter", "label_bias"] == pytest.approx(0.5)
    # A is right in the only order of the first item, and in one of two of the others.
    assert rows["", "majority_accuracy"] == pytest.approx((1 + 11 / 2) / 12)
    assert not any("order of a model's scores" in notice for notice in run.notices)
    assert "1 items were asked in fewer orders than others" in run.notices
    assert not any("letter_debiased" in notice for notice in run.notices)


def says_first(path: Path, *, orders: int = 1, first: float = -0.1) -> Path:
    """The answers to 40 minimal pairs of a model that always says "1", or else always "2"."""
    lines = []
    for number in range(40):
        pair = [f"good {number}", f"bad {number}"]
        for order in (pair, pair[::-1])[:orders]:
            lines.append({"id": str(number), "text": "", "order": order, "gold": pair[0]})
            lines[-1]["scores"] = {"1": first, "2": -2.0}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("orders", "accuracy", "majority", "verdict"),
    [
        (1, 1.0, 1.0, "not above the majority"),  # the good sentence is always 1
        (2, 0.5, 0.5, "not distinguishable"),
    ],
)
def test_a_model_that_always_says_1_is_not_above_chance(
    tmp_path: Path, orders: int, accuracy: float, majority: float, verdict: str
) -> None:
    path = says_first(tmp_path / "pairs.jsonl", orders=orders)
    line = ["import", "letters", str(path), "--model", "m", "--output_dir", str(tmp_path / "out")]
    assert cli.main(line) == 0
    results = load_results(tmp_path / "out")
    [row] = zero_shots(results).itertuples()
    assert (row.accuracy, row.majority_accuracy, row.against_chance) == (
        accuracy, majority, verdict
    )  # fmt: skip
    # By the rule `letter`, which goes by the first order, it is no better than always "1" either.
    by_rule = rule_rows(results).set_index("rule").verdict
    assert by_rule["letter"] == "not above the majority"
    lines = read_item_lines(results, results.runs[0])
    assert {item.correct for item in lines} == {accuracy}


@pytest.mark.thorough
def test_letters_are_compared_with_letters_alone_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words and letters of one model are two sets; own score and `letter` are one rule."""
    words = [
        {"id": str(n), "text": "", "gold": f"good {n}",
         "scores": {f"good {n}": -float(n % 3), f"bad {n}": -1.5}}
        for n in range(40)
    ]  # fmt: skip
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in words))
    folders = {}
    for name, form in {"a": "letters", "b": "letters", "words": "plain"}.items():
        if form == "letters":
            says_first(tmp_path / "pairs.jsonl", first=-0.1 if name == "a" else -3.0)
        else:
            (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(w) + "\n" for w in words))
        folders[name] = str(tmp_path / name)
        line = ["import", form, str(tmp_path / "pairs.jsonl"), "--model", name]
        assert cli.main([*line, "--output_dir", folders[name]]) == 0
    out = ["--output_dir", str(tmp_path / "apart")]
    assert cli.main(["compare", folders["a"], folders["words"], *out]) == 2
    assert "rules and ways of asking are compared separately" in capsys.readouterr().err
    out = ["--output_dir", str(tmp_path / "both"), "--scoring", "own,letter"]
    assert cli.main(["compare", folders["a"], folders["b"], *out]) == 0
    [run] = load_results(tmp_path / "both").runs
    details = run.detail(ComparisonDetails)
    assert details is not None
    assert details.num_pairs == 1


def test_a_score_that_is_one_of_the_rules_is_compared_once(tmp_path: Path) -> None:
    """Whatever two rules are called, the same answers count once in the correction."""
    for name in ("a", "b"):
        says_first(tmp_path / "pairs.jsonl", orders=2, first=-0.1 if name == "a" else -3.0)
        line = ["import", "letters", str(tmp_path / "pairs.jsonl"), "--model", name]
        assert cli.main([*line, "--output_dir", str(tmp_path / name)]) == 0
    out = ["--output_dir", str(tmp_path / "out"), "--scoring", "own,letter_debiased"]
    assert cli.main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), *out]) == 0
    [run] = load_results(tmp_path / "out").runs
    assert any("so they are compared once" in notice for notice in run.notices)


def test_candidates_are_those_of_the_items_or_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "said.csv"
    table.write_text("text,animal,plant,extra,gold\nQ1?,1,2,9,plant\nQ2?,2,1,9,animal\n")
    line = ["import", "plain", str(table), "--model", "m"]
    out = ["--output_dir", str(tmp_path / "out")]
    assert cli.main([*line, "--candidates", "animal,plant", *out]) == 0
    [run] = load_results(tmp_path / "out").runs
    rows = {r.metric: r.value for r in run.rows if r.subset is None}
    assert (rows["accuracy"], rows["chance"]) == (1.0, 0.5)
    assert "columns ignored: extra" in run.notices
    items = tmp_path / "items.csv"
    items.write_text("sentence,gold,choices\nQ1?,plant,animal|plant\nQ2?,animal,animal|plant\n")
    line += ["--data.path", str(items), "--data.setup", "mc_qa"]
    assert cli.main([*line, "--output_dir", str(tmp_path / "by_items")]) == 0
    [run] = load_results(tmp_path / "by_items").runs
    assert next(r.value for r in run.rows if r.metric == "accuracy") == 1.0
    line = ["import", "minicons", str(table), "--model", "m", "--candidates", "animal"]
    assert cli.main([*line, *out]) == 2
    assert "--candidates names columns of plain tables" in capsys.readouterr().err


THREE = {"id": "1", "text": "Q?", "gold": "x", "scores": {"A": -1, "B": -2, "C": -3}}
UNEVEN = [json.dumps(THREE | {"order": order}) for order in (["x", "y", "z"], ["y", "z", "x"])]


@pytest.mark.parametrize(
    ("lines", "has_items", "notice"),
    [
        (LABELS.splitlines()[:2], True, "1 items were not asked in the order of their file"),
        (UNEVEN, False, "1 items: not every choice had every label"),
    ],
)
def test_what_was_not_asked_is_said(
    lines: list[str], has_items: bool, notice: str, tmp_path: Path
) -> None:
    (tmp_path / "said.jsonl").write_text("".join(f"{line}\n" for line in lines))
    write_ai2(tmp_path / "kinds.jsonl", [CAT, OAK])
    line = ["import", "letters", str(tmp_path / "said.jsonl"), "--model", "gpt-x"]
    if has_items:
        line += ["--data.path", str(tmp_path / "kinds.jsonl"), "--data.setup", "mc_mlm"]
    assert cli.main([*line, "--output_dir", str(tmp_path / "out")]) == 0
    [run] = load_results(tmp_path / "out").runs
    assert any(text.startswith(notice) for text in run.notices)
