"""DictionaryQA: the sense of a word in a usage (Richardson & Sabharwal 2020, 3.2).

Only senses printed with a usage are asked for or offered: in the authors' first version,
definitions without one gave wrong answers away. For the same reason, other wrong answers are right
answers of other questions.
"""

from __future__ import annotations

import gzip
import itertools
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from probelight.builders.builder import (
    Builder,
    BuildSettings,
    Draft,
    Probe,
    Source,
    finish,
    tracked,
)
from probelight.builders.dictionary_entries import (
    DistinctSenses,
    Entry,
    check_senses,
    contains_form,
    read_entries,
)
from probelight.builders.sources import gcide
from probelight.builders.sources.gcide import Sense
from probelight.builders.wordnet_probes.questions import CONTEXTS, WORDINGS
from probelight.io.errors import RecordError, UsageError
from probelight.io.ranges import NumItems
from probelight.probes.splits import SPLITS

_NUM_DISTRACTORS = 4
_NUM_FILLERS = 40  # are looked at for one question
_SPARE = 0.03  # of the words, for those whose questions find too few wrong answers

Group = list[Entry]  # senses of one word and part of speech


@dataclass(frozen=True)
class DictionarySettings(BuildSettings):
    """Settings of DictionaryQA.

    Args:
        gcide_path: GCIDE: dictd's `gcide.dict.dz`, or the folder of GNU's files CIDE.A to CIDE.Z,
            gzipped or not, or one of these files.
        public_domain: Use only paragraphs tagged `[1913 Webster]`; the rest is under the GPL.
        questions: Largest number of questions per word.
        train_items: Number of train items.
        dev_items: Number of dev items.
        test_items: Number of test items.
    """

    gcide_path: str = str(gcide.DEFAULT_PATH)
    public_domain: bool = True
    questions: NumItems = 1
    train_items: NumItems = 3_000
    dev_items: NumItems = 3_000
    test_items: NumItems = 1_000


def read_senses(settings: DictionarySettings) -> list[Sense]:
    """Read the dictionary, in whichever form it is; a RecordError says that it is no GCIDE."""
    path = Path(settings.gcide_path)
    source = gcide.PUBLIC_DOMAIN_SOURCE if settings.public_domain else None
    try:
        if gcide.is_gnu(path):
            senses = list(gcide.read_gnu_gcide(path, source))
        else:
            senses = list(gcide.read_gcide(path, source, spelled_out=False))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise RecordError(f"{path}: the file is damaged; get it again ({error})") from error
    if not senses:
        raise RecordError(f"{path}: the file has no entries of GCIDE, in dictd's or GNU's format")
    return senses


def build_dictionary(settings: DictionarySettings) -> Probe:
    """Build the probe; its splits share no word and no definition."""
    rng = random.Random(f"dictionary_qa:{settings.seed}")
    senses = read_senses(settings)
    distinct = DistinctSenses(senses)
    items = (settings.train_items, settings.dev_items, settings.test_items)
    sizes = dict(zip(SPLITS, items, strict=True))
    splits = dict[str, list[Draft]]()
    groups = _groups(senses, distinct)
    for split, words in _deal(groups, sizes, settings.questions, rng).items():
        asked_entries = [
            (entry, group)
            for group in words
            for entry in rng.sample(group, min(settings.questions, len(group)))
        ]
        golds: dict[str, list[Entry]] = {}
        for entry, _ in asked_entries:
            golds.setdefault(entry.pos, []).append(entry)
        drafts = list[Draft]()
        for entry, group in tracked(asked_entries, f"dictionary_qa: {split}"):
            drafts += _drafts(entry, group, golds[entry.pos], distinct, rng)
        if len(drafts) < sizes[split]:
            raise UsageError(
                f"{settings.gcide_path}: only {len(drafts)} of {sizes[split]} questions can be "
                f"made for {split}; give smaller --train_items, --dev_items and --test_items"
            )
        splits[split] = drafts[: sizes[split]]
    return finish("dictionary_qa", splits, rng)


