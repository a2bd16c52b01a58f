"""What an audit found: what baselines score without the question, and what gives it away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import pandas as pd

from probelight.probes.controls import CHOICE_ONLY
from probelight.reports import table as kit
from probelight.reports.published import published
from probelight.reports.table import ACCURACY, SIZE, Table
from probelight.reports.words import BY_GROUPS, INTERVAL, missing, percent, points
from probelight.results.frames import results_frame
from probelight.results.load import Results

LEAK = 0.15  # this far over chance, what the choices alone give away is too much
GUESSING, PARTIAL, TRAINED = "guessing", "part of the input", "question and choices"
# By type of model: the group, and whether it sees the choices alone.
PARTIAL_KINDS: Mapping[str, tuple[str, bool]] = {
    "choice_only": (PARTIAL, True),
    "choice_to_choice": (PARTIAL, True),
    "vec_similarity": (PARTIAL, False),
}
PLACE = ["path", "split", "subset"]
SHOWN = 4  # words of either end that people see; the csv file has more
LONG = 40  # characters of an answer that people see


@lru_cache(maxsize=2)
def audited(results: Results) -> pd.DataFrame:
    """Return the rows of the audits, with the `chance` of the same part and how far they are over.

    `verdict` is whether what knows nothing answers the probe; sure where the whole interval says
    so.
    """
    rows = results_frame(results).query("protocol == 'audit'")
    chance = rows[rows.metric == "chance"].drop_duplicates(PLACE).set_index(PLACE).value
    rows = rows.join(chance.rename("chance"), on=PLACE)

    def verdict(row: Any) -> str:
        if missing(row.chance) or missing(row.ci_low):
            return ""
        if row.ci_low > row.chance + LEAK:
            return "gives itself away"
        above = row.value > row.chance + LEAK and row.ci_low > row.chance
        return "may give itself away" if above else ""

    verdicts = list(map(verdict, rows.itertuples()))
    return rows.assign(over_chance=rows.value - rows.chance, verdict=verdicts, _runs=rows.run)


@lru_cache(maxsize=2)
def baselines(results: Results) -> pd.DataFrame:
    """Return the accuracy of each baseline, as `value`, on each split of a probe.

    `group` is what it sees, and `sees_choices` whether that is the choices alone. `untouched` is
    the accuracy on the items that have no relative in train, where some have, with its interval.
    """
    rows = audited(results)
    rows = rows[(rows.metric == "accuracy") & (rows.kind != "")]
    clean = rows[rows.subset_kind == "untouched"].drop_duplicates(PLACE[:2])
    names = {"value": "untouched", "ci_low": "_untouched_low", "ci_high": "_untouched_high"}
    clean = clean.set_index(PLACE[:2])[list(names)].rename(columns=names)
    on_choices = {*rows[rows.control == CHOICE_ONLY].path}
    found = rows[rows.subset == ""].join(clean, on=PLACE[:2])
    several = found.groupby(["probe", "model"]).path.transform("nunique") > 1
    seen = [
        (PARTIAL, True) if row.path in on_choices else PARTIAL_KINDS.get(row.kind, (TRAINED, False))
        for row in found.itertuples()
    ]
    sees_choices = pd.Series([alone for _, alone in seen], found.index, dtype=bool)
    name = found.model.where(~found.path.isin(on_choices), "Choice-only, " + found.model)
    return found.assign(
        source="ours",
        group=[group for group, _ in seen],
        model=name.where(~several, name + ", seed " + found.seed.astype(str)),
        sees_choices=sees_choices,
        verdict=found.verdict.where(sees_choices, ""),
    )


def audit_table(results: Results) -> Table | None:
    """Make the table of groups 1 and 2 of table 7 of Richardson & Sabharwal 2020 with ours."""
    ours = baselines(results).rename(columns={"value": "accuracy"}).assign(_source="")
    chances = {(row.probe, row.split): row.chance for row in ours.itertuples()}
    found = [
        {**row, "probe": probe, "split": split, "chance": chance, "source": source}
        | {"_source": source, "over_chance": row["accuracy"] - chance}
        for (probe, split), chance in chances.items()
        # A part of train has the paper's numbers of test next to it.
        for source in ["paper" if split in ("dev", "test") else "paper, test"]
        for row in _printed(probe, "dev" if split == "dev" else "test")
    ]
    found += ours.sort_values("model", kind="stable").to_dict("records")
    places, groups = list(chances), [GUESSING, PARTIAL, TRAINED]
    found.sort(
        key=lambda row: (places.index((row["probe"], row["split"])), groups.index(row["group"]))
    )
    with_clean = bool(ours.untouched.notna().any())
    return kit.table(
        "audit",
        "Can the probe be answered without its question?",
        f"{INTERVAL} ({BY_GROUPS}). Rows marked as the paper's are those of Richardson & "
        "Sabharwal 2020, table 7, groups 1 and 2: their vectors and encoders are others, and so "
        "are the items of a probe that was built here, so they are set side by side, not compared. "
        f"A probe gives itself away where what sees the choices alone is more than {100 * LEAK:g} "
        "points over chance with its whole interval; where its interval is above chance alone, it "
        "may." + " Relatives: items of a group that train items are of." * with_clean,
        found,
        [
            kit.text("probe", "probe", "split"),
            kit.text("sees", "group"),
            kit.text("model", "model", "_source"),
            kit.accuracy("accuracy %"),
            kit.share("chance", "chance"),
            kit.number("over chance, points", "over_chance", points),
            kit.text("verdict", "verdict"),
            kit.accuracy(
                "without relatives in train %", "untouched _untouched_low _untouched_high"
            ),
            kit.size(),
        ],
        csv=f"probe split group model source {ACCURACY} chance over_chance verdict untouched "
        + SIZE,
    )


def _printed(probe: str, split: str) -> Iterator[dict[str, Any]]:
    """Yield the paper's baselines on a split of a probe: what they see, and their accuracy."""
    rows = published().query("paper == 'Richardson & Sabharwal 2020' and metric == 'accuracy'")
    for row in rows[(rows.probe == probe) & (rows.split == split)].itertuples():
        if row.model == "random":
            yield {"group": GUESSING, "model": GUESSING, "accuracy": row.value}
        elif group := {"baseline": PARTIAL, "task_specific": TRAINED}.get(row.group):
            yield {"group": group, "model": row.name, "accuracy": row.value}


