"""An encoder-decoder LM answers each question as a plain loop over the raw model does."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import ByteLevel
from torch import Tensor
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    ByT5Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    MT5Config,
    MT5ForConditionalGeneration,
    PegasusConfig,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

from probelight.evaluation.letters import ask_letters
from probelight.models import seq2seq as seq2seq_module
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.registry import ModelSettings
from probelight.models.seq2seq import check, infilling_of, load
from probelight.probes.prompts import Prompts, Templates
from probelight.probes.record import Record
from probelight.results.measured import Predictions
from probelight.runs.settings import TrainerSettings
from tests.fixtures.answers import answers
from tests.fixtures.tokenizers import t5_tokenizer

Checkpoint = Callable[[str], Path]

MASKED = Record("1", "a cat is [MASK] than a dog .", ("much smaller", "larger", "antelope"), 0)
SHORT = Record("2", "[MASK] is red", ("dog", "the cat"), 1)
ASKED = Record("3", "which animal is larger ? ", ("the antelope", " a dog "), 0)
SENTENCES = Record("4", " ", ("the dog is red .", "the red is dog ."), 0)
ONE_PIECE = Record("5", "a cat is [MASK] than a dog .", ("smaller", "larger"), 0)
TWICE = Record("6", "[MASK] [MASK] .", ("dog", "cat"), 0)  # the last one is the blank
RECORDS = (MASKED, SHORT, ASKED, SENTENCES, TWICE)


@cache
def loaded(folder: Path) -> tuple[Any, Any]:
    """The raw model and its tokenizer."""
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    return model, AutoTokenizer.from_pretrained(folder)


def raw(folder: Path, text: str, decoder_ids: list[int]) -> Tensor:
    """(T, V) log-probabilities behind each token of `written`, from one call of the whole model."""
    model, tokenizer = loaded(folder)
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.no_grad():
        logits = model(input_ids=ids, decoder_input_ids=torch.tensor([decoder_ids])).logits
    return logits[0].double().log_softmax(dim=-1)


def by_hand(folder: Path, record: Record, choice: str) -> list[float]:
    """Log-probability of all that is summed of a choice, one piece after the other."""
    _, tokenizer = loaded(folder)
    is_t5 = "t5" in folder.name
    blank = "<extra_id_0>" if is_t5 else "<mask>"
    stem, choice = record.stem.strip(), choice.strip()
    if not stem:
        text, context = blank, ""
    elif "[MASK]" in record.stem:
        context, _, suffix = record.stem.rpartition("[MASK]")
        text = f"{context}{blank}{suffix}"
    else:
        text, context = f"{stem} {blank}", f"{stem} "
    if is_t5:
        decoder_ids = [0, tokenizer.convert_tokens_to_ids("<extra_id_0>")]
        summed = tokenizer(f"{choice} <extra_id_1>", add_special_tokens=False).input_ids
    else:
        text = text.replace(" <mask>", "<mask>")  # the answer brings its space along
        shared = tokenizer(context.rstrip(), add_special_tokens=False).input_ids
        full_ids = tokenizer(context + choice, add_special_tokens=False).input_ids
        assert full_ids[: len(shared)] == shared
        decoder_ids, summed = (
            [tokenizer.eos_token_id, tokenizer.bos_token_id, *shared],
            full_ids[len(shared) :],
        )
    log_p = raw(folder, text, decoder_ids + summed[:-1])
    return [float(log_p[len(decoder_ids) - 1 + i, token]) for i, token in enumerate(summed)]


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["t5", "t5_untied", "bart"])
def test_scores_are_those_of_a_loop_over_the_raw_model(family: str, seq2seq: Checkpoint) -> None:
    folder = seq2seq(family)
    hand = [[by_hand(folder, record, c) for c in record.choices] for record in RECORDS]
    sums, means = (load(ModelSettings(str(folder)), setup) for setup in ("mc_mlm", "mc_qa"))
    largest = 0.0
    for records in (RECORDS, *((record,) for record in RECORDS)):  # together, and each one alone
        summed, mean = (answers(scorer.choice_scores(), *records) for scorer in (sums, means))
        for row, record in enumerate(records):
            for column, values in enumerate(hand[RECORDS.index(record)]):
                pair = (
                    summed[row, column] - sum(values),
                    mean[row, column] * len(values) - sum(values),
                )
                largest = max(largest, *(abs(float(difference)) for difference in pair))
    print(f"{family}: largest difference {largest:.1e}")
    assert largest < 1e-5
    question = means.log_likelihoods()
    pairs = load(ModelSettings(str(folder)), "minimal_pair")
    for scorer in (sums, pairs):
        assert torch.equal(answers(question, *RECORDS), answers(scorer.choice_scores(), *RECORDS))
    assert question.num_tokens is not None
    assert question.num_tokens(RECORDS) == [[len(values) for values in row] for row in hand]


def next_token(folder: Path, record: Record) -> tuple[Tensor, list[int], str]:
    """Log-probabilities of the first token in the blank, what the decoder was given, the source."""
    _, tokenizer = loaded(folder)
    if "t5" in folder.name:
        text = record.stem.replace("[MASK]", "<extra_id_0>")
        decoder_ids = [0, tokenizer.convert_tokens_to_ids("<extra_id_0>")]
    else:
        text = record.stem.replace(" [MASK]", "<mask>")
        context = tokenizer(record.stem.split(" [MASK]")[0], add_special_tokens=False).input_ids
        decoder_ids = [tokenizer.eos_token_id, tokenizer.bos_token_id, *context]
    return raw(folder, text, decoder_ids)[-1], decoder_ids, text


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_its_vocabulary_is_that_of_the_first_token_in_the_blank(
    family: str, seq2seq: Checkpoint
) -> None:
    folder = seq2seq(family)
    scorer = load(ModelSettings(str(folder)), "mc_mlm")
    _, tokenizer = loaded(folder)
    expected = next_token(folder, ONE_PIECE)[0][: len(tokenizer)].log_softmax(dim=0)
    question = scorer.vocabulary()
    no_choices = Record("6", "is a red [MASK]", (), 0)
    records = [no_choices, ONE_PIECE, MASKED]
    encoded = question.encoder.encode(records)
    assert (encoded.positions, [item.position for item in encoded.skipped]) == ([0, 1], [2])
    assert "5" not in encoded.notices[0]
    assert encoded.notices[0].endswith("is not one vocabulary item: 1@0")
    log_probs = answers(question, *records)
    assert log_probs.shape == (2, len(tokenizer))
    torch.testing.assert_close(log_probs[1], expected, rtol=0, atol=1e-5)
    space = "▁" if family == "t5" else "Ġ"
    ids = tokenizer.convert_tokens_to_ids([f"{space}{choice}" for choice in ONE_PIECE.choices])
    assert encoded.collate([0, 1])["candidate_ids"].tolist() == [[0, 0], ids]
    assert encoded.collate([0, 1])["choice_mask"].tolist() == [[False, False], [True, True]]


@pytest.mark.parametrize("family", ["t5", "t5_untied", "bart"])
def test_its_features_are_what_the_head_reads(family: str, seq2seq: Checkpoint) -> None:
    folder = seq2seq(family)
    scorer = load(ModelSettings(str(folder)), "mc_qa")
    features = answers(scorer.features(), MASKED, ONE_PIECE)
    assert features.shape == (2, 16)
    _, decoder_ids, text = next_token(folder, MASKED)
    model, tokenizer = loaded(folder)
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.no_grad():
        output = model(
            input_ids=ids, decoder_input_ids=torch.tensor([decoder_ids]), output_hidden_states=True
        )
    hidden = output.decoder_hidden_states[-1][0, -1]
    expected = hidden / 4 if family == "t5" else hidden  # the root of 16
    torch.testing.assert_close(features, torch.stack([expected] * 2), rtol=0, atol=1e-5)


def test_scores_depend_neither_on_the_groups_nor_on_the_weights_names(
    seq2seq: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = load(ModelSettings(str(seq2seq("bart"))), "mc_mlm")
    together = answers(scorer.choice_scores(), *RECORDS)
    assert together[0, 2] > -torch.inf
    assert together[1, 2] == -torch.inf
    monkeypatch.setattr(seq2seq_module, "_MAX_LOGITS", 1)  # one target at a time
    torch.testing.assert_close(
        answers(scorer.choice_scores(), *RECORDS), together, rtol=0, atol=1e-5
    )
    assert not any(parameter.requires_grad for parameter in scorer.network.parameters())
    assert not scorer.network.training
    # A text is encoded once for all its choices.
    batch = scorer.choice_scores().encoder.encode([MASKED, ONE_PIECE]).collate([0, 1])
    assert len(batch["input_ids"]) == 1
    assert len(batch["decoder_input_ids"]) == 4  # "larger" is a choice of both
    assert batch["source_index"].tolist() == [0, 0, 0, 0]
    fresh = load(ModelSettings(str(seq2seq("bart")), random_weights=True), "mc_mlm")
    assert fresh.fingerprint() != scorer.fingerprint()
    assert scorer.mode == "infilling_likelihood"


def test_models_that_do_not_fill_blanks_are_refused_by_name(
    seq2seq: Checkpoint, tmp_path: Path
) -> None:
    assert list(check(ModelSettings(str(seq2seq("t5"))), "mc_qa")(RECORDS)) == [0, 1, 2, 3, 4]
    shutil.copytree(seq2seq("bart"), tmp_path / "pegasus")
    PegasusConfig(vocab_size=500).save_pretrained(tmp_path / "pegasus")
    message = "pegasus .* an encoder-decoder model of an unsupported family"
    with pytest.raises(PretrainedError, match=message):
        check(ModelSettings(str(tmp_path / "pegasus")), "mc_mlm")
    model, _ = loaded(seq2seq("t5"))
    with pytest.raises(PretrainedError, match=r"t5.*no <extra_id_0> and <extra_id_1>"):
        infilling_of(model, t5_tokenizer(num_sentinels=1))
    words = {word: i for i, word in enumerate(["<unk>", "a", "<extra_id_0>", "<extra_id_1>"])}
    base = Tokenizer(WordPiece(words, unk_token="<unk>"))
    base.pre_tokenizer = WhitespaceSplit()  # nothing says that the sentinels are special tokens
    message = f"{seq2seq('t5').name}: the tokenizer does not read <extra_id_0>"
    with pytest.raises(PretrainedError, match=message):
        infilling_of(model, PreTrainedTokenizerFast(tokenizer_object=base, unk_token="<unk>"))


SIZES: dict[str, Any] = {
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 1,
    "decoder_attention_heads": 1,
}


def test_sentences_begin_with_barts_first_token_or_mbarts_language(
    byte_bpe: RobertaTokenizer,
) -> None:
    tokenizer = MBartTokenizer(src_lang="en_XX", tgt_lang="en_XX")
    model = MBartForConditionalGeneration(MBartConfig(vocab_size=len(tokenizer), **SIZES))
    form = infilling_of(model, tokenizer)
    assert form.opening == (tokenizer.convert_tokens_to_ids("en_XX"),)
    assert (form.closing, form.blank, form.repeats_context) == ((), "<mask>", True)
    config = BartConfig(vocab_size=len(byte_bpe), decoder_start_token_id=2, **SIZES)
    bart = BartForConditionalGeneration(config)
    assert infilling_of(bart, byte_bpe).opening == (2, byte_bpe.bos_token_id)
    without = copy.deepcopy(byte_bpe)
    without.mask_token = None
    with pytest.raises(PretrainedError, match="must be a fast tokenizer with a mask token"):
        infilling_of(bart, without)
    bare = copy.deepcopy(byte_bpe)
    bare.backend_tokenizer.post_processor = ByteLevel(trim_offsets=False)
    message = "in a sentence that ends in </s>, which its tokenizer does not put behind a text"
    with pytest.raises(PretrainedError, match=message):
        infilling_of(bart, bare)


def test_mt5s_sentinels_are_words_of_its_vocabulary() -> None:
    pieces = ["<pad>", "</s>", "<unk>", "▁", "▁a", "▁<extra_id_1>", "▁<extra_id_0>"]
    tokenizer = T5Tokenizer(vocab=[(piece, 0.0) for piece in pieces], extra_ids=0)
    config = MT5Config(
        vocab_size=7, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    form = infilling_of(MT5ForConditionalGeneration(config), tokenizer)
    assert (form.blank, form.blank_id) == (" <extra_id_0>", 6)
    assert (form.opening, form.closing) == ((0, 6), (5,))
    config.decoder_start_token_id = None
    with pytest.raises(PretrainedError, match="decoder's start token"):
        infilling_of(MT5ForConditionalGeneration(config), tokenizer)


def test_byt5s_sentinels_are_the_last_bytes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes: dict[str, int] = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    config = T5Config(vocab_size=384, **sizes, decoder_start_token_id=0, tie_word_embeddings=False)
    model = T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    ByT5Tokenizer().save_pretrained(tmp_path)

    def ids(text: str) -> list[int]:
        return [byte + 3 for byte in text.encode()]

    texts = {  # what is before and behind the blank, whose space the answer brings along
        MASKED: ("a cat is", " than a dog ."),
        Record("2", "[MASK] is red", ("dog", "größer"), 1): ("", " is red"),
        Record("3", "which is larger ?", ("a dog", "the cat"), 0): ("which is larger ?", ""),
    }
    scorer = load(ModelSettings(str(tmp_path)), "mc_mlm")
    scores = answers(scorer.choice_scores(), *texts)
    for row, (record, (prefix, suffix)) in enumerate(texts.items()):
        source = torch.tensor([[*ids(prefix), 258, *ids(suffix), 1]])
        for column, choice in enumerate(record.choices):
            answer_ids = [*ids(f" {choice}" if prefix else choice), 257]
            decoder_ids = torch.tensor([[0, 258, *answer_ids[:-1]]])
            with torch.no_grad():
                logits = model(input_ids=source, decoder_input_ids=decoder_ids).logits[0, 1:]
            logs = logits.double().log_softmax(dim=-1)
            expected = sum(float(logs[i, token]) for i, token in enumerate(answer_ids))
            assert float(scores[row, column]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_letters_have_the_scores_of_a_loop_over_the_raw_model(
    family: str, seq2seq: Checkpoint
) -> None:
    folder = seq2seq(family)
    short = {"choice": "{label} {text}", "mc_qa": "{question} {choices}", "chat_mc_mlm": ""}
    templates = Templates(mc_mlm="", minimal_pair="", chat_mc_qa="", **short)
    question = Record("1", "is it red ?", ("dog", "cat"), 0)
    predictions = Predictions("mine", [question], [[0.0, 0.0]])
    scorer = load(ModelSettings(str(folder)), "mc_mlm")
    trainer = TrainerSettings(accelerator="cpu", progress_bar=False)
    letters = ask_letters(scorer, predictions, "cyclic", Prompts(templates, "mc_qa"), trainer)
    for row, texts in zip(letters.labels[0], (("dog", "cat"), ("cat", "dog")), strict=True):
        stem = f"is it red ? A {texts[0]}\nB {texts[1]} [MASK]"
        expected = [sum(by_hand(folder, Record("1", stem, (), 0), label)) for label in "AB"]
        assert row == pytest.approx(expected, abs=1e-4)
