"""Of which type a folder, a name or a model in memory is: one table of answers and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_file

from probelight.io.errors import ProbelightError, UsageError
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import CheckpointRef
from probelight.models.chosen_models import with_model_type
from probelight.models.registry import (
    AUTO,
    MODEL_TYPES,
    TRANSFORMER,
    ModelSettings,
    detected_type,
    lacks_word_head,
    saved_model_type,
)
from probelight.training.modules import check_questions

MASKED, ENCODER = "masked language model", "encoder"
CAUSAL, SEQ2SEQ = "causal language model", "encoder-decoder language model"
TYPES = {MASKED: TRANSFORMER, ENCODER: TRANSFORMER, CAUSAL: "causal", SEQ2SEQ: "seq2seq"}
HEADLESS = "has no language-model or multiple-choice head; give a class whose name ends in one of"
BOTH, OTHER_TASK = "both to be a causal model and to fill masks", "trained for a task other than"
NO_MODEL = "is not a kind of language model that Probelight can load"
SMALL = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}

# A class of transformers, settings of it, its type as it is called or the refusal's words, and
# those of the same model in memory where it has no head there.
CLASSES: list[tuple[str, dict[str, Any], str, str]] = [
    ("BertForMaskedLM", {}, MASKED, ""),
    ("BertForPreTraining", {}, MASKED, ""),
    ("BertForMultipleChoice", {}, ENCODER, ""),
    ("BertModel", {}, ENCODER, HEADLESS),
    ("BertForSequenceClassification", {}, ENCODER, HEADLESS),
    ("BertLMHeadModel", {"is_decoder": True}, CAUSAL, ""),
    ("BertLMHeadModel", {}, BOTH, ""),
    ("BertForMaskedLM", {"is_decoder": True}, "fills masks, but its config makes it a causal", ""),
    ("BertGenerationDecoder", {}, CAUSAL, HEADLESS),  # refused by what it does, when it is loaded
    ("RobertaForMaskedLM", {}, MASKED, ""),
    ("RobertaForCausalLM", {"is_decoder": True}, CAUSAL, ""),
    ("RobertaForCausalLM", {}, BOTH, ""),
    ("ElectraForMaskedLM", {}, MASKED, ""),
    ("XLMWithLMHeadModel", {}, MASKED, ""),
    ("XLMWithLMHeadModel", {"causal": True}, BOTH, ""),
    ("XLNetLMHeadModel", {"d_head": 8}, BOTH, ""),
    ("GPT2LMHeadModel", {}, CAUSAL, ""),
    ("GPT2Model", {}, CAUSAL, HEADLESS),
    ("GPT2ForSequenceClassification", {}, OTHER_TASK, HEADLESS),
    ("LlamaForCausalLM", {}, CAUSAL, ""),
    ("LlamaModel", {}, CAUSAL, HEADLESS),
    ("GemmaForCausalLM", {"use_bidirectional_attention": True}, NO_MODEL, ""),
    ("MambaForCausalLM", {}, CAUSAL, ""),
    ("T5ForConditionalGeneration", {}, SEQ2SEQ, ""),
    ("T5Model", {}, SEQ2SEQ, HEADLESS),
    ("T5ForQuestionAnswering", {}, OTHER_TASK, HEADLESS),
    ("T5EncoderModel", {"is_encoder_decoder": False}, "an encoder alone predicts", HEADLESS),
    ("BartForConditionalGeneration", {}, SEQ2SEQ, ""),
    ("BartModel", {}, SEQ2SEQ, HEADLESS),
    ("BartForCausalLM", {}, CAUSAL, ""),
    ("SwitchTransformersForConditionalGeneration", {}, NO_MODEL, ""),
    ("MarianMTModel", {"pad_token_id": 0}, NO_MODEL, HEADLESS),
    ("ViTForImageClassification", {}, NO_MODEL, HEADLESS),
]


def tiny(class_name: str, **options: Any) -> Any:
    model_class = getattr(transformers, class_name)
    return model_class(model_class.config_class(**{**SMALL, **options}))


def answer(model: Any) -> str:
    """What the detector calls a model, or the words of its refusal."""
    try:
        kind, line = detected_type(model)
    except ProbelightError as error:
        return str(error)
    title = line.partition(": ")[2].partition(" (")[0]
    assert kind == TYPES[title]
    return title


@pytest.mark.parametrize(
    ("class_name", "options", "expected", "in_memory"),
    CLASSES,
    ids=[" ".join([name, *options]) for name, options, _, _ in CLASSES],
)
def test_a_class_is_of_one_type_in_a_folder_and_in_memory(
    class_name: str, options: dict[str, Any], expected: str, in_memory: str, tmp_path: Path
) -> None:
    model, folder = tiny(class_name, **options), CheckpointRef(str(tmp_path / "gpt2-bert-t5"))
    model.save_pretrained(folder.name)  # whose name says nothing
    on_disk = answer(folder)
    assert expected in on_disk
    assert (in_memory or expected) in answer(model)
    if on_disk in TYPES:
        assert saved_model_type(folder) == TYPES[on_disk]
        line = f"{folder}: {on_disk} (architectures {class_name})"
        assert detected_type(folder) == (TYPES[on_disk], line)
    elif NO_MODEL not in on_disk and not in_memory:
        assert "to use it anyway, give --model.kind" in on_disk


def test_a_class_of_ones_own_is_of_the_type_that_its_name_says() -> None:
    class OwnConfig(transformers.GPT2Config):  # type: ignore[misc]
        model_type = "own"

    class OwnForCausalLM(transformers.GPT2LMHeadModel):  # type: ignore[misc]
        config_class = OwnConfig

    assert answer(OwnForCausalLM(OwnConfig(**SMALL))) == CAUSAL


ENCODERS_ALONE = [
    ("BertModel", {}, True),
    ("BertForSequenceClassification", {}, True),
    ("BertForMultipleChoice", {}, True),
    ("RobertaModel", {}, True),
    ("DistilBertModel", {"dim": 16, "n_heads": 2, "hidden_dim": 16}, True),
    ("ElectraForPreTraining", {"embedding_size": 16}, True),  # it tells replaced words
    ("ElectraForMaskedLM", {"embedding_size": 16}, False),
    ("DebertaV2ForMaskedLM", {"legacy": False}, False),
    ("BertForMaskedLM", {}, False),
    ("BertForPreTraining", {}, False),
    ("XLMWithLMHeadModel", {}, False),
]


@pytest.mark.parametrize(
    ("class_name", "options", "is_alone"), ENCODERS_ALONE, ids=[n for n, _, _ in ENCODERS_ALONE]
)
def test_an_encoder_without_a_head_over_words_is_known_by_its_class_or_its_weights(
    class_name: str, options: dict[str, Any], is_alone: bool, tmp_path: Path
) -> None:
    for is_named in (True, False):  # some configs name no class
        folder = tmp_path / f"named-{is_named}"
        tiny(class_name, **options).save_pretrained(folder)
        path = folder / "config.json"
        config = json.loads(path.read_text())
        if not is_named:
            path.write_text(json.dumps({**config, "architectures": None}))
        for random_weights in (False, True):  # a control of what its model is
            model = ModelSettings(str(folder), kind=TRANSFORMER, random_weights=random_weights)
            assert lacks_word_head(model) is is_alone
        (folder / "model.safetensors").unlink()
        lacks_word_head.cache_clear()
        # A file of another form is not looked into: its class must say that it is alone.
        says_so = is_named and class_name.endswith("Model") and "LMHead" not in class_name
        assert lacks_word_head(ModelSettings(str(folder), kind=TRANSFORMER)) is says_so
    assert not lacks_word_head(ModelSettings("anything", kind="causal"))


def written(folder: Path, **texts: str) -> Path:
    """A folder with files, by their names without their endings."""
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
    return folder


def config_of(family: str, *architectures: str) -> str:
    return json.dumps({"model_type": family, "architectures": architectures or None})


def adapter(folder: Path, base: str) -> Path:
    settings = {"peft_type": "LORA", "base_model_name_or_path": base, "revision": None}
    save_file({"a": torch.zeros(1)}, written(folder) / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    return folder


def adapter_of(path: Path, class_name: str) -> Path:
    tiny(class_name).save_pretrained(path / "base")
    return adapter(path / "adapter", str(path / "base"))


def head_of(path: Path, kind: str, *config: str) -> Path:
    saved = {"format": 1, "head": "likelihood", "kind": kind}
    return written(path / "model", config=config_of(*config), choice_head=json.dumps(saved))


def file(path: Path, name: str) -> Path:
    (path / name).write_text("cat 0.1 0.2\n")
    return path / name


# Of a folder, a file or a name: the type as it is called, or the refusal's words.
FOLDERS: dict[str, tuple[Callable[[Path], Path | str], str]] = {
    "a bundled model": (lambda _: "bookshelf-lm", MASKED),
    "a config of no class": (lambda p: written(p / "m", config=config_of("roberta")), ENCODER),
    "a decoder of no class": (lambda p: written(p / "m", config=config_of("llama")), CAUSAL),
    "an adapter": (lambda p: adapter_of(p, "BertForMaskedLM"), MASKED),
    "a decoder's adapter": (lambda p: adapter_of(p, "GPT2LMHeadModel"), CAUSAL),
    "an adapter of nothing": (lambda p: adapter(p / "a", ""), "names no model; give MODEL+"),
    "an adapter alone": (lambda p: adapter(p / "a", "/no/such"), "/no/such, which does not exist"),
    "a trained encoder": (lambda p: head_of(p, "transformer", "bert", "BertModel"), ENCODER),
    "a trained decoder": (lambda p: head_of(p, "causal", "gpt2", "GPT2LMHeadModel"), CAUSAL),
    "a trained baseline": (
        lambda p: written(p / "m", word_module=json.dumps({"format": 1, "kind": "esim"})),
        "has a trained baseline (kind esim), which works only as --original.checkpoint; "
        "--models esim trains a new one",
    ),
    "an empty folder": (lambda p: written(p / "m"), "has no config.json: it is not a model's"),
    "ELMo": (lambda p: written(p / "m", options="{}"), "has no config.json: it is not a model's"),
    "a run": (lambda p: written(p / "checkpoints" / "best").parents[1], "it is a run's folder"),
    "GGUF": (lambda p: file(p, "model.gguf"), "cannot load the GGUF file of file "),
    "word vectors": (lambda p: file(p, "glove.txt"), "is a file; give the folder with its"),
    "a folder that is missing": (lambda p: p / "none", "there is no folder"),
    "a name": (lambda _: "no/such", "no folder 'no/such', and the Hub cannot be reached"),
}


@pytest.mark.parametrize(("make", "expected"), FOLDERS.values(), ids=FOLDERS.keys())
def test_a_folder_without_a_model_of_transformers_is_known_too(
    make: Callable[[Path], Path | str], expected: str, tmp_path: Path
) -> None:
    ref = CheckpointRef(str(make(tmp_path)))
    called = answer(ref)
    assert expected in called
    if called in TYPES:
        assert saved_model_type(ref) == TYPES[called]


def test_the_type_that_a_folder_was_saved_with_is_written_in_it(tmp_path: Path) -> None:
    assert saved_model_type(CheckpointRef(str(head_of(tmp_path, "seq2seq", "bert")))) == "seq2seq"
    unknown = CheckpointRef(str(head_of(tmp_path / "unknown", "magic", "bert")))
    with pytest.raises(PretrainedError, match=r"choice_head.json: there is no model kind 'magic'"):
        saved_model_type(unknown)
    baseline = FOLDERS["a trained baseline"][0](tmp_path / "baseline")
    assert saved_model_type(CheckpointRef(str(baseline))) == "esim"
    decoder = written(tmp_path / "decoder", config=config_of("gpt2", "GPT2LMHeadModel"))
    error = r"kind causal and the model.name_or_path that it was trained"
    with pytest.raises(UsageError, match=error):
        check_questions(ModelSettings(kind="transformer"), CheckpointRef(str(decoder)))


@pytest.mark.parametrize(
    ("config", "kind", "error"),
    [
        (("gpt2", "GPT2LMHeadModel"), TRANSFORMER, f"a {CAUSAL}.*; give model.kind causal$"),
        (("t5",), "causal", f"an {SEQ2SEQ}.*; give model.kind seq2seq$"),
        (("bert", "BertForMaskedLM"), "seq2seq", f"a {MASKED}.*; give model.kind transformer$"),
        (("vit",), TRANSFORMER, NO_MODEL.removeprefix("is ")),
    ],
)
def test_a_folder_of_another_type_than_the_given_one_is_refused_by_its_config(
    config: tuple[str, ...], kind: str, error: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "model", config=config_of(*config))  # there are no weights to read
    with pytest.raises(PretrainedError, match=rf"{folder}: \w+ \(\w+\) is {error}"):
        with_model_type(ModelSettings(str(folder), kind=kind))


def test_auto_and_the_type_by_name_are_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(written(tmp_path / "m", config=config_of("bert", "BertForMaskedLM")))
    auto = with_model_type(ModelSettings(folder, kind=AUTO))
    assert auto.config() == ModelSettings(folder, kind=TRANSFORMER).config()
    assert capsys.readouterr().out == f"{folder}: {MASKED} (architectures BertForMaskedLM)\n"
    assert AUTO not in MODEL_TYPES
    with pytest.raises(AssertionError):
        ModelSettings(folder, kind=AUTO).config()


def test_the_usual_type_is_found_without_importing_anything_heavy(tmp_path: Path) -> None:
    folder = str(written(tmp_path / "m", config=config_of("bert", "BertForMaskedLM")))
    code = f"""
import sys, probelight.training.modules
from probelight.models.chosen_models import with_model_type
from probelight.models.registry import AUTO, DEFAULT_MODEL, ModelSettings
with_model_type(ModelSettings({folder!r}, kind=AUTO))
with_model_type(DEFAULT_MODEL)
sys.exit(bool({{"torch", "transformers", "pytorch_lightning"}} & sys.modules.keys()))
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
