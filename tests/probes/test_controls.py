from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.errors import ConfigError, RecordError
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import (
    CONTROLS,
    NONSENSE_WORDS,
    WITHOUT_CONFIG,
    NonsenseError,
    but_not,
    choice_only,
    choose_nonsense,
    controlled_stems,
    draw_questions,
    draw_substitutes,
    no_language,
    perturbed_language,
    shuffled_words,
    vary,
)
from probelight.probes.importers.items import read_file, write_ai2
from probelight.probes.record import Record
from probelight.probes.source import ProbeData, load_probe

AGE = Record(
    "1", "A 24 year old person age is [MASK] than a 55 year old person .", ("older", "younger"), 1
)
# By probe, stems and what its no-language control keeps of them.
TEMPLATES = """
age_comparison
A 24 year old person age is [MASK] than a 55 year old person . => 24 [MASK] 55
A 21 year old person is [MASK] than me in age, If I am a 35 year old person. => 21 [MASK] 35

objects_comparison
The size of a pen is usually much [MASK] than the size of a house plant . => pen [MASK] house plant

always_never
A ape [MASK] has a neck . => ape [MASK] neck
beef is [MASK] part of a canine's diet . => beef [MASK] canine
A dish with beef [MASK] contains some vegetable . => beef [MASK] vegetable
A bat is [MASK] larger than a wolf . => bat [MASK] larger wolf
A wolf is [MASK] smaller than a bat . => wolf [MASK] smaller bat
bed is [MASK] placed in the middle . => bed [MASK] middle

multihop_composition
When comparing a 31 year old, a 9 year old and a 3 year old, the [MASK] is oldest  => 31 9 3 [MASK]

antonym_negation
It was [MASK] sane , it was really insane . => [MASK] sane insane
It was [MASK] a elevator, it was really a lift. => [MASK] elevator lift
He was [MASK] ready to cool, He was really ready to cool off. => [MASK] cool cool off

taxonomy_conjunction
A ferry and a floatplane are both a type of [MASK]. => ferry floatplane [MASK]
A beer and an apple pie are both a type of [MASK] . => beer apple pie [MASK]

property_conjunction
What is usually located at hand and used for writing? => located at hand used for writing
what usually used for fun and is usually located at toy store => used for fun located at toy store
what is part of ink and has a subevent of sleep => part of ink has a subevent of sleep
what has a prerequisite of a book and is made of ink => has a prerequisite of a book made of ink
What is part of a city and is made of stone ? => part of a city made of stone
what usually used for racing and usually used for play => used for racing used for play

encyclopedic_composition
When did the band where Junior Cony played first form? => Junior Cony
when did the band where John Lennon played first form ? => John Lennon
Who is the spouse of the actor that played in Hannah Free? => Hannah Free
where is the headquarters of the company that Al Ingels established located ? => Al Ingels
"""


@pytest.mark.parametrize(
    ("probe", "stem", "expected"),
    [
        (probe, *line.split(" => "))
        for probe, *lines in (block.splitlines() for block in TEMPLATES.strip().split("\n\n"))
        for line in lines
    ],
)
def test_controls_keep_mask_and_arguments(probe: str, stem: str, expected: str) -> None:
    config = load_probe_config(probe)
    record = Record("1", stem, config.candidates or ("one", "two", "three"), 1)
    control = no_language(record, config, choose_nonsense(config, lambda word: True))
    assert (control.stem, control.answer) == (expected, 1)
    if config.candidates:
        assert set(control.choices) <= set(NONSENSE_WORDS)
        assert len(set(control.choices)) == len(record.choices)
    else:
        assert control.choices == record.choices
    changed = perturbed_language(record, config, draw_substitutes(config, seed=0))
    assert (arguments := config.find_arguments(stem))
    assert all(stem[start:end] in changed.stem for start, end in arguments.spans)
    assert any(word in changed.stem.split() for word in NONSENSE_WORDS)


def test_the_papers_example_and_words_that_are_not_usable() -> None:
    config = load_probe_config("age_comparison")
    control = no_language(AGE, config, choose_nonsense(config, lambda word: True))
    assert (control.stem, control.choices) == ("24 [MASK] 55", ("blah", "ya"))
    assert choose_nonsense(config, lambda word: word != "ya") == {"younger": "foo", "older": "blah"}
    with pytest.raises(NonsenseError, match="only 1 nonsense words are a single token"):
        choose_nonsense(config, lambda word: word == "fee")


def test_what_decides_the_answer_is_kept_and_is_no_argument() -> None:
    config = load_probe_config("always_never")
    larger = Record("1", "A bat is [MASK] larger than a wolf .", config.candidates, 0)
    for stem in (larger.stem, "A wolf is [MASK] smaller than a bat ."):
        assert (arguments := config.find_arguments(stem))
        assert {stem[start:end] for start, end in arguments.spans} == {"bat", "wolf"}  # one group
    perturbed = perturbed_language(larger, config, {"larger": "foo", "smaller": "ya"})
    assert perturbed.stem == "A bat is [MASK] foo than a wolf ."


