from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM

from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.models.scorers import pseudo_log_likelihood
from probelight.models.scorers.masked import load
from probelight.models.scorers.pseudo_log_likelihood import PseudoLogLikelihood
from probelight.probes.record import Record
from probelight.protocols.engine.settings import ModelSettings

Checkpoint = Callable[..., Path]

# "antelope" is three pieces: ante ##lo ##pe.
QA = Record("1", "which animal is larger ?", ("the antelope", "a dog", "the red cat"), 0)
MLM = Record("2", "the [MASK] is larger than a dog .", ("antelope", "cat"), 0)


def _by_hand(folder: Path, before: list[str], answer: list[str], after: list[str]) -> list[float]:
    """log p of each answer token with that token masked, from the whole model's own logits."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = tokenizer.convert_tokens_to_ids(["[CLS]", *before, *answer, *after, "[SEP]"])
    found = []
    for place in range(1 + len(before), 1 + len(before) + len(answer)):
        masked = torch.tensor([ids])
        masked[0, place] = tokenizer.mask_token_id
        with torch.no_grad():
            log_p = model(masked).logits[0, place].log_softmax(0)
        found.append(float(log_p[ids[place]]))
    return found


def _scores(module: PseudoLogLikelihood, *records: Record) -> torch.Tensor:
    asked = module.choice_scores()
    encoded = asked.encoder.encode(records)
    with torch.no_grad():
        return asked.answer(encoded.collate(range(len(records))))


def test_question_and_answer_scores_are_those_of_a_loop_over_the_whole_model(
    architecture: str, checkpoint: Checkpoint
) -> None:
    folder = checkpoint(architecture)
    stem = ["which", "animal", "is", "larger", "?"]
    answers = [["the", "ante", "##lo", "##pe"], ["a", "dog"], ["the", "red", "cat"]]
    logs = [_by_hand(folder, stem, answer, []) for answer in answers]
    for normalise in ("sum", "mean"):
        module = PseudoLogLikelihood.load(str(folder), normalise=normalise)  # type: ignore[arg-type]
        sizes = [1 if normalise == "sum" else len(answer) for answer in answers]
        expected = [sum(values) / size for values, size in zip(logs, sizes, strict=True)]
        found = _scores(module, QA)[0].tolist()
        assert found == pytest.approx(expected, abs=1e-4)


def test_the_number_of_tokens_summed_is_known_without_running_the_model(
    checkpoint: Checkpoint,
) -> None:
    asked = PseudoLogLikelihood.load(str(checkpoint("bert"))).log_likelihoods()
    assert asked.num_tokens is not None
    assert asked.num_tokens([QA, MLM]) == [[4, 2, 3], [3, 1]]


def test_a_candidate_stands_in_the_place_of_the_mask(checkpoint: Checkpoint) -> None:
    folder = checkpoint("bert")
    after = ["is", "larger", "than", "a", "dog", "."]
    expected = [
        sum(_by_hand(folder, ["the"], answer, after))
        for answer in (["ante", "##lo", "##pe"], ["cat"])
    ]
    found = _scores(PseudoLogLikelihood.load(str(folder)), MLM)[0].tolist()
    assert found == pytest.approx(expected, abs=1e-4)


def test_one_piece_candidates_are_ordered_as_by_masked_choice(checkpoint: Checkpoint) -> None:
    """log p over the vocabulary is the candidate's logit minus the same number for all of them."""
    record = Record("3", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0)
    masked = MaskedChoice(str(checkpoint("bert")))
    with torch.no_grad():
        logits = masked(masked.encoder().encode([record]).collate([0]))[0]
    scores = _scores(PseudoLogLikelihood.of(masked), record)[0]
    differences = scores - logits
    assert float(differences.max() - differences.min()) < 1e-4


def test_the_scorer_of_a_masked_choice_shares_its_model(checkpoint: Checkpoint) -> None:
    masked = MaskedChoice(
        str(checkpoint("bert")), multi_token="pseudo_log_likelihood", max_length=30
    )
    encoded = masked.encoder().encode([MLM])
    assert encoded.needs_pll == [0]
    scorer = PseudoLogLikelihood.of(masked, normalise="mean")
    assert scorer.model is masked.model
    assert (scorer.normalise, scorer.max_length) == ("mean", 30)
    own = PseudoLogLikelihood.load(str(checkpoint("bert")), normalise="mean")
    assert torch.equal(_scores(scorer, MLM), _scores(own, MLM))


