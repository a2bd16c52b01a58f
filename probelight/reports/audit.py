"""Audits: what baselines score without the question, and which words give the answer away."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd

from probelight.probes.controls import CHOICE_ONLY
from probelight.reports import table as tables
from probelight.reports.numbers import BY_GROUPS, INTERVAL, percent, points
from probelight.reports.published import published
from probelight.reports.table import ACCURACY, SIZE, Table
from probelight.results.frames import results_frame, with_columns
from probelight.results.load import RunSet

LEAK = 0.15  # this far over chance, what the choices alone give away is too much
GUESSING, PARTIAL, TRAINED = "guessing", "part of the input", "question and choices"
# Types of model that see a part of the input, and whether that is the choices alone.
PARTIAL_KINDS = {"choice_only": True, "choice_to_choice": True, "vec_similarity": False}
PLACE = ["path", "split", "subset"]
SHOWN = 4  # words of either end in the table; the csv file has all
LONG = 40  # characters of an answer in the table


@lru_cache(maxsize=2)
def audit_rows(results: RunSet) -> pd.DataFrame:
    """Return the rows of the audits, with `chance` of the same part, `over_chance`, `verdict`."""
    rows = results_frame(results).query("protocol == 'audit'")
    chance = rows[rows.metric == "chance"].drop_duplicates(PLACE)
    rows = with_columns(rows, chance, {"value": "chance"}, PLACE)
    is_sure = rows.ci_low > rows.chance + LEAK
    is_over = (rows.value > rows.chance + LEAK) & (rows.ci_low > rows.chance)
    verdict = np.select([is_sure, is_over], ["gives itself away", "may give itself away"], "")
    return rows.assign(over_chance=rows.value - rows.chance, verdict=verdict)


@lru_cache(maxsize=2)
def baselines(results: RunSet) -> pd.DataFrame:
    """Return the accuracy of each baseline, as `value`, on each split of a probe.

    `group` is what it sees; `sees_choices` whether that is the choices alone; `untouched` the
    accuracy on the items without relatives in train.
    """
    rows = audit_rows(results)
    rows = rows[(rows.metric == "accuracy") & (rows.kind != "")]
    clean = rows[rows.subset_kind == "untouched"].drop_duplicates(PLACE[:2])
    names = {"value": "untouched", "ci_low": "_untouched_low", "ci_high": "_untouched_high"}
    baseline_rows = with_columns(rows[rows.subset == ""], clean, names, PLACE[:2])
    has_choices = baseline_rows.control == CHOICE_ONLY
    sees_choices = has_choices | baseline_rows.kind.map(PARTIAL_KINDS).eq(True)
    is_partial = has_choices | baseline_rows.kind.isin([*PARTIAL_KINDS])
    name = baseline_rows.model.where(~has_choices, "Choice-only, " + baseline_rows.model)
    several = baseline_rows.groupby(["probe", "model"]).path.transform("nunique") > 1
    return baseline_rows.assign(
        source="ours",
        group=np.where(is_partial, PARTIAL, TRAINED),
        model=name.where(~several, name + ", seed " + baseline_rows.seed.astype(str)),
        sees_choices=sees_choices,
        verdict=baseline_rows.verdict.where(sees_choices, ""),
    )


def audit_table(results: RunSet) -> Table | None:
    """Make the table of baselines, ours and those of Richardson & Sabharwal 2020 (table 7)."""
    ours = baselines(results).rename(columns={"value": "accuracy"}).assign(_source="")
    places = ours[["probe", "split", "chance"]].drop_duplicates(["probe", "split"])
    # A part of train is compared with the paper's numbers on test.
    places["printed_split"] = places.split.where(places.split.isin(["dev", "test"]), "test")
    printed = published().query("paper == 'Richardson & Sabharwal 2020' and metric == 'accuracy'")
    group = printed.group.map({"baseline": PARTIAL, "task_specific": TRAINED})
    printed = printed.assign(
        group=group.mask(printed.model == "random", GUESSING), model=printed.name
    ).rename(columns={"split": "printed_split", "value": "accuracy"})
    theirs = places.merge(printed.dropna(subset="group"), on=["probe", "printed_split"])
    source = theirs.split.eq(theirs.printed_split).map({True: "paper", False: "paper, test"})
    over = theirs.accuracy - theirs.chance
    table_rows = pd.concat([theirs.assign(source=source, _source=source, over_chance=over), ours])
    for name, values in (
        ("probe", places.probe.unique()),
        ("split", places.split.unique()),
        ("group", [GUESSING, PARTIAL, TRAINED]),
    ):
        table_rows[name] = pd.Categorical(table_rows[name], values)
    return tables.table(
        "audit",
        "Can the probe be answered without its question?",
        f"{INTERVAL} ({BY_GROUPS}). Paper: Richardson & Sabharwal 2020, table 7, groups 1 and 2; "
        "its vectors and encoders differ, and so do its items from those of a probe built here. A "
        "probe gives itself away if a baseline that sees only the choices is more than "
        f"{100 * LEAK:g} points above chance with its whole interval. It may give itself away if "
        "only the accuracy is that high and the interval is above chance. Without relatives in "
        "train: of the items whose group has no training item.",
        table_rows.sort_values(["probe", "split", "group"], kind="stable"),
        [
            tables.text("probe", "probe", "split"),
            tables.text("sees", "group"),
            tables.text("model", "model", "_source"),
            tables.accuracy("accuracy %"),
            tables.share("chance", "chance"),
            tables.number("above chance, points", "over_chance", points),
            tables.text("verdict", "verdict"),
            tables.accuracy(
                "without relatives in train %", "untouched _untouched_low _untouched_high"
            ),
            tables.size(),
        ],
        csv=f"probe split group model source {ACCURACY} chance over_chance verdict untouched "
        + SIZE,
    )


def _rule_rows(results: RunSet) -> pd.DataFrame:
    """Return the accuracy of simple rules, the best first on each split of a probe."""
    rows = audit_rows(results)
    rows = rows[(rows.kind == "") & (rows.metric == "accuracy") & rows.chance.notna()]
    best_first = [True, True, False]
    return rows.sort_values(["probe", "split", "over_chance"], ascending=best_first)


def rules_table(results: RunSet) -> Table | None:
    """Make the table of the accuracy of simple rules."""
    return tables.table(
        "audit_rules",
        "What simple rules give away",
        f"Accuracy of always choosing like this. {INTERVAL} ({BY_GROUPS}). A tie of n choices "
        "counts 1/n. Far below chance gives away as much as far above it. Common words are those "
        "frequent in English if `wordfreq` is installed, otherwise in the training items; of an "
        "answer with a gloss, only the names count. Words of the question are found by Snowball's "
        "English stems, which miss irregular forms. The asked word is the one in an item's notes "
        "(`surface_form`, `word`, `arguments`).",
        _rule_rows(results).rename(columns={"value": "accuracy", "scoring": "rule"}),
        [tables.text("probe", "probe"), tables.text("choose", "rule")],
        rows="probe rule",
        across="split",
        each=[
            tables.accuracy("accuracy %"),
            tables.share("chance", "chance"),
            tables.text("verdict", "verdict"),
            tables.size(),
        ],
        csv=f"probe rule split {ACCURACY} chance verdict {SIZE}",
    )


def words_table(results: RunSet) -> Table | None:
    """Make the table of words and answers that go with being right or wrong."""
    rows = audit_rows(results)
    pmi = rows[rows.metric == "pmi"].drop_duplicates(PLACE)
    words = rows[(rows.metric == "right_share") & (rows.subset_kind == "answer_part")]
    words = with_columns(words, pmi, {"value": "pmi"}, PLACE).dropna(subset=["chance", "pmi"])
    words = words.rename(columns={"value": "right_share"}).assign(
        of=[s["of"] for s in words.part], text=[s["part"] for s in words.part]
    )
    words["_text"] = [t if len(t) <= LONG else f"{t[: LONG - 1]}…" for t in words.text]
    strongest = words.sort_values("pmi", key=abs, ascending=False, kind="stable")
    strongest = strongest.groupby(["probe", "of", words.pmi > 0]).head(SHOWN)
    return tables.table(
        "audit_words",
        "Which words and answers point to the right choice",
        "Items of all splits in which some choices have the word (or are the answer) and others do "
        "not: how often the right choice has it, and how often it would by chance. "
        f"{INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}), which ignores that the strongest "
        "of many words are shown. PMI is in bits, smoothed by 10 items at chance.",
        words,
        [
            tables.text("probe", "probe"),
            tables.text("part", "of"),
            tables.text("text", "_text"),
            tables.number("PMI", "pmi", "{:+.2f}".format),
            tables.accuracy("right %", "right_share ci_low ci_high"),
            tables.number("by chance %", "chance", percent),
            tables.size(),
        ],
        visible=strongest.sort_index(),
        csv=f"probe of text pmi right_share ci_low ci_high chance {SIZE}",
    )


def audit_summary(results: RunSet) -> str:
    """Return which probes the choices alone or a simple rule give away, and which not."""
    baseline_rows = baselines(results)
    blind = baseline_rows[baseline_rows.sees_choices]
    sentences = []
    for frame, is_rule in ((blind, False), (_rule_rows(results), True)):
        flagged = frame[frame.verdict != ""].sort_values("over_chance", ascending=False)
        for worst in flagged.drop_duplicates("probe").itertuples():
            right = f"{percent(worst.value)}% of its {worst.split} items"
            how = f"choosing {worst.scoring} is right in {right}"
            how = how if is_rule else f"{worst.model} answers {right} from the choices alone"
            over = f"{points(worst.over_chance).removeprefix('+')} points above chance"
            sentences.append(f"{worst.probe} {worst.verdict}: {how}, {over}.")
    given_away = {*blind[blind.verdict != ""].probe}
    if clean := [probe for probe in blind.probe.unique() if probe not in given_away]:
        sentences.append(
            f"No baseline that sees only the choices is more than {100 * LEAK:g} points above "
            f"chance on {', '.join(clean)}."
        )
    return " ".join(sentences)