def test_perturbed_language_replaces_whole_key_words_only() -> None:
    config = load_probe_config("age_comparison")
    control = perturbed_language(AGE, config, {"age": "woo", "than": "da"})
    assert control.stem == "A 24 year old person woo is [MASK] da a 55 year old person ."
    assert control.choices == AGE.choices
    encyclopedic = load_probe_config("encyclopedic_composition")
    record = Record("1", "When did the band where First Band played first form?", ("a", "b"), 0)
    control = perturbed_language(record, encyclopedic, {"band": "foo", "first": "fee"})
    assert control.stem == "When did the foo where First Band played fee form?"


def test_substitutes_are_seeded_and_differ() -> None:
    config = load_probe_config("always_never")
    drawn = draw_substitutes(config, seed=1)
    assert tuple(drawn) == config.key_words
    assert len(set(drawn.values())) == len(drawn)
    assert set(drawn.values()) <= set(NONSENSE_WORDS)
    assert drawn == draw_substitutes(config, seed=1)
    assert any(draw_substitutes(config, seed) != drawn for seed in range(2, 6))
    with pytest.raises(ConfigError, match="no `key_words`"):
        draw_substitutes(load_probe_config("arc_easy"), seed=1)


OTHER = Record("r7", "He is [MASK] .", ("older", "younger"), 0, {}, 3)


@pytest.mark.parametrize(
    ("control", "record", "words", "message"),
    [
        (no_language, OTHER, {}, "r7@3: no template of age_comparison fits"),
        (perturbed_language, OTHER, {"than": "foo"}, "r7@3: no template of age_comparison fits"),
        (perturbed_language, AGE, {"comparing": "foo"}, "1@0: the control does not change 'A 24 "),
        (perturbed_language, OTHER, {}, "no words to replace"),
        (no_language, AGE, {"older": "blah"}, "there is no nonsense word for 'younger'"),
    ],
)
def test_controls_that_cannot_work_name_the_record(
    control: Callable[..., Record], record: Record, words: dict[str, str], message: str
) -> None:
    with pytest.raises(RecordError, match=message):
        control(record, load_probe_config("age_comparison"), words)


def test_choice_only_leaves_the_choices_alone_and_fits_any_probe() -> None:
    config = load_probe_config("arc_easy")
    assert not config.arguments
    assert CONTROLS["choice_only"].fits(config)
    assert not CONTROLS["no_language"].fits(config)
    question = Record("1", "What do bees make?", ("honey", "milk"), 0)
    assert choice_only(question, config, {}) == replace(question, stem="")
    assert choice_only(AGE, config, {}) == replace(AGE, stem="[MASK]")
    alone = replace(AGE, stem="[MASK]")
    assert choice_only(alone, config, {}) == alone


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["age_small", "antonym_small", "multihop_small", "taxonomy_small"])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_controls_fit_every_row_of_the_shipped_probes(name: str, split: str) -> None:
    data = load_probe(name, split)
    nonsense = choose_nonsense(data.config, lambda word: True)
    substitutes = draw_substitutes(data.config, seed=0)
    for record in data.records:
        bare = no_language(record, data.config, nonsense)
        words = bare.stem.replace("[MASK]", "").split()
        assert words == [str(argument) for argument in record.meta["arguments"]]
        assert set(bare.choices).isdisjoint(record.choices) == bool(data.config.candidates)
        changed = perturbed_language(record, data.config, substitutes)
        lost = set(record.stem.split()) - set(changed.stem.split())
        assert 0 < len(lost) <= len(substitutes)
        assert (changed.choices, changed.answer) == (record.choices, record.answer)


PEN = Record(
    "p1",
    "What is usually located at hand and used for writing?",
    ("pen", "spoon", "computer"),
    0,
    {"source": "paper", "first_distractor": "spoon"},
    7,
)
CONFIG = load_probe_config("property_conjunction")


@pytest.mark.parametrize("first", range(3))
def test_but_not_of_the_papers_example_wherever_the_answer_stands(first: int) -> None:
    # A spoon is located at hand, a computer is used for writing.
    choices = (*PEN.choices[first:], *PEN.choices[:first])
    varied = but_not(replace(PEN, choices=choices, answer=choices.index("pen")), CONFIG)
    stem = "What is usually located at hand but not used for writing?"
    assert varied == replace(
        PEN, id="p1-but_not", stem=stem, choices=choices, answer=choices.index("spoon")
    )
    assert (varied.position, varied.meta) == (PEN.position, PEN.meta)


