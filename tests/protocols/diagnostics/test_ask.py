"""What is asked of a model, beside a plain loop over the raw model: one prompt at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.models.scorers.base import Question, Scorer
from probelight.probes.diagnostics.items import Prompt
from probelight.probes.diagnostics.sets import SETS, load_set
from probelight.protocols.diagnostics.ask import Answers, ask_words
from probelight.protocols.diagnostics.run import words_of
from probelight.protocols.engine.models import scorer_for
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.context import TrainerSettings
from tests.fixtures.diagnostics import write_released

Plain = Callable[[str], dict[str, float]]
QUIET = TrainerSettings(accelerator="cpu", progress_bar=False)


@pytest.fixture(scope="module")
def scorer(asked_model: Path) -> Scorer:
    return scorer_for(ModelSettings(name_or_path=str(asked_model)), "mc_mlm")


def test_all_sets_as_a_plain_loop_has_them(scorer: Scorer, plain: Plain, tmp_path: Path) -> None:
    mirror = write_released(tmp_path)
    for name in SETS:
        data = load_set(name, mirror)
        outputs = ask_words(scorer, words_of(data), QUIET).outputs(data.prompts)
        assert outputs.depth == 20
        assert outputs.probabilities is not None
        for i, prompt in enumerate(data.prompts):
            expected = plain(prompt.context)
            assert list(outputs.predictions[i]) == list(expected)[:20]
            assert outputs.probabilities[i] == (
                pytest.approx(expected[prompt.target], abs=1e-6)
                if prompt.target in expected
                else None
            )
        assert outputs.split == {w for own in words_of(data).values() for w in own} & {
            "monopoly", "vegetable", "tipped", "dangerous",
        }  # fmt: skip


def said(scorer: Scorer, words: dict[str, list[str]], **options: Any) -> Answers:
    return ask_words(scorer, words, replace(QUIET, **options))


def test_answers_do_not_depend_on_the_batch(scorer: Scorer) -> None:
    words = {"A cat is an": ["animal"], "the coach asked which player the team had": ["signed"]}
    one_by_one, together = said(scorer, words, max_eval_tokens=1), said(scorer, words)
    for context, own in together.behind.items():
        assert one_by_one.behind[context].best == own.best
        assert one_by_one.behind[context].probabilities == pytest.approx(
            dict(own.probabilities), abs=1e-6
        )


def test_a_word_is_shown_in_the_spelling_that_was_asked_for(scorer: Scorer) -> None:
    words: dict[str, list[str]] = {"A cat is an": [], "A trout is a": []}
    before = said(scorer, words).behind
    word = next(w for w in before["A cat is an"].best if len(w) > 1 and w.isalpha())
    # No matter behind which context: what is said behind two can be compared.
    behind = said(scorer, {**words, "A cat is an": [word.upper(), word.title()]}).behind
    for context, own in behind.items():
        assert own.best == tuple(w.upper() if w == word else w for w in before[context].best)
    upper, title = behind["A cat is an"].probabilities.values()
    assert upper == title


def test_what_reads_like_a_split_word_is_not_that_word(scorer: Scorer) -> None:
    class Oddly(Scorer):
        """Has no entry for any word."""

        def choice_scores(self) -> Question:
            raise NotImplementedError

        def vocabulary(self) -> Question:
            from probelight.encoding.masked import MaskedChoiceEncoder

            asked = scorer.vocabulary()
            tokenizer = asked.encoder.tokenizer  # type: ignore[attr-defined]
            return Question(MaskedChoiceEncoder(tokenizer, "un", "skip"), asked.answer)

    found = said(Oddly(), {"A cat is an": ["animal", "text", "one"]}).behind["A cat is an"]
    best = said(scorer, {"A cat is an": []}).behind["A cat is an"].best
    assert found.split == {"animal", "text", "one"}
    assert found.best == tuple(f"##{w}" if w in found.split else w for w in best)


def test_numbers_that_are_none_count_as_wrong(scorer: Scorer) -> None:
    class Lost(Scorer):
        def choice_scores(self) -> Question:
            raise NotImplementedError

        def vocabulary(self) -> Question:
            asked = scorer.vocabulary()
            return Question(asked.encoder, lambda batch: asked.answer(batch) * float("nan"))

    found = said(Lost(), {"A cat is an": ["animal"]})
    outputs = found.outputs([Prompt("A cat is an", "animal")])
    assert outputs.predictions == ((),)
    assert outputs.probabilities == (pytest.approx(float("nan"), nan_ok=True),)
    assert "behind 1 of 1 contexts the model's numbers are none (NaN)" in found.notices[-1]
