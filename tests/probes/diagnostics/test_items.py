from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from probelight.io.errors import RecordError
from probelight.probes.diagnostics.items import (
    Item,
    NegatedPair,
    NegationItem,
    RoleItem,
    read_inference,
    read_negation,
    read_roles,
    read_sentences,
)
from tests.fixtures.diagnostics import CPRAG, NEG_1500, NEG_NAT, NEG_SIMP, ROLE, ROLE_1500

read_natural = partial(read_negation, natural=True)
read_negated = partial(read_sentences, kind=NegatedPair)


def test_the_article_follows_the_target() -> None:
    item = NegationItem("An ant is (a|an)", "An ant is not (a|an)", "insect", "vegetable")
    assert [(prompt.context, prompt.target) for prompt in item.prompts] == [
        ("An ant is an", "insect"),
        ("An ant is not an", "insect"),
        ("An ant is a", "vegetable"),
        ("An ant is not a", "vegetable"),
    ]


Read = Callable[[Path], tuple[Item, ...]]


def write_set(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "set"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("read", "text", "context", "targets"),
    [
        (read_inference, CPRAG, "He caught the pass. He loved", "football baseball monopoly"),
        (read_negation, NEG_SIMP, "A trout is a", "fish fish tool tool"),
        (read_natural, NEG_NAT, "Diving may be", "safe safe dangerous dangerous"),
        (read_sentences, ROLE_1500, "the coach asked which player the team had", "signed left"),
        (read_negated, NEG_1500, "A cat is an", "animal machine"),
    ],
)
def test_first_item_is_read(
    read: Read, text: str, context: str, targets: str, tmp_path: Path
) -> None:
    first = read(write_set(tmp_path, text))[0]
    assert first.prompts[0].context == context
    assert [prompt.target for prompt in first.prompts] == targets.split()


def test_roles_have_several_expected_completions(tmp_path: Path) -> None:
    items = read_roles(write_set(tmp_path, ROLE))
    context = "the owner forgot which customer the waitress had"
    assert items[1] == RoleItem("1", "a", context, ("served", "worked for"), 0.4, "served")


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_inference, "item\tconstraint\n", "set:1: no column context_s1, context_s2, exp"),
        (read_inference, CPRAG.splitlines()[0], "set: the file has no items"),
        (read_inference, "", "set: the file has no items"),
        (read_inference, CPRAG.replace("monopoly\tH", "monopoly"), "set:2: 6 cells, but the"),
        (read_inference, CPRAG.replace("\tL", "\tM"), "set:3: constraint is 'M'"),
        (read_inference, CPRAG.replace("cake", " "), "set:3: expected is empty"),
        (read_roles, ROLE.replace("0.3", "much"), "set:4: exp_cloze is 'much', not a number"),
        (read_roles, ROLE.replace("0.3", "1.5"), "set:4: exp_cloze is 1.5; it must be a number"),
        (read_roles, ROLE.replace("which bear", "a bear"), "set:4: context is 'the camper saw a"),
        (read_roles, ROLE.replace("the customer", "the maid of the house"), "set:2: context is"),
        (read_roles, ROLE.replace("served|", "served||"), "set:3: expected has an empty comp"),
        (read_roles, ROLE.replace("2-b", "2"), "set:4: item ends in '2'"),
        (read_roles, ROLE.replace("2-b", "3-b"), "set: item 3-b has no counterpart"),
        (read_roles, ROLE.replace("0.1\teaten", "0.1\tseen"), "set: item 2-b has no coun"),
        (read_roles, ROLE + ROLE.splitlines()[1], "set: an item is repeated"),
        (read_natural, NEG_NAT.replace("\tN", "\tn"), "set:3: licensing is 'n'"),
        (read_sentences, ROLE_1500.replace("signed,", "signed"), "set:1: the sentence must end in"),
        (read_sentences, "word,\n" * 2, "set:1: it needs a context and a word"),
        (read_sentences, "a [MASK] is a word,\n" * 2, "set:1: [MASK] is added after the"),
        (read_sentences, ROLE_1500.splitlines()[0], "set: 1 lines; pairs of two"),
        (read_negated, NEG_1500.replace("not a machine", "a pet"), "set:2: only the second"),
    ],
)
def test_what_is_malformed_is_named(read: Read, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError) as error:
        read(write_set(tmp_path, text))
    assert f"{tmp_path}/{message}" in str(error.value)
