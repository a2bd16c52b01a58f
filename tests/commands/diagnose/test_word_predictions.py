"""What is asked of a model, next to a plain loop over the raw model: one prompt at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight import cli
from probelight.commands.diagnose.diagnose import prompt_pairs, words_by_context
from probelight.commands.diagnose.word_predictions import (
    WordPredictions,
    file_name,
    predict_words,
    write_recorded_files,
)
from probelight.evaluation.scorers import scorer_for
from probelight.io.errors import UsageError
from probelight.models.registry import ModelSettings
from probelight.models.scorer import Question, Scorer
from probelight.probes.diagnostics.items import Prompt
from probelight.probes.diagnostics.sets import SETS, load_set
from probelight.results.model_outputs import find_recorded, read_recorded
from probelight.runs.settings import TrainerSettings
from tests.fixtures.diagnostics import write_recorded, write_released
from tests.fixtures.rows import read_results

Plain = Callable[[str], dict[str, float]]
QUIET = TrainerSettings(accelerator="cpu", progress_bar=False)


@pytest.fixture(scope="module")
def scorer(asked_model: Path) -> Scorer:
    return scorer_for(ModelSettings(name_or_path=str(asked_model), kind="transformer"), "mc_mlm")


def test_all_sets_as_a_plain_loop_has_them(scorer: Scorer, plain: Plain, tmp_path: Path) -> None:
    mirror = write_released(tmp_path)
    for name in SETS:
        data = load_set(name, mirror)
        outputs = predict_words(scorer, words_by_context(data), QUIET).outputs(data.prompts)
        assert outputs.depth == 20
        assert outputs.probabilities is not None
        for i, prompt in enumerate(data.prompts):
            expected = plain(prompt.context)
            assert list(outputs.predictions[i]) == list(expected)[:20]
            p = expected.get(prompt.target)
            assert outputs.probabilities[i] == (p and pytest.approx(p, abs=1e-6))
        assert outputs.split == {w for words in words_by_context(data).values() for w in words} & {
            "monopoly", "vegetable", "tipped", "dangerous",
        }  # fmt: skip


def predicted(scorer: Scorer, words: dict[str, list[str]], **options: Any) -> WordPredictions:
    return predict_words(scorer, words, replace(QUIET, **options))


def test_answers_do_not_depend_on_the_batch(scorer: Scorer) -> None:
    words = {"A cat is an": ["animal"], "the coach asked which player the team had": ["signed"]}
    one_by_one = predicted(scorer, words, max_eval_tokens=1).by_context
    for context, prediction in predicted(scorer, words).by_context.items():
        assert one_by_one[context].best == prediction.best
        expected = pytest.approx(dict(prediction.probabilities), abs=1e-6)
        assert one_by_one[context].probabilities == expected


def test_a_word_is_shown_in_the_spelling_that_was_asked_for(scorer: Scorer) -> None:
    words: dict[str, list[str]] = {"A cat is an": [], "A trout is a": []}
    original = predicted(scorer, words).by_context
    word = next(w for w in original["A cat is an"].best if len(w) > 1 and w.isalpha())
    # No matter behind which context: what is said behind two can be compared.
    respelt = predicted(scorer, {**words, "A cat is an": [word.upper(), word.title()]}).by_context
    for context, guess in respelt.items():
        assert guess.best == tuple(w.upper() if w == word else w for w in original[context].best)
    upper, title = respelt["A cat is an"].probabilities.values()
    assert upper == title


class Changed(Scorer):
    """The vocabulary question of a scorer, changed by a test."""

    def __init__(self, question: Question) -> None:
        self.question = question

    def choice_scores(self) -> Question:
        raise NotImplementedError

    def vocabulary(self) -> Question:
        return self.question


def test_what_reads_like_a_split_word_is_not_that_word(scorer: Scorer) -> None:
    from probelight.encoding.masked import MaskedChoiceEncoder

    question = scorer.vocabulary()
    tokenizer = question.encoder.tokenizer  # type: ignore[attr-defined]
    # With this prefix no word has an entry.
    odd = Changed(Question(MaskedChoiceEncoder(tokenizer, "un", "skip"), question.answer))
    answer = predicted(odd, {"A cat is an": ["animal", "text", "one"]}).by_context["A cat is an"]
    best = predicted(scorer, {"A cat is an": []}).by_context["A cat is an"].best
    assert answer.split == {"animal", "text", "one"}
    assert answer.best == tuple(f"##{w}" if w in answer.split else w for w in best)


def test_numbers_that_are_none_count_as_wrong(scorer: Scorer) -> None:
    question = scorer.vocabulary()
    lost = Changed(Question(question.encoder, lambda batch: question.answer(batch) * float("nan")))
    answers = predicted(lost, {"A cat is an": ["animal"]})
    outputs = answers.outputs([Prompt("A cat is an", "animal")])
    assert outputs.predictions == ((),)
    assert outputs.probabilities == (pytest.approx(float("nan"), nan_ok=True),)
    assert "after 1 of 1 contexts the model's scores are not numbers (NaN)" in answers.notices[-1]


COUNTED = ("probe", "metric", "subset", "value", "ci_low", "ci_high", "num_items")


def test_what_is_written_is_read_again_with_the_same_counts(
    tmp_path: Path, asked_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror, recorded_dir = write_released(tmp_path / "mirror"), tmp_path / "written"
    outputs = write_recorded(tmp_path / "outputs")
    sets = ("cprag", "role", "neg_1500_simp_gen")
    command = ["diagnose", f"--sets={','.join(sets)}", f"--mirror={mirror}"]
    command += ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]
    options = [f"--models={asked_model}", f"--write_recorded={recorded_dir}", "--shuffles=1"]
    options += [f"--recorded={outputs}", f"--output_dir={tmp_path / 'one'}"]
    for _ in range(2):  # the same command goes on
        assert cli.main([*command, *options]) == 0
    assert capsys.readouterr().out.count(": complete\n") == 4
    rows = [r for r in read_results(tmp_path / "one" / "results.csv") if not r["perturbation"]]
    assert {(row["model"], row["probe"], row["role"], row["kind"]) for row in rows} == {
        ("bert", "cprag", "model", "recorded"),
        *(("asked", probe, "model", "transformer") for probe in sets),
    }
    read = [f"--recorded={recorded_dir}", f"--output_dir={tmp_path / 'two'}"]
    assert cli.main([*command, *read]) == 0
    first, second = (
        {tuple(row[name] for name in COUNTED) for row in table if row["model"] == "asked"}
        for table in (rows, read_results(tmp_path / "two" / "results.csv"))
    )
    assert first == second
    # Three of four contexts of ROLE-88 have an expected word that the vocabulary has.
    assert {row[-1] for row in second if row[:3] == ("role", "accuracy@1", "")} == {"3"}
    assert sorted(path.name for path in recorded_dir.iterdir()) == [
        "NEG-1500-SIMP-GEN", "cprag-contextlist", "cprag-targetlist",
        *(f"{kind}-{name}-asked" for kind in ("modelpreds", "modelsplit", "modeltgtprobs")
          for name in ("cprag", "role")),
        "role-contextlist", "role-targetlist",
    ]  # fmt: skip
    lines = (recorded_dir / "modeltgtprobs-cprag-asked").read_text().splitlines()
    assert [line == "nan" for line in lines] == [False, False, True, False, False, False]
    contexts = (recorded_dir / "role-contextlist").read_text().splitlines()
    assert contexts[1] == "the owner forgot which customer the waitress had [MASK]"


def line(words: list[str], **more: Any) -> dict[str, Any]:
    return {"context": "c", "target": "t", "predictions": words, "probability": 0.1, **more}


def test_one_set_in_lists(tmp_path: Path) -> None:
    model = "some/model (random weights)"
    lines = [line(["it's", '"', "\\"]), line(["a", "b", "c"], split=["t"])]
    write_recorded_files(tmp_path, SETS["role_1500"], model, lines)
    data = load_set("role_1500", write_released(tmp_path / "mirror"))
    [recorded] = find_recorded(tmp_path, ["ROLE-1500"])
    assert recorded.model == "some-model (random weights)"
    assert len(recorded.files) == 2
    outputs = read_recorded(recorded, prompt_pairs(data))
    assert outputs.predictions == (("it's", '"', "\\"), ("a", "b", "c"))
    assert outputs.split == {"t"}
    # A model of that name that splits nothing.
    write_recorded_files(tmp_path, SETS["role_1500"], model, [line(["a"])] * 2)
    [recorded] = find_recorded(tmp_path, ["ROLE-1500"])
    assert recorded.split is None


def test_what_no_form_can_say_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"m on CPRAG-102: after .* not numbers \(NaN\)"):
        write_recorded_files(tmp_path, SETS["cprag"], "m", [line([])])
    assert not list(tmp_path.iterdir())
    (tmp_path / "modelsplit-cprag-m").write_text("word\n")
    write_recorded(tmp_path, model="n", end="")
    with pytest.raises(UsageError, match="the outputs of m on cprag are missing"):
        find_recorded(tmp_path, ["cprag"])
    assert file_name("a/b\\c\nd") == "a-b-c-d"
