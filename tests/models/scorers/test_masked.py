"""A masked LM answers every question of the seam, each as the plain model would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, AutoTokenizer

from probelight.io.errors import RecordError
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.checkpoints.weights import model_fingerprint
from probelight.models.scorers.base import Question
from probelight.models.scorers.masked import MaskedScorer, check, load
from probelight.models.scorers.pseudo_log_likelihood import PseudoLogLikelihood
from probelight.models.scorers.trained import TrainedScorer
from probelight.probes.record import Record
from probelight.protocols.engine.settings import ModelSettings

Checkpoint = Callable[..., Path]

RECORD = Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0)
PIECES = Record("2", "the [MASK] is larger than a dog .", ("antelope", "cat"), 0)


def answers(question: Question, *records: Record) -> Tensor:
    encoded = question.encoder.encode(records)
    with torch.no_grad():
        return question.answer(encoded.collate(range(len(encoded))))


@pytest.fixture
def scorer(checkpoint: Checkpoint) -> MaskedScorer:
    return MaskedScorer(MaskedChoice(str(checkpoint())))


@pytest.fixture
def logits(checkpoint: Checkpoint) -> Tensor:
    """(V,) of the plain model at the mask of `RECORD`."""
    model = AutoModelForMaskedLM.from_pretrained(checkpoint()).eval()
    tokenizer = AutoTokenizer.from_pretrained(checkpoint())
    inputs = tokenizer(RECORD.stem, return_tensors="pt")
    place = int((inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero())
    with torch.no_grad():
        found: Tensor = model(**inputs).logits[0, place]
    return found


def test_scores_and_vocabulary_are_the_plain_models(
    scorer: MaskedScorer, logits: Tensor, checkpoint: Checkpoint
) -> None:
    known = len(AutoTokenizer.from_pretrained(checkpoint()))
    ids = AutoTokenizer.from_pretrained(checkpoint()).convert_tokens_to_ids(list(RECORD.choices))
    scores = answers(scorer.choice_scores(), RECORD)
    torch.testing.assert_close(scores[0], logits[ids], rtol=0, atol=1e-5)
    whole = answers(scorer.vocabulary(), RECORD)
    assert whole.shape == (1, known)
    assert float(whole.exp().sum()) == pytest.approx(1.0)
    expected = logits[:known].double().log_softmax(0)
    torch.testing.assert_close(whole[0], expected, rtol=0, atol=1e-5)


def test_its_vocabulary_skips_what_it_has_no_entry_for(scorer: MaskedScorer) -> None:
    encoded = scorer.vocabulary().encoder.encode([PIECES, RECORD])
    assert (encoded.kept, [one.position for one in encoded.skipped]) == ([1], [0])


def test_its_vocabulary_is_answered_without_choices(scorer: MaskedScorer) -> None:
    bare = Record("3", RECORD.stem, (), 0)
    assert torch.equal(answers(scorer.vocabulary(), bare), answers(scorer.vocabulary(), RECORD))
    with pytest.raises(RecordError, match=r"4@0: 0 \[MASK\] in the stem; exactly one is needed"):
        answers(scorer.vocabulary(), Record("4", "a cat", (), 0))


def test_its_log_likelihoods_take_several_pieces(scorer: MaskedScorer) -> None:
    own = PseudoLogLikelihood.of(scorer.module)
    found = answers(scorer.log_likelihoods(), PIECES)
    assert torch.equal(found, answers(own.choice_scores(), PIECES))
    assert own.model is scorer.module.model


def test_its_features_are_what_the_head_reads(scorer: MaskedScorer) -> None:
    features = answers(scorer.features(), RECORD)
    batch = scorer.features().encoder.encode([RECORD]).collate([0])
    with torch.no_grad():
        again = scorer.module.head.score(features, batch["candidate_ids"])
    assert torch.equal(again, answers(scorer.choice_scores(), RECORD))


def test_what_is_loaded_goes_by_the_question(checkpoint: Checkpoint, tmp_path: Path) -> None:
    settings = ModelSettings(str(checkpoint()), max_length=30)
    masked, questions = load(settings, "mc_mlm"), load(settings, "mc_qa")
    assert isinstance(masked, MaskedScorer)
    assert masked.module.max_length == 30
    assert masked.fingerprint() == model_fingerprint(masked.module)
    assert isinstance(questions, PseudoLogLikelihood)
    assert (questions.normalise, questions.max_length) == ("mean", 30)
    SentenceChoice(str(checkpoint())).save_pretrained(tmp_path / "tuned")
    tuned = load(ModelSettings(str(tmp_path / "tuned")), "mc_qa")
    assert isinstance(tuned, TrainedScorer)
    modes = [one.mode for one in (masked, questions, tuned)]
    assert modes == ["zero_shot", "pseudo_log_likelihood", "fine_tuned"]
    assert not any(one.training for one in (masked, questions, tuned))


def test_a_check_tells_what_can_be_posed(checkpoint: Checkpoint) -> None:
    name = str(checkpoint())
    skipping = check(ModelSettings(name, multi_token="skip"), "mc_mlm")
    assert list(skipping([PIECES, RECORD])) == [1]
    with pytest.raises(RecordError, match="3 pieces"):
        check(ModelSettings(name), "mc_mlm")([PIECES])
    assert list(check(ModelSettings(name), "mc_qa")([PIECES, RECORD])) == [0, 1]
    with pytest.raises(PretrainedError, match="no folder"):
        check(ModelSettings("./nowhere"), "mc_mlm")
