"""Whether a model answers the same if it is asked in another way.

By the rule that scores the choices, for a letter and in each order of the choices, in phrasings.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any

import pandas as pd

from probelight.io.escaping import visible
from probelight.metrics.knowledge import CLASSES
from probelight.metrics.scoring_rules import DEBIASED, LETTER, RULES
from probelight.reports import table as kit
from probelight.reports.numbers import ABSENT, BY_GROUPS, INTERVAL, VERDICTS, listed, verdict_of
from probelight.reports.table import ACCURACY, SIZE, Table
from probelight.reports.zero_shot.scores import of_entries, zero_shot_rows, zero_shots
from probelight.results.frames import results_frame, with_columns
from probelight.results.load import RunSet, UnreadableResultError
from probelight.results.predictions import PREDICTIONS, read_item_lines

OWN_SCORE = "own score"  # what the accuracies of all other tables go by
ORDER = [OWN_SCORE, *RULES, DEBIASED]
MOST_EXAMPLES = 20
MOST_VERDICTS = 6  # sets on which they differ that are named
MODEL_ON_SET = ["model", "probe", "split"]
SHARES = {"class_share": "share", "class_share_guessed": "guessed"}
CLASS_NOTE = (
    "HighlyKnown: right in all phrasings. MaybeKnown: right in some. WeaklyKnown: right in none, "
    "but in some the right answer is more probable than an even guess. Unknown: the rest (after "
    "Gekhman et al. 2024). With two choices no item is WeaklyKnown, with one phrasing none is "
    "MaybeKnown. Guesser: the shares that the same answers would give if the right choice of each "
    "item were drawn at random."
)


@lru_cache(maxsize=2)
def rule_rows(results: RunSet) -> pd.DataFrame:
    """Return a row for each rule of each model and set, with its verdict against chance."""
    rows = zero_shot_rows(results)
    rows = of_entries(results, rows[rows.is_whole].rename(columns={"scoring": "rule"}))
    rows = rows.replace({"rule": {"": OWN_SCORE}})
    flipped = rows[rows.metric == "flipped_share"]
    accuracies = rows[(rows.metric == "accuracy") & rows.path.isin(flipped.path)]
    keys = ["path", *MODEL_ON_SET]
    accuracies = with_columns(accuracies, flipped, {"value": "flipped_share"}, [*keys, "rule"])
    levels = {"floor": "chance", "majority_accuracy": "majority"}
    accuracies = with_columns(accuracies, zero_shots(results), levels, keys)
    label_rows = rows[(rows.metric == "majority_accuracy") & (rows.rule == LETTER)]
    accuracies = with_columns(accuracies, label_rows, {"value": "label_majority"}, [*keys, "rule"])
    majorities = accuracies[["majority", "label_majority"]].astype(float)
    accuracies["majority"] = majorities.max(axis="columns")
    accuracies["_order"] = accuracies.rule.map(ORDER.index)
    accuracies["verdict"] = [
        verdict_of((row.ci_low, row.ci_high), row.chance, row.majority)
        for row in accuracies.itertuples()
    ]
    return accuracies.rename(columns={"value": "accuracy"})


def rules_table(results: RunSet) -> Table | None:
    """Make the table of accuracy by rule: rows are probes and models, columns are rules."""
    rows = rule_rows(results)
    by_rule = [kit.accuracy("accuracy %"), kit.share("flipped %", "flipped_share")]
    return kit.table(
        "zero_shot_rules",
        "Do the answers depend on how choices are scored?",
        f"The same items, answered by several scoring rules. {INTERVAL} ({BY_GROUPS}). Flipped: "
        "items whose answer differs from that of the model's own score, which all other tables "
        "use. sum: the log-likelihood of the choice; acc of lm-evaluation-harness. mean_token: the "
        "sum divided by the number of tokens. mean_char: the sum divided by the number of "
        "characters; acc_norm of lm-evaluation-harness. pmi: the sum minus the log-likelihood of "
        "the choice after a stem that only names the kind of answer (Holtzman et al. 2021). "
        "calibrated: the probability divided by its mean over stems without content (Zhao et al. "
        "2021). letter: the log-probability of the choice's letter, after a prompt that lists all "
        "choices (Robinson et al. 2023). A rule that always equals one before it is not listed. "
        "Choose a rule before you see these results, or on other items. "
        f"{verdict_sentence(results)}".strip(),
        rows.sort_values(["probe", "split", "model", "_order"]),
        [
            kit.text("probe", "probe", "split"),
            kit.text("model", "model"),
            kit.share("chance", "chance"),
        ],
        rows="probe split model",
        across="rule",
        each=lambda rule: by_rule[:1] if rule == OWN_SCORE else by_rule,
        values=ORDER,
        csv=f"model probe split rule {ACCURACY} {SIZE} chance flipped_share",
    )


def verdict_sentence(results: RunSet) -> str:
    """Return a sentence about the sets on which a rule's verdict is not that of the own score."""
    sentences = []
    for (probe, split, model), rows in rule_rows(results).groupby(
        ["probe", "split", "model"], sort=False
    ):
        verdicts = dict(zip(rows.rule, rows.verdict, strict=True))
        own_verdict = verdicts.pop(OWN_SCORE)
        rules_by_verdict = {
            verdict: [r for r in verdicts if verdicts[r] == verdict]
            for verdict in verdicts.values()
        }
        rules_by_verdict.pop(own_verdict, None)
        if rules_by_verdict:
            probe_split = " ".join(filter(None, (probe, split)))
            clauses = [f"{VERDICTS[own_verdict]} with its own score"]
            clauses += [f"{VERDICTS[v]} with {listed(r)}" for v, r in rules_by_verdict.items()]
            sentences.append(f"{model} on {probe_split}: {', '.join(clauses)}")
    if not sentences:
        return ""
    num_more = len(sentences) - MOST_VERDICTS
    more = f"; and {num_more} more" if num_more > 0 else ""
    return f"Rules disagree about chance: {'; '.join(sentences[:MOST_VERDICTS])}{more}."


