"""Samples of lm-evaluation-harness, as `--log_samples` writes them for a multiple-choice task.

Each model has a folder with samples_TASK_DATE.jsonl (since 0.4.3) and results_DATE.json, which
names the model. Each line is an object:

    {"doc_id": 0, "doc": {...}, "target": "1", "arguments": {"gen_args_0": {"arg_0": "A cat is a",
     "arg_1": " plant"}, "gen_args_1": {...}}, "filtered_resps": [["-4.1", "False"], ...], "acc": 1}

Numbers may be texts or numbers, arguments lists in place of objects. A task without contexts has
whole sentences; one whose continuations are all the same has its choices in its contexts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from probelight.io.documents import json_object, kind_of, read_json
from probelight.io.errors import RecordError, UsageError
from probelight.io.files import LARGE, DataFile, content_sha256, item_lines
from probelight.results.importers.answers import Answer, Imported, at, plain, score_of

_DATE = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[.\d]*"
_NAME = re.compile(rf"samples_(?P<task>.+)_(?P<date>{_DATE})\.jsonl(\.gz)?")
_LAST_NUMBER = re.compile(r"\d{1,9}$", re.ASCII)
_FILTERS = "; if the task has several filters, keep the lines of one `filter`"
_OLD = "as versions before 0.4.3 wrote; evaluate again with a later one"


def read(path: Path) -> Imported:
    """Read one file of samples.

    Raises:
        UsageError: If its name is not that of such a file.
        RecordError: If a line is not of a multiple-choice task.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise UsageError(f"{path}: {_misnamed(path)}")
    answers, wheres, alone = [], dict[str, str](), 0
    for where, text in item_lines(path, limit=LARGE):
        with at(where):
            hint = f"; this looks like a JSON array, {_OLD}" if text.startswith("[") else ""
            sample = json_object(text, hint=hint)
            answer = _answer(sample, where)
            name = sample.get("doc_id", where)
            if (first := wheres.setdefault(str(name), where)) != where:
                raise RecordError(f"the item with `doc_id` {name} is at {first} too{_FILTERS}")
        answers.append(answer)
        alone += "acc_mutual_info" in sample
    if not answers:
        raise RecordError(f"{path}:1: the file is empty; it has no samples")
    results = path.with_name(f"results_{match['date']}.json")  # of the same evaluation
    names = read_json(results, json.loads) if results.is_file() else None
    model = names.get("model_name") if isinstance(names, dict) else None
    return Imported(
        (DataFile(str(path), content_sha256(path, LARGE), len(answers)),),
        tuple(answers),
        match["task"],
        Path(model).name if isinstance(model, str) else "",
        (f"{alone} items also have scores of choices without context; these are ignored",)
        if alone
        else (),
    )


def _misnamed(path: Path) -> str:
    needed = "give samples_TASK_DATE.jsonl, which --log_samples (since 0.4.3) writes"
    if path.is_dir():
        return f"a folder; {needed} into it"
    if path.name.startswith("results"):
        return f"the accuracies of tasks, without the scores of items; {needed} next to it"
    if path.name.endswith("_write_out_info.json"):
        return f"written by --write_out of lm-evaluation-harness 0.3, without scores; {needed}"
    return f"its name is not that of a file of samples; {needed}"


def _answer(sample: Mapping[str, Any], where: str) -> Answer:
    for key in ("doc", "arguments", "filtered_resps"):
        if key not in sample:
            raise RecordError(f"`{key}` is missing; this is not a sample of lm-evaluation-harness")
    arguments = []
    for pair in map(_listed, _listed(sample["arguments"])):
        if len(pair) < 2 or not all(isinstance(text, str) for text in pair[:2]):
            raise RecordError(
                "the arguments are not a context with a continuation: the task generates text, or "
                "has no choices; only multiple-choice tasks can be imported"
            )
        arguments.append((pair[0], pair[1]))
    scores = []
    for response in _listed(sample["filtered_resps"]):
        if not isinstance(response, list) or len(response) != 2:
            raise RecordError(
                f"a response is {kind_of(response)}; a log-likelihood and whether it is greedy are "
                "needed, as in a multiple-choice task"
            )
        scores.append(score_of(response[0], "a log-likelihood"))
    if len(arguments) != len(scores):
        raise RecordError(f"{len(arguments)} arguments, but {len(scores)} responses")
    if len(arguments) < 2:
        raise RecordError("fewer than two responses; a multiple-choice task has one per choice")
    half = len(arguments) // 2  # each choice is alone too, behind the others
    alone = [("", choice) for _, choice in arguments[:half]]
    if "acc_mutual_info" in sample and arguments[half:] == alone:
        arguments, scores = arguments[:half], scores[:half]
    contexts = list(dict.fromkeys(context for context, _ in arguments))
    doc = sample["doc"] if isinstance(sample["doc"], dict) else {}
    if len(contexts) == 1:
        texts, choices = contexts, [choice.strip() for _, choice in arguments]
    elif len({choice for _, choice in arguments}) == 1:
        texts, choices = [""], [f"{context}{choice}".strip() for context, choice in arguments]
    else:
        raise RecordError("both contexts and continuations differ; one of them must be the same")
    own_id, paradigm = doc.get("id"), doc.get("UID")
    return Answer(
        where=where,
        id=str(own_id) if isinstance(own_id, str | int) else "",
        texts=tuple(dict.fromkeys([*texts, *_texts(doc)])),
        choices=tuple(choices),
        scores=tuple(scores),
        gold=_gold(sample, choices, scores) if len(contexts) == 1 else None,
        paradigm=paradigm if isinstance(paradigm, str) else "",
    )


def _listed(value: object) -> list[Any]:
    """Return a list, or the values of an object in its place (gen_args_0, gen_args_1, ...).

    They are in the order of the numbers in their keys: sorted keys have gen_args_10 before
    gen_args_2, and the responses, a list, have not.
    """
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: int((_LAST_NUMBER.search(key) or "0")[0]))
        return [value[key] for key in keys]
    if not isinstance(value, list):
        raise RecordError(f"{kind_of(value)} instead of a list")
    return value


def _texts(value: object) -> list[str]:
    """Return all texts of a document, at whatever depth."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    nested = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for child in nested for text in _texts(child)]


def _gold(sample: Mapping[str, Any], choices: Sequence[str], scores: Sequence[float]) -> int | None:
    """Return the right choice: `target` is its index or text, and a text of digits may be either.

    A RecordError if it can be read as two choices, or the sample's own accuracy contradicts it.
    """
    target = str(sample.get("target", ""))
    texts = [plain(choice) for choice in choices]
    is_text = not isinstance(sample.get("target"), int) and plain(target) in texts
    indices = {texts.index(plain(target))} if is_text else set[int]()
    indices |= {index for index in range(len(choices)) if target == str(index)}
    if len(indices) > 1:
        raise RecordError(f"`target` {target!r} is both a choice and the index of another one")
    if not indices:
        return None
    gold = indices.pop()
    best = scores.index(max(scores))  # of several the first, as the harness has it
    if (acc := sample.get("acc")) in (0, 1) and acc != float(best == gold):
        raise RecordError(f"`acc` {acc:g} contradicts the scores and `target` {target!r}")
    return gold