def _groups(senses: Sequence[Sense], distinct: DistinctSenses) -> list[Group]:
    """Group the senses of each word that differ, in its commonest part of speech."""
    entries_by_word: dict[str, dict[str, Group]] = {}
    for entry in read_entries(tracked(senses, "dictionary_qa: senses")):
        entries_by_word.setdefault(entry.word, {}).setdefault(entry.pos, []).append(entry)
    groups = []
    for entries_by_pos in entries_by_word.values():
        # Another part of speech could be ruled out by the form of its definition.
        group = max(entries_by_pos.values(), key=len)
        different = [entry for entry in group if any(distinct(entry, sense) for sense in group)]
        groups.append(different or group[:1])
    return groups


def _deal(
    groups: list[Group], sizes: Mapping[str, int], most: int, rng: random.Random
) -> dict[str, list[Group]]:
    """Deal words to splits, those of several senses first; the last ones of a split are spare."""
    rng.shuffle(groups)
    groups.sort(key=lambda group: len(group) == 1)
    counts = itertools.accumulate(min(most, len(group)) for group in groups)
    num_words = 1 + sum(count < sum(sizes.values()) for count in counts)
    main_groups, spare = groups[:num_words], groups[num_words:]
    rng.shuffle(main_groups)
    dealt: dict[str, list[Group]] = {split: [] for split in sizes}
    for split, size in sizes.items():
        while main_groups and size > 0:
            dealt[split].append(main_groups.pop())
            size -= min(most, len(dealt[split][-1]))
    num_spare = int(_SPARE * sum(sizes.values())) + _NUM_FILLERS
    for split, group in zip(itertools.cycle(sizes), spare[:num_spare], strict=False):
        dealt[split].append(group)
    return dealt


def _drafts(
    entry: Entry, group: Group, golds: Sequence[Entry], distinct: DistinctSenses, rng: random.Random
) -> Iterator[Draft]:
    """Yield the question about an entry; none if the split has too few wrong answers."""
    fillers = [gold for gold in golds if gold.word != entry.word]
    chosen = [entry]
    asked_forms = {entry.word, entry.surface_form}  # no answer repeats it, right or wrong
    for candidate in [
        *rng.sample(group, len(group)),
        *rng.sample(fillers, min(_NUM_FILLERS, len(fillers))),
    ]:
        if len(chosen) > _NUM_DISTRACTORS:
            break
        if any(contains_form(word, candidate.definition) for word in asked_forms):
            continue
        if all(distinct(candidate, answer) for answer in chosen):
            chosen.append(candidate)
    if len(chosen) <= _NUM_DISTRACTORS:
        return
    names = [wrong.name for wrong in chosen[1:] if wrong.word == entry.word]
    context = rng.choice(CONTEXTS).format(s=entry.usage)
    wording = rng.choice(WORDINGS["definitions"]).format(w=entry.surface_form)
    meta = {
        "cluster": entry.word,
        "word": entry.word,
        "surface_form": entry.surface_form,
        "pos": entry.pos,
        "gold_synset": entry.name,
        "hops": 0,
        "distractor_type": "sense" if names else "random",
        "sense_choices": len(names) + 1,
        "other_distractors": names,
        "random_distractors": [wrong.name for wrong in chosen[len(names) + 1 :]],
        "source": "gcide",
    }
    distractors = tuple(wrong.definition for wrong in chosen[1:])
    yield Draft(f"{context} {wording}", entry.definition, distractors, entry.word, meta)


_ABOUT = """\
Built as Richardson and Sabharwal (2020, section 3.2) describe. Wrong answers are other senses of
the word with the same part of speech, then definitions of other words, which are right answers of
other questions of the split. Each sense has a usage with the word in it (printed after "as," or
quoted), and a definition of 12 to 160 characters without cross-references and remarks. No answer,
right or wrong, gives the word away by its spelling. No question has two definitions that share a
third of their words, or that are synonyms in this dictionary. Splits share no word and no
definition, right or wrong. Words with several such senses, about 1,200, are used first: the fewer
items there are, the more of them have another sense of the word among the wrong answers."""

DICTIONARY_QA = Builder(
    "dictionary_qa",
    "Which sense does the word have here?",
    DictionarySettings,
    build_dictionary,
    sources={
        "gcide_path": Source(
            "GCIDE, the Collaborative International Dictionary of English",
            "0.48 or later",
            "its [1913 Webster] paragraphs are in the public domain, the others under GPL 3",
            gcide.gnu_files,
        )
    },
    check=lambda settings, records: check_senses(records),
    about=_ABOUT,
    config={"setup": "mc_qa", "num_choices": 5, "chance": 0.2, "group_by": "cluster"},
)
