"""A masked LM answers every question of the seam, each as the plain model would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from probelight.io.errors import RecordError
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models import masked as masked_module
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.masked import (
    MaskedLM,
    MaskedScorer,
    PllForm,
    PseudoLogLikelihood,
    check,
    load,
)
from probelight.models.networks import model_fingerprint
from probelight.models.registry import ModelSettings
from probelight.models.scorer import Normalise, TrainedScorer
from probelight.probes.record import Record
from tests.fixtures.answers import answers
from tests.fixtures.architectures import ref_of

Checkpoint = Callable[..., Path]

RECORD = Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0)
PIECES = Record("2", "the [MASK] is larger than a dog .", ("antelope", "cat"), 0)


@pytest.fixture
def scorer(checkpoint: Checkpoint) -> MaskedScorer:
    return MaskedScorer(MaskedLM(ref_of(checkpoint())))


def test_its_vocabulary_is_answered_without_choices(scorer: MaskedScorer) -> None:
    bare = Record("3", RECORD.stem, (), 0)
    assert torch.equal(answers(scorer.vocabulary(), bare), answers(scorer.vocabulary(), RECORD))
    with pytest.raises(RecordError, match=r"4@0: 0 \[MASK\] in the stem; exactly one is needed"):
        answers(scorer.vocabulary(), Record("4", "a cat", (), 0))
    encoded = scorer.vocabulary().encoder.encode([PIECES, RECORD])
    assert (encoded.positions, [item.position for item in encoded.skipped]) == ([1], [0])


def test_its_features_are_what_the_head_reads(scorer: MaskedScorer) -> None:
    features = answers(scorer.features(), RECORD)
    batch = scorer.features().encoder.encode([RECORD]).collate([0])
    with torch.no_grad():
        again = scorer.masked.head.score(features, batch["candidate_ids"])
    assert torch.equal(again, answers(scorer.choice_scores(), RECORD))


def test_what_is_loaded_goes_by_the_question(checkpoint: Checkpoint, tmp_path: Path) -> None:
    settings = ModelSettings(str(checkpoint()), max_length=30, kind="transformer")
    masked, questions = load(settings, "mc_mlm"), load(settings, "mc_qa")
    assert isinstance(masked, MaskedScorer)
    assert masked.masked.max_length == 30
    # Runs that were made by trained modules have the same one.
    assert masked.fingerprint() == model_fingerprint(MaskedChoice(str(checkpoint())))
    assert isinstance(questions, PseudoLogLikelihood)
    assert (questions.normalise, questions.masked.max_length) == ("mean", 30)
    SentenceChoice(str(checkpoint())).save_pretrained(tmp_path / "tuned")
    tuned = load(ModelSettings(str(tmp_path / "tuned"), kind="transformer"), "mc_qa")
    assert isinstance(tuned, TrainedScorer)
    modes = [scorer.mode for scorer in (masked, questions, tuned)]
    assert modes == ["zero_shot", "pseudo_log_likelihood", "fine_tuned"]
    pairs = load(settings, "minimal_pair")
    assert (pairs.normalise, pairs.mode) == ("sum", "pseudo_log_likelihood")
    assert not any(parameter.requires_grad for parameter in pairs.network.parameters())
    assert not any(scorer.network.training for scorer in (masked, questions, tuned, pairs))


def test_a_check_tells_what_can_be_posed(checkpoint: Checkpoint) -> None:
    name = str(checkpoint())
    skipping = check(ModelSettings(name, multi_token="skip", kind="transformer"), "mc_mlm")
    assert list(skipping([PIECES, RECORD])) == [1]
    with pytest.raises(RecordError, match="3 tokens"):
        check(ModelSettings(name, kind="transformer"), "mc_mlm")([PIECES])
    assert list(check(ModelSettings(name, kind="transformer"), "mc_qa")([PIECES, RECORD])) == [0, 1]
    with pytest.raises(PretrainedError, match="no folder"):
        check(ModelSettings("./nowhere", kind="transformer"), "mc_mlm")


# "antelope" is three pieces: ante ##lo ##pe.
QA = Record("1", "which animal is larger ?", ("the antelope", "a dog", "the red cat"), 0)


def by_pieces(
    folder: str | Path, normalise: Normalise = "sum", form: PllForm = "original"
) -> PseudoLogLikelihood:
    """The scorer with a checkpoint of its own."""
    return PseudoLogLikelihood(MaskedLM(ref_of(folder)), normalise, form)


def scores_of(scorer: PseudoLogLikelihood, *records: Record) -> Tensor:
    return answers(scorer.choice_scores(), *records)


def test_the_scorer_by_pieces_shares_the_model(checkpoint: Checkpoint) -> None:
    masked = MaskedLM(
        ref_of(checkpoint("bert")), multi_token="pseudo_log_likelihood", max_length=30
    )
    encoded = masked.encoder().encode([PIECES])
    assert encoded.needs_pll == [0]
    scorer = MaskedScorer(masked).by_pieces("mean")
    assert scorer.network["model"] is masked.model
    assert (scorer.normalise, scorer.masked.max_length) == ("mean", 30)
    pieces = by_pieces(str(checkpoint("bert")), normalise="mean")
    assert torch.equal(scores_of(scorer, PIECES), scores_of(pieces, PIECES))
    scores = answers(MaskedScorer(masked).log_likelihoods(), PIECES)
    assert torch.equal(scores, answers(pieces.log_likelihoods(), PIECES))
    with pytest.raises(ValueError, match="normalise='max': choose sum or mean"):
        MaskedScorer(masked).by_pieces("max")  # type: ignore[arg-type]


def test_scores_depend_neither_on_the_batch_nor_on_the_groups(
    architecture: str, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = by_pieces(str(checkpoint(architecture)))
    together = scores_of(module, QA, PIECES)
    assert together[1, 2] == -torch.inf
    torch.testing.assert_close(together[0], scores_of(module, QA)[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(together[1, :2], scores_of(module, PIECES)[0], rtol=0, atol=1e-5)
    monkeypatch.setattr(masked_module, "_MAX_TOKENS", 1)  # one masked copy at a time
    torch.testing.assert_close(scores_of(module, QA, PIECES), together, rtol=0, atol=1e-5)


def test_masked_copies_that_are_the_same_are_run_once(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = by_pieces(str(checkpoint("bert")))
    rows: list[int] = []
    reader = module.masked.reader

    def counted(batch: dict[str, torch.Tensor], positions: torch.Tensor) -> Any:
        rows.append(len(positions))
        return reader(batch, positions)

    monkeypatch.setattr(module.masked, "reader", counted)
    words = Record("3", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0)
    ends = Record("4", "which animal is larger ?", ("a dog", "a cat", "the dog"), 0)
    logits = scores_of(module, words, ends)
    # One text with a mask; "[MASK] dog" twice, "[MASK] cat", "a [MASK]" twice and "the [MASK]".
    assert rows == [1 + 4]
    for record, scores in zip((words, ends), logits, strict=True):
        for choice, score in zip(record.choices, scores.tolist(), strict=True):
            alone = scores_of(module, replace(record, choices=(choice,), answer=0))
            assert float(alone) == pytest.approx(score, abs=1e-5)


def test_each_form_has_a_mode_of_its_own(checkpoint: Checkpoint) -> None:
    folder = str(checkpoint("bert"))
    chosen = ModelSettings(
        folder, pll="within_word_l2r", multi_token="pseudo_log_likelihood", kind="transformer"
    )
    expected = answers(by_pieces(folder, form="within_word_l2r").log_likelihoods(), PIECES)
    for setup, mode in (("mc_qa", "pseudo_log_likelihood_l2r"), ("mc_mlm", "zero_shot")):
        scorer = load(chosen, setup)  # type: ignore[arg-type]
        assert scorer.mode == mode
        assert torch.equal(answers(scorer.log_likelihoods(), PIECES), expected)
