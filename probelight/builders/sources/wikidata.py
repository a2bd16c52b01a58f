"""Wikidata as a knowledge source: its JSON dump, or an export of triples, streamed (Talmor 2020).

An export is a tab-separated table with the columns subject, subject_label, property, object and
object_label, in any order; names and cells may be as Wikidata's query service writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probelight.builders.builder import tracked_lines
from probelight.io.errors import RecordError
from probelight.io.files import LARGE, read_lines

ADDRESS = "https://dumps.wikimedia.org/wikidatawiki/entities/latest-all.json.gz"
COLUMNS = ("subject", "subject_label", "property", "object", "object_label")
_LANGUAGES = ("en", "mul")  # mul: labels that are the same in many languages
_YEAR = 9  # precision of a date; smaller ones are decades and centuries
_FIRST_ID = re.compile(r'\{(?:"type":"item",)?"id":"(Q\d+)"')
_NAMED = re.compile(r"<?(?:http://www\.wikidata\.org/\S*/|wdt?:)?([QP]\d+)>?")
_LITERAL = re.compile(r'"(.*)"(?:@[\w-]+|\^\^\S+)?')


@dataclass
class Facts:
    """What Wikidata says: objects (ids or dates) by property and subject, and labels by id."""

    objects: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def values_of(self, subject: str, property: str) -> list[str]:
        """Return the values of a subject's property, each once."""
        return self.objects.get(property, {}).get(subject, [])

    def years(self, subject: str, property: str) -> set[str]:
        """Return the years of a subject's dates, without those BC."""
        dates = self.values_of(subject, property)
        matches = (re.match(r"\+?0*(\d{1,4})(?:-|$)", date) for date in dates)
        return {match[1] for match in matches if match}

    def add(self, subject: str, property: str, value: str) -> None:
        """Add a fact, once."""
        values = self.objects.setdefault(property, {}).setdefault(subject, [])
        if value not in values:
            values.append(value)


def read_wikidata(
    path: Path, links: Collection[str], details: Collection[str], min_sitelinks: int = 0
) -> Facts:
    """Read the facts of some properties ("P463") from a dump or an export, compressed or not.

    A dump is read twice: for `links`, then for names and `details` of the linked entities, so that
    memory grows with the links, not with the dump. In a dump, `min_sitelinks` wikis must have a
    page on the subject of a link. A FileNotFoundError says where to get a missing file; a
    RecordError names the damaged line.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no Wikidata here. Download the JSON dump, {ADDRESS} (about 140 GB; .bz2 "
            "takes far longer to read), or save what you need as a tab-separated table with the "
            f"columns {', '.join(COLUMNS)}; give the path as --source, or as `source:` in --config"
        )
    first = next((text for _, text in read_lines(path, limit=LARGE) if text.strip()), None)
    if first is None:
        raise RecordError(f"{path}: the file is empty")
    if not first.lstrip().startswith(("[", "{")):
        return _read_triples(path, {*links, *details})
    facts, wanted_ids = Facts(), set[str]()
    quoted_names = tuple(f'"{name}"' for name in links)
    for where, entity in _entities(path, lambda text: any(name in text for name in quoted_names)):
        if len(entity.get("sitelinks") or ()) >= min_sitelinks:
            for name in links:
                for value in _values(entity, name, where):
                    facts.add(entity["id"], name, value)
                    wanted_ids |= {entity["id"], value}

    def may_be_wanted(text: str) -> bool:
        """Return whether a line may be of a wanted entity: its id may not come first."""
        match = _FIRST_ID.match(text)
        return match is None or match[1] in wanted_ids

    for where, entity in _entities(path, may_be_wanted):
        if entity["id"] in wanted_ids:
            try:
                labels = entity.get("labels") or {}
                label = next(
                    (labels[language]["value"] for language in _LANGUAGES if language in labels), ""
                )
            except (KeyError, TypeError) as error:
                raise RecordError(
                    f"{where}: the labels of {entity['id']} are damaged ({error!r})"
                ) from None
            if label:
                facts.labels[entity["id"]] = label
            for name in details:
                for value in _values(entity, name, where):
                    facts.add(entity["id"], name, value)
    return facts


def _entities(path: Path, keep: Callable[[str], bool]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line, entity) of the items whose line is to be kept."""
    opening = text = ""
    where = str(path)
    for number, line in tracked_lines(path, "Wikidata"):
        text, where = line.strip().removesuffix(","), f"{path}:{number}"
        if number == 1 and text == "[":
            opening = text
        elif text and text != "]":
            if not (text.startswith("{") and text.endswith("}")):
                raise RecordError(
                    f"{where}: not an entity, one JSON object per line: {text[:60]!r}"
                )
            if keep(text):
                try:
                    entity: dict[str, Any] = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise RecordError(f"{where}: damaged JSON: {error}") from None
                if not isinstance(entity.get("id"), str):
                    raise RecordError(f'{where}: an entity without an "id"')
                if entity.get("type", "item") == "item":
                    yield where, entity
    if opening and text != "]":
        raise RecordError(f"{where}: the dump is cut off, as it has no ] at its end; get it again")


def _values(entity: dict[str, Any], name: str, where: str) -> Iterator[str]:
    """Yield the values of a property, except deprecated, unknown, or vaguer than a year."""
    try:
        claims = entity.get("claims") or {}  # an empty list where there are none
        for statement in claims.get(name, ()):
            snak = statement["mainsnak"]
            if statement.get("rank") == "deprecated" or snak["snaktype"] != "value":
                continue
            value = snak["datavalue"]["value"]
            if "time" in value:
                if value["precision"] >= _YEAR:
                    yield value["time"]
            else:
                yield value["id"] if "id" in value else f"Q{value['numeric-id']}"
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            f"{where}: {entity['id']} has {name} in an unknown form ({error!r})"
        ) from None


def _read_triples(path: Path, properties: Collection[str]) -> Facts:
    facts, column_indices = Facts(), list[int]()
    for number, line in tracked_lines(path, "Wikidata"):
        cells = [cell.strip() for cell in line.split("\t")]
        if not column_indices:
            names = [cell.removeprefix("?").strip('"').lower() for cell in cells]
            if missing := [column for column in COLUMNS if column not in names]:
                raise RecordError(
                    f"{path}:{number}: no column {', '.join(missing)}; a table must begin with "
                    f"{', '.join(COLUMNS)}, with tabs between them, and a dump with [ or {{"
                )
            column_indices, num_cells = [names.index(column) for column in COLUMNS], len(cells)
            continue
        if len(cells) != num_cells:
            raise RecordError(
                f"{path}:{number}: {len(cells)} columns between tabs; the header has {num_cells}"
            )
        subject, subject_label, name, object_id, object_label = (
            _cell_text(cells[index]) for index in column_indices
        )
        if not (re.fullmatch(r"Q\d+", subject) and re.fullmatch(r"P\d+", name)):
            raise RecordError(
                f"{path}:{number}: {subject[:30]!r}, {name[:30]!r}: the subject must be an id such "
                "as Q1299, and the property one such as P463"
            )
        if name in properties and object_id:
            facts.add(subject, name, object_id)
            for id, label in ((subject, subject_label), (object_id, object_label)):
                if label not in ("", id) and id[0] == "Q":
                    facts.labels[id] = label
    return facts


def _cell_text(cell: str) -> str:
    """Return the id or text of a cell as Wikidata's query service writes it."""
    if match := _NAMED.fullmatch(cell):
        return match[1]
    literal_match = _LITERAL.fullmatch(cell)
    return literal_match[1] if literal_match else cell
