"""The best entries of a vocabulary, and how entries read, whatever the tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import nn
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
)

from probelight.evaluation.scorers import ask
from probelight.io.errors import RecordError
from probelight.models.masked import MaskedLM, MaskedScorer
from probelight.models.scorer import Question, Scorer, log_probabilities
from probelight.models.vocabulary import (
    best_entries,
    candidate_ranks,
    entries_of,
    read_out,
    tokenizer_of,
    word_rows,
)
from probelight.probes.record import Record
from probelight.runs.settings import TrainerSettings
from tests.fixtures.architectures import ref_of
from tests.fixtures.checkout import SMALL_DIR

QUIET = TrainerSettings(accelerator="cpu", progress_bar=False)
RECORDS = [
    Record("1", "A dog is an [MASK].", ("animal", "house", "plant"), 0),
    Record("2", "The opposite of hot is [MASK].", ("cold", "warm"), 0),
]


def test_ranks_are_those_of_the_full_models_sorted_vocabulary() -> None:
    model = AutoModelForMaskedLM.from_pretrained(SMALL_DIR, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(SMALL_DIR)
    scorer = MaskedScorer(MaskedLM(ref_of("dictionary-lm")))
    ranked = ask(scorer, candidate_ranks(scorer), {"a": RECORDS}, QUIET)["a"]
    for record, ranks in zip(ranked.records, ranked.scores, strict=True):
        inputs = tokenizer(record.stem, return_tensors="pt")
        mask = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0, 0]
        with torch.no_grad():
            logits = model(**inputs).logits[0, mask]
        order = logits.argsort(descending=True).tolist()
        ids = tokenizer.convert_tokens_to_ids(list(record.choices))
        assert ranks == [order.index(i) + 1 for i in ids]
        assert len(ranks) == len(record.choices)


def test_equal_words_share_the_better_rank_and_what_is_no_number_comes_last() -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0], [3.0, torch.nan, 1.0, 0.0]]).double()

    class Fixed(Scorer):
        mode = "told"

        def choice_scores(self) -> Question:
            return Question(cast(Any, None), lambda batch: logits)

        def vocabulary(self) -> Question:
            return self.choice_scores()

    ids = torch.tensor([[1, 2, 3], [0, 1, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    ranks = candidate_ranks(Fixed()).answer({"candidate_ids": ids, "choice_mask": mask})
    assert ranks.tolist() == [[1.0, 1.0, 3.0], [2.0, 5.0, -torch.inf]]


def test_logits_that_differ_are_log_probabilities_that_differ() -> None:
    near = torch.tensor([[-30.0, torch.nextafter(torch.tensor(-30.0), torch.tensor(0.0)), 15.0]])
    logs = log_probabilities(near)
    assert logs[0, 0] < logs[0, 1]
    torch.testing.assert_close(logs.float(), near.log_softmax(-1))


Checkpoint = Callable[..., Path]
STEM = "a cat is [MASK] than a dog ."


@pytest.fixture
def scorer(checkpoint: Checkpoint) -> MaskedScorer:
    return MaskedScorer(MaskedLM(ref_of(checkpoint())))


def test_the_best_are_the_whole_vocabularys_sorted(scorer: MaskedScorer) -> None:
    records = [Record("1", STEM, (), 0), Record("2", "the [MASK] was ready .", (), 0)]
    question = best_entries(scorer, 3, [[7, 9], [11]])
    encoded = question.encoder.encode(records)
    batch = encoded.collate([1, 0, -1])
    with torch.no_grad():
        best, logits = question.answer(batch), scorer.vocabulary().answer(batch)
    order = logits.argsort(dim=1, descending=True)[:, :3]
    assert best[:, :3].long().equal(order)
    torch.testing.assert_close(best[:, 3:6], logits.gather(1, order))
    assert best[0, 6] == logits[0, 11]  # the second record is first
    assert best[1, 6:].equal(logits[1, [7, 9]])


def test_a_word_is_its_one_entry_in_its_place(scorer: MaskedScorer) -> None:
    vocabulary = scorer.vocabulary()
    words = ["younger", "antelope", "zebra", "Younger"]
    entries = entries_of(vocabulary, [(STEM, word) for word in words])
    younger = tokenizer_of(vocabulary).convert_tokens_to_ids("younger")
    assert entries == [younger, None, None, younger]
    assert entries_of(vocabulary, [(STEM, "antelope")]) == [None]


def sentencepiece() -> PreTrainedTokenizerFast:
    pieces = ["<unk>", "▁a", "▁", "▁fish", "fish", "▁two\u2003words", "▁##x"]
    backend = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")


def test_entries_are_read_as_words_whatever_the_tokenizer(
    checkpoint: Checkpoint, byte_bpe: RobertaTokenizer
) -> None:
    piece = byte_bpe.convert_ids_to_tokens(byte_bpe("é", add_special_tokens=False)["input_ids"])[0]
    wordpiece = AutoTokenizer.from_pretrained(checkpoint())
    cases: list[tuple[Any, dict[str, str]]] = [
        (wordpiece, {piece: piece for piece in ("cat", "##lo", ",", "1", "[MASK]", "[UNK]")}),
        (byte_bpe, {"Ġolder": "older", "l": "##l", "Ġ": "Ġ", "Ċ": "Ċ", "Ā": "Ā", ",": ","}),
        (byte_bpe, {"<mask>": "<mask>", piece: piece}),
        (sentencepiece(), {"▁fish": "fish", "fish": "##fish", "▁": "▁"}),
        (sentencepiece(), {"▁two\u2003words": "▁two\\x2003words"}),
    ]
    for tokenizer, words in cases:
        entries = {tokenizer.convert_tokens_to_ids(piece): word for piece, word in words.items()}
        assert read_out(tokenizer, entries) == entries


HIDDEN = 4


class Headed:
    """What of a language model the rows are read off."""

    def __init__(self, tokenizer: RobertaTokenizer, bias: bool) -> None:
        torch.manual_seed(0)
        self.head = nn.Linear(HIDDEN, len(tokenizer), bias=bias)

    def get_output_embeddings(self) -> nn.Linear:
        return self.head


def test_a_word_has_the_row_of_its_piece_or_the_mean_of_its_pieces(
    byte_bpe: RobertaTokenizer,
) -> None:
    model: Any = Headed(byte_bpe, bias=True)
    single, several = "older", "antelopes"
    ids: dict[str, Any] = {
        word: byte_bpe(f"a {word}", add_special_tokens=False)["input_ids"][1:]
        for word in (single, several)
    }
    assert (len(ids[single]), len(ids[several]) > 1) == (1, True)
    weight, bias = word_rows(model, byte_bpe, [several, single])
    rows, biases = model.head.weight.detach(), model.head.bias.detach()
    for row, word in enumerate((several, single)):
        num = len(ids[word])
        torch.testing.assert_close(weight[row], sum(rows[i] for i in ids[word]) / num)
        torch.testing.assert_close(bias[row], sum(biases[i] for i in ids[word]) / num)
    assert not weight.requires_grad

    # Without a bias of the head it is 0, but for one behind the head.
    model = Headed(byte_bpe, bias=False)
    assert word_rows(model, byte_bpe, ["older"])[1].tolist() == [0.0]
    model.final_logits_bias = torch.arange(len(byte_bpe), dtype=torch.float32)[None]
    assert word_rows(model, byte_bpe, ["older"])[1].tolist() == ids["older"]

    def nothing(texts: list[str], **_: Any) -> dict[str, list[list[int]]]:
        return {"input_ids": [[] for _ in texts]}

    with pytest.raises(RecordError, match="the candidate 'older' has no tokens"):
        word_rows(model, nothing, ["older"])  # type: ignore[arg-type]
