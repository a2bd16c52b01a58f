"""What gives a probe away and is counted, without a model: simple rules, words, whole answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from probelight.build.giveaways import (
    ASKED,
    Parts,
    associations,
    most_telling,
    surface_rules,
    told_by,
    whole,
    word_frequency,
    words_of,
)
from probelight.build.hygiene import asked_stems
from probelight.io.ranges import settings_from
from probelight.probes.record import chance_of, groups_of
from probelight.protocols.audit.items import AuditData, AuditSettings, read_audit
from probelight.protocols.engine.predictions import Predictions, accuracy_row, grouped_row
from probelight.protocols.jobs.job import RunContext
from probelight.results.record import RunRecord, check_data, data_files
from probelight.results.row import Row, Subset
from probelight.results.run_folder import RunFolder

PROTOCOL = "audit"
LABEL = "the answers alone"
MOST = 10  # words, and answers, that are shown of either end
ALL = "all"  # the split of what is counted on the items of all splits
PARTS: Mapping[str, Parts] = {"word": words_of, "answer": whole}


def count_giveaways(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Make the run that counts what gives a probe away.

    Raises:
        UsageError: If the probe is another one than when the run was planned.
    """
    settings = settings_from(AuditSettings, config["settings"])
    data = read_audit(context, config["probe"], settings)
    check_data(config["data"], data.parts.values())
    base = Row(
        protocol=PROTOCOL,
        model=LABEL,
        probe=data.config.name,
        control="standard",
        role="baseline",
    )
    rows = list(rule_rows(data, config["frequency"], base))
    for kind in PARTS:
        rows += part_rows(data, kind, replace(base, split=ALL))
    run.write_metrics(rows)
    return RunRecord(
        protocol=PROTOCOL,
        model=LABEL,
        probe=data.config.name,
        rows=tuple(rows),
        counts={split: len(own.records) for split, own in data.parts.items()},
        notices=data.notices,
        data=data_files(data.parts.values()),
        facts={"word frequencies": config["frequency"], "stems": config["stems"]},
    )


def rule_rows(data: AuditData, frequency: str, row: Row) -> Iterator[Row]:
    """Yield the accuracy of each rule that any reader could go by, on each measured split.

    Rules of the asked word are left out where the notes of no item name one.

    Args:
        data: The probe.
        frequency: Where the frequency of words is from.
        row: The columns that all rows share.
    """
    train = (*data.train, *data.held_out)
    learned = associations(train)
    rules = surface_rules(word_frequency(frequency, train), learned, data.config.num_choices)
    for split, records in data.measured.items():
        names_asked = any(map(asked_stems, records))
        groups = groups_of(records, data.config.group_by)
        of_split = replace(row, split=split, num_items=len(records))
        yield replace(of_split, metric="chance", value=chance_of(records))
        for name, rule in rules.items():
            if name in ASKED and not names_asked:
                continue
            predictions = Predictions(split, records, [rule(record) for record in records])
            yield accuracy_row(predictions, groups, replace(of_split, scoring=name))


def part_rows(data: AuditData, kind: str, row: Row) -> Iterator[Row]:
    """Yield how often the gold has a part that other choices lack, chance, and the PMI of both.

    Args:
        data: The probe.
        kind: "word" or "answer".
        row: The columns that all rows share.
    """
    parts, records = PARTS[kind], data.records
    found = associations(records, parts)
    shown = {one.part: one for one in most_telling(found.values(), MOST)}
    groups = groups_of(records, data.config.group_by)
    places: dict[str, list[tuple[float, str]]] = {part: [] for part in shown}
    for record, group in zip(records, groups, strict=True):
        for part, (right, _) in told_by(record, parts).items():
            if part in places:
                places[part].append((float(right), group))
    for part, one in shown.items():
        subset = Subset.of("answer_part", f"{kind}={part}", of=kind, part=part)
        of_part = replace(row, subset=subset, num_items=one.num_items)
        scores, members = zip(*places[part], strict=True)
        yield grouped_row(scores, members, replace(of_part, metric="right_share"))
        yield replace(of_part, metric="chance", value=one.expected / one.num_items)
        yield replace(of_part, metric="pmi", value=one.pmi)