def letters_table(results: RunSet) -> Table | None:
    """Make the table of answers by letter over the orders of the choices."""
    rows = zero_shot_rows(results)
    rows = of_entries(results, rows[rows.is_whole & rows.scoring.isin([LETTER, DEBIASED])])
    names = {
        (LETTER, "accuracy"): "file_order",
        (LETTER, "mean_order_accuracy"): "mean_order",
        (LETTER, "all_orders_accuracy"): "all_orders",
        (DEBIASED, "accuracy"): "debiased",
        (LETTER, "unstable_share"): "unstable",
        (LETTER, "label_bias"): "label_bias",
    }
    records: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows.to_dict("records"):
        if name := names.get((row["scoring"], row["metric"])):
            key = tuple(row[column] for column in ("path", *MODEL_ON_SET))
            record = records.setdefault(key, {c: row[c] for c in (*MODEL_ON_SET, "run")})
            record[name] = row["value"]
            record |= {f"{name}_{end}": row[end] for end in ("ci_low", "ci_high")}
            if name == "file_order":
                record |= {size: row[size] for size in SIZE.split()}
    titles = {
        "file_order": "file's order %",
        "mean_order": "mean over orders %",
        "all_orders": "right in all orders %",
        "debiased": "debiased %",
        "unstable": "unstable %",
    }
    measured = [name for name in titles if any(name in record for record in records.values())]
    ends = " ".join(f"{name} {name}_ci_low {name}_ci_high" for name in measured)
    return kit.table(
        "zero_shot_letters",
        "Asked for a letter: does the order of the choices matter?",
        "File's order: accuracy with the choices in the order of the file. Mean over orders: over "
        "all orders that were asked. Right in all orders: items with the right answer in every "
        "order. Debiased: accuracy by each choice's mean log-probability among the labels, over "
        "orders, so that a preference for a label cancels. Unstable: items whose answer changes "
        "with the order. Label bias: how far the labels' shares among all answers are from equal "
        "(total variation distance; 0 is no preference; Zheng et al. 2024; Pezeshkpour and "
        f"Hruschka 2024). {INTERVAL} ({BY_GROUPS}).",
        list(records.values()),
        [
            kit.text("probe", "probe", "split"),
            kit.text("model", "model"),
            *(kit.accuracy(label, name) for name, label in titles.items()),
            kit.share("label bias %", "label_bias"),
            kit.size(),
        ],
        csv=f"model probe split {ends} label_bias {SIZE}",
    )


def flips_table(results: RunSet) -> Table | None:
    """Make the table of how many items two rules answer differently."""
    records: list[dict[str, Any]] = []
    for (model, probe, split), items in answers(results)[0].groupby(MODEL_ON_SET, sort=False):
        identity = {"model": model, "probe": probe, "_split": split, "_runs": items._runs.iloc[0]}
        for rule, other_rule in combinations(items.best.iloc[0], 2):
            flips = sum(best[rule] != best[other_rule] for best in items.best)
            counts = {"num_flipped": flips, "num_items": len(items)}
            records.append({**identity, **counts, "rule": rule, "other_rule": other_rule})
    return kit.table(
        "zero_shot_flips",
        "Items whose answer depends on the rule",
        "How many of the n items get a different answer, right or wrong, by the rule of the row "
        "and by the rule of the column.",
        records,
        [
            kit.text("probe", "probe", "_split"),
            kit.text("model", "model"),
            kit.whole("n", "num_items"),
            kit.text("rule", "rule"),
        ],
        rows="probe _split model rule",
        across="other_rule",
        each=lambda rule: [kit.whole(rule, "num_flipped")],
        values=[rule for rule in ORDER if rule in {row["other_rule"] for row in records}],
    )