def _rules(results: Results) -> pd.DataFrame:
    """Return the rules that any reader could go by, the best first on each split of a probe."""
    rows = audited(results)
    rows = rows[(rows.kind == "") & (rows.metric == "accuracy") & rows.chance.notna()]
    best_first = [True, True, False]
    return rows.sort_values(["probe", "split", "over_chance"], ascending=best_first)


def rules_table(results: Results) -> Table | None:
    """Make the table of what rules score that go by looks, and by words of the question."""
    return kit.table(
        "audit_rules",
        "What simple rules give away",
        f"Accuracy of always choosing so. {INTERVAL} ({BY_GROUPS}). Ties count 1/n. Far below "
        "chance gives away as much as far above it. Words are common by the frequency of English "
        "where `wordfreq` is installed, else by train items; a glossed answer goes by its names. "
        "Words of the question are found by Snowball's English stems, which do not know irregular "
        "forms. The asked word is what an item's notes name (`surface_form`, `word`, `arguments`).",
        _rules(results).rename(columns={"value": "accuracy", "scoring": "rule"}),
        [kit.text("probe", "probe"), kit.text("choose", "rule")],
        rows="probe rule",
        across="split",
        each=[
            kit.accuracy("accuracy %"),
            kit.share("chance", "chance"),
            kit.text("verdict", "verdict"),
            kit.size(),
        ],
        csv=f"probe rule split {ACCURACY} chance verdict {SIZE}",
    )


def words_table(results: Results) -> Table | None:
    """Make the table of words, and whole answers, that go with being right or wrong."""
    rows = audited(results)
    pmi = rows[rows.metric == "pmi"].drop_duplicates(PLACE).set_index(PLACE).value
    found = rows[(rows.metric == "right_share") & (rows.subset_kind == "answer_part")]
    found = found.join(pmi.rename("pmi"), on=PLACE).dropna(subset=["chance", "pmi"])
    found = found.assign(
        of=[part["of"] for part in found.part],
        text=[part["part"] for part in found.part],
        right_share=found.value,
        strength=found.pmi.abs(),
        is_right=found.pmi > 0,
    )
    found["_text"] = [t if len(t) <= LONG else f"{t[: LONG - 1]}…" for t in found.text]
    strongest = found.sort_values("strength", ascending=False, kind="stable")
    strongest = strongest.groupby(["probe", "of", "is_right"]).head(SHOWN)
    return kit.table(
        "audit_words",
        "Which words and answers go with being right",
        "Of the items, all splits together, of which some choices have the word (or are the "
        "answer) and others not: how often the right one does, and by chance would. "
        f"{INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}), of this one alone: it is among "
        "the most telling of all. PMI in bits, smoothed by 10 items at chance.",
        found,
        [
            kit.text("probe", "probe"),
            kit.text("part", "of"),
            kit.text("text", "_text"),
            kit.number("PMI", "pmi", "{:+.2f}".format),
            kit.accuracy("right %", "right_share ci_low ci_high"),
            kit.number("by chance %", "chance", percent),
            kit.size(),
        ],
        shown=found[found.index.isin(strongest.index)],
        csv=f"probe of text pmi right_share ci_low ci_high chance {SIZE}",
    )


def summary(results: Results) -> str:
    """Return which probes the choices alone, or a simple rule, answer; and which they do not."""
    found = baselines(results)
    sentences, clean = [], []
    blind = found[found.sees_choices]
    for frame, is_rule in ((blind, False), (_rules(results), True)):
        ranked = frame.assign(is_flagged=frame.verdict != "").sort_values(
            ["is_flagged", "over_chance"], ascending=False, kind="stable"
        )
        for probe in dict.fromkeys(frame.probe):
            worst = next(ranked[ranked.probe == probe].itertuples())
            if not worst.verdict:
                clean += [] if is_rule else [probe]
                continue
            right = f"{percent(worst.value)}% of its {worst.split} items"
            how = f"to choose {worst.scoring} is right in {right}"
            how = how if is_rule else f"{worst.model} answers {right} from the choices alone"
            over = f"{points(worst.over_chance)} points over chance"
            sentences.append(f"{probe} {worst.verdict}: {how}, {over}.")
    if clean:
        sentences.append(
            f"No baseline that sees the choices alone is more than {100 * LEAK:g} points over "
            f"chance on {', '.join(clean)}."
        )
    return " ".join(sentences)