def test_scores_depend_neither_on_the_batch_nor_on_the_groups(
    architecture: str, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = PseudoLogLikelihood.load(str(checkpoint(architecture)))
    together = _scores(module, QA, MLM)
    assert together[1, 2] == -torch.inf
    torch.testing.assert_close(together[0], _scores(module, QA)[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(together[1, :2], _scores(module, MLM)[0], rtol=0, atol=1e-5)
    monkeypatch.setattr(pseudo_log_likelihood, "_MAX_TOKENS", 1)  # one masked copy at a time
    torch.testing.assert_close(_scores(module, QA, MLM), together, rtol=0, atol=1e-5)


def test_its_log_likelihoods_are_sums_whatever_its_scores_are(checkpoint: Checkpoint) -> None:
    summed, mean = (
        PseudoLogLikelihood.load(str(checkpoint()), normalise) for normalise in ("sum", "mean")
    )
    asked = mean.log_likelihoods()
    with torch.no_grad():
        found = asked.answer(asked.encoder.encode([QA]).collate([0]))
    assert torch.equal(found, _scores(summed, QA))
    assert not torch.equal(found, _scores(mean, QA))


def test_nothing_of_it_is_trained(checkpoint: Checkpoint) -> None:
    scorer = PseudoLogLikelihood.load(str(checkpoint("bert")))
    assert not any(parameter.requires_grad for parameter in scorer.parameters())
    assert not scorer.training


def test_an_unknown_normalisation_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(ValueError, match="normalise='max': choose sum or mean"):
        PseudoLogLikelihood.load(str(checkpoint("bert")), normalise="max")  # type: ignore[arg-type]


def test_a_sentence_without_a_stem_is_summed_over_all_of_its_tokens(
    architecture: str, checkpoint: Checkpoint
) -> None:
    """As BLiMP asks a masked LM (Salazar et al. 2020), held against a loop over the plain model."""
    sentences = [["the", "cat", "is", "older", "."], ["the", "ante", "##lo", "##pe", "is", "older"]]
    pair = Record("4", "", ("the cat is older .", "the antelope is older"), 0)
    folder = checkpoint(architecture)
    scorer = load(ModelSettings(str(folder)), "minimal_pair")
    asked = scorer.choice_scores()
    with torch.no_grad():
        found = asked.answer(asked.encoder.encode([pair]).collate([0]))[0].tolist()
    expected = [sum(_by_hand(folder, [], words, [])) for words in sentences]
    assert found == pytest.approx(expected, abs=1e-4)
    counted = scorer.log_likelihoods().num_tokens
    assert counted is not None
    assert counted([pair]) == [[5, 6]]


def test_masked_copies_that_are_the_same_are_run_once(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = PseudoLogLikelihood.load(str(checkpoint("bert")))
    rows: list[int] = []
    reader = module.reader

    def counted(batch: dict[str, torch.Tensor], place: torch.Tensor) -> Any:
        rows.append(len(place))
        return reader(batch, place)

    monkeypatch.setattr(module, "reader", counted)
    words = Record("3", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0)
    ends = Record("4", "which animal is larger ?", ("a dog", "a cat", "the dog"), 0)
    found = _scores(module, words, ends)
    # One text with a mask; "[MASK] dog" twice, "[MASK] cat", "a [MASK]" twice and "the [MASK]".
    assert rows == [1 + 4]
    for record, scores in zip((words, ends), found, strict=True):
        for choice, score in zip(record.choices, scores.tolist(), strict=True):
            alone = _scores(module, replace(record, choices=(choice,), answer=0))
            assert float(alone) == pytest.approx(score, abs=1e-5)


def test_each_form_has_a_mode_of_its_own(checkpoint: Checkpoint) -> None:
    folder = str(checkpoint("bert"))
    chosen = ModelSettings(folder, pll="within_word_l2r", multi_token="pseudo_log_likelihood")
    for setup, mode in (("mc_qa", "pseudo_log_likelihood_l2r"), ("mc_mlm", "zero_shot")):
        scorer = load(chosen, setup)  # type: ignore[arg-type]
        assert scorer.mode == mode
        own = PseudoLogLikelihood.load(folder, form="within_word_l2r").log_likelihoods()
        asked = scorer.log_likelihoods()
        batch = asked.encoder.encode([MLM]).collate([0])
        assert torch.equal(asked.answer(batch), own.answer(batch))
    assert load(ModelSettings(folder), "mc_qa").mode == "pseudo_log_likelihood"