def flipped_items_table(results: RunSet) -> Table | None:
    """Make the table of the first items that two rules answer differently."""
    items = answers(results)[0]
    flipped = items[items.best.map(lambda best: len({*best.values()}) > 1).astype(bool)]
    num_each = max(1, MOST_EXAMPLES // max(1, flipped.groupby(MODEL_ON_SET).ngroups))
    examples = flipped.groupby(MODEL_ON_SET, sort=False).head(num_each).head(MOST_EXAMPLES)
    rules = [rule for rule in ORDER if any(rule in best for best in examples.best)]
    names = {rule: rule.replace(" ", "_") for rule in rules}
    records = examples.to_dict("records")
    for record in records:
        choices, answer = record["choices"], record["answer"]
        record["right_answer"] = choices[answer]
        for rule, name in names.items():
            best = record["best"].get(rule, ())
            record[name] = ", ".join(choices[i] for i in best) or ABSENT
            record[f"_{name}"] = "right" if best == (answer,) else ""
    return kit.table(
        "zero_shot_flipped_items",
        "Some items whose answer depends on the rule",
        f"The first items, at most {MOST_EXAMPLES} over all probes and models. predictions.jsonl "
        "of each run has all items, with the scores of every rule.",
        records,
        [
            kit.text("probe", "probe", "model"),
            kit.prose("question", "question"),
            kit.text("right answer", "right_answer"),
            *(kit.text(rule, name, f"_{name}") for rule, name in names.items()),
        ],
        csv=f"model probe id question right_answer {' '.join(names.values())}",
    )


def unread_runs(results: RunSet) -> str:
    """Return a sentence about each run whose answers by rule cannot be read."""
    return " ".join(answers(results)[1])


@lru_cache(maxsize=2)
def answers(results: RunSet) -> tuple[pd.DataFrame, list[str]]:
    """Return every item with its `best` choices by rule, and sentences about damaged files."""
    items: list[dict[str, Any]] = []
    damaged = []
    flipped = zero_shot_rows(results).query("metric == 'flipped_share'")
    for entry in zero_shots(results).itertuples():
        if entry.path not in {*flipped.path}:
            continue
        try:
            items += _items(results, entry)
        except UnreadableResultError as error:
            damaged.append(f"Left out of the tables by rule: {visible(results.below(str(error)))}.")
    columns = "best choices answer id question scores by_rule _runs".split()
    return pd.DataFrame(items, columns=[*MODEL_ON_SET, *columns]), damaged


def _items(results: RunSet, entry: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for number, line in enumerate(read_item_lines(results, results.by_path[entry.path]), start=1):
        source = f"{entry.path}/{PREDICTIONS}:{number}"
        if line.best is None or line.by_rule is None:
            raise UnreadableResultError(f"{source}: `best` or `by_rule` is missing")
        best = {OWN_SCORE: line.best, **{rule: s.best for rule, s in line.by_rule.items()}}
        indices = range(len(line.choices))
        if any(choice not in indices for choices in best.values() for choice in choices):
            raise UnreadableResultError(f"{source}: a rule's best choice does not exist")
        if items and items[0]["best"].keys() != best.keys():
            raise UnreadableResultError(f"{source}: its rules differ from those of the first line")
        identity = {name: getattr(entry, name) for name in MODEL_ON_SET}
        items.append({**identity, **vars(line), "best": best, "_runs": entry.run})
    return items


def phrasings_table(results: RunSet) -> Table | None:
    """Make the table of accuracy and consistency over phrasings, and of knowledge classes."""
    rows = results_frame(results).query("protocol == 'zero_shot'")
    rows = rows[rows.run.isin(rows[rows.metric == "consistency"].run)]
    records = []
    for _, run_rows in rows.groupby("path", sort=False):
        row_by_metric = {row.metric: row for row in run_rows.itertuples() if not row.subset}
        consistency = row_by_metric["consistency"]
        record: dict[str, Any] = {
            "probe": consistency.probe,
            "split": consistency.split,
            "model": consistency.model,
            "phrasings": (run_rows.subset_kind == "phrasing").sum(),
            "num_items": consistency.num_items,
            "num_groups": consistency.num_groups,
            "consistency": consistency.value,
            "consistency_ci_low": consistency.ci_low,
            "consistency_ci_high": consistency.ci_high,
            **{n: row_by_metric[f"phrasings_{n}"].value for n in ("mean", "lowest", "best")},
            "_runs": consistency.run,
        }
        for row in run_rows[run_rows.metric.isin(SHARES)].itertuples():
            record[f"{row.part['name']}_{SHARES[row.metric]}"] = row.value
        records.append(record)
    class_columns = [
        column
        for name in CLASSES
        for column in (
            kit.share("items %", f"{name}_share", group=name),
            kit.share("guesser %", f"{name}_guessed", group=name),
        )
    ]
    return kit.table(
        "phrasings",
        "Does the model still know it in other words?",
        "Accuracy: over all phrasings of each item, including its own. Consistency: the share of "
        f"pairs of phrasings with the same answer (Elazar et al. 2021). {CLASS_NOTE}",
        records,
        [
            kit.text("probe", "probe", "split"),
            kit.text("model", "model"),
            kit.whole("phrasings", "phrasings"),
            kit.size(),
            kit.share("mean", "mean", group="accuracy %"),
            kit.share("lowest", "lowest", group="accuracy %"),
            kit.share("best", "best", group="accuracy %"),
            kit.accuracy("consistency %", "consistency"),
            *class_columns,
        ],
    )