def test_rows_that_do_not_say_which_distractor_is_the_first_are_refused(tmp_path: Path) -> None:
    # The released wording: the choices are shuffled, and there are no notes.
    stem = "what usually used for fun and is usually located at toy store"
    choices = ("exercising", "salesperson", "chess set")
    write_ai2(tmp_path / "dev.jsonl", [Record("43fe8e00", stem, choices, 2)])
    [record] = read_file(tmp_path / "dev.jsonl").records
    with pytest.raises(RecordError, match=r"dev\.jsonl:1: the notes do not say which wrong answer"):
        but_not(record, CONFIG)
    noted = replace(record, meta={"first_distractor": "exercising"})
    changed = but_not(noted, CONFIG)
    assert changed.stem == "what usually used for fun but is not usually located at toy store"
    assert changed.gold == "exercising"
    gold = replace(record, meta={"first_distractor": "chess set"})
    with pytest.raises(RecordError, match=r"is 'chess set', but the wrong answers are 'ex"):
        but_not(gold, CONFIG)


def test_a_second_verb_is_negated_behind_it_and_two_properties_are_needed() -> None:
    stem = "What is made of gold and is usually worn ?"
    record = Record("p3", stem, ("a", "b"), 0, {"first_distractor": "b"})
    assert but_not(record, CONFIG).stem == "What is made of gold but is not usually worn ?"
    which_pen = Record("p4", "Which pen is it?", ("a", "b"), 0, {}, 3)
    with pytest.raises(RecordError, match=r"p4@3: the template of property_conjunction finds no"):
        but_not(which_pen, CONFIG)


def test_a_variant_that_a_probe_does_not_declare_is_refused() -> None:
    data = ProbeData(load_probe_config("age_comparison"), (), (), ())
    with pytest.raises(ConfigError, match="age_comparison has no variant 'but_not'; it has none"):
        vary(data, "but_not")
    with pytest.raises(ConfigError, match="did you mean 'but_not'"):
        vary(ProbeData(CONFIG, (PEN,), (), ()), "butnot")


def test_shuffled_words_are_never_in_their_order_and_the_mask_stays() -> None:
    config = load_probe_config("age_comparison")
    for number in range(50):
        item = Record(str(number), "a b [MASK]. b", ("x", "y"), 0)
        *words, last = shuffled_words(item, config, {}).stem.split()
        assert words[2] == "[MASK]."
        assert sorted([*words[:2], last]) == ["a", "b", "b"]
        assert [*words, last] != item.stem.split()
        # Of two different words there is one other order.
        assert shuffled_words(replace(item, stem="one  two"), config, {}).stem == "two one"
    stems = {shuffled_words(replace(AGE, id=str(n)), config, {}).stem for n in range(20)}
    assert len(stems) == 20
    for stem in ("Why?", "no no", "[MASK]", "[MASK] ."):
        with pytest.raises(RecordError, match="no two different words to shuffle"):
            shuffled_words(replace(AGE, stem=stem), config, {})


@pytest.mark.parametrize(
    "sizes", [(1, 1), (2, 1), (1, 1, 1, 1, 1), (3, 2, 1), (4, 1, 1), (2, 3, 4, 1)]
)
def test_no_item_gets_a_question_of_its_own_group(sizes: tuple[int, ...]) -> None:
    items = [
        Record(f"{group}{n}", f"stem {group}{n}", ("x", "y"), 0, {"cluster": str(group)})
        for group, size in enumerate(sizes)
        for n in range(size)
    ]
    questions = draw_questions(items, "cluster")
    assert {*questions} == {item.name for item in items}
    for item in items:
        assert questions[item.name].split()[1][0] != item.meta["cluster"]
    if 2 * max(sizes) <= len(items):
        assert sorted(questions.values()) == sorted(item.stem for item in items)
    with pytest.raises(ConfigError, match="one group"):
        draw_questions(items[: sizes[0]], "cluster")


def test_stems_under_controls_are_the_same_in_a_fresh_process() -> None:
    code = (
        "from probelight.probes.controls import WITHOUT_CONFIG, controlled_stems\n"
        "from probelight.probes.source import load_probe\n"
        "data = load_probe('taxonomy_small', 'dev')\n"
        "print([controlled_stems(name, data) for name in WITHOUT_CONFIG])"
    )
    data = load_probe("taxonomy_small", "dev")
    expected = [controlled_stems(name, data) for name in WITHOUT_CONFIG]
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == f"{expected}\n"
    clusters = {record.name: record.meta["cluster"] for record in data.records}
    by_stem: dict[str, set[object]] = {}
    for record in data.records:
        by_stem.setdefault(record.stem, set()).add(record.meta["cluster"])
    assert all({clusters[name]} != by_stem[stem] for name, stem in expected[2].items())


def test_without_training_choices_stay_and_what_does_not_fit_is_said() -> None:
    data = load_probe("age_small", "dev")
    stems = controlled_stems("no_language", data)
    assert stems[data.records[0].name].split()[1] == "[MASK]"
    assert controlled_stems("standard", data) == {}
    pairs = replace(data, config=replace(data.config, setup="minimal_pair"))
    for name in CONTROLS:
        with pytest.raises(ConfigError, match="there is no question"):
            controlled_stems(name, pairs)
    bare = replace(data, config=replace(data.config, arguments={}))
    with pytest.raises(ConfigError, match="there is no `arguments` or `key_words`"):
        controlled_stems("perturbed_language", bare)
