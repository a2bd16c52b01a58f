"""Agreement in number: minimal pairs with words of the other number in between.

Linzen et al. 2016, and the sentences of Marvin and Linzen 2018.
"""

from __future__ import annotations

from random import Random
from typing import Literal

from probelight.builders.builder import BuildSettings, Draft, Probe, finish
from probelight.builders.school.fours import deal, school_builder, source_package

_NUM_SENTENCES = 500  # each with a subject of either number
_NOUNS = (
    "actor artist author baker banker boy captain chef child cousin customer dancer doctor driver "
    "farmer fisherman friend gardener girl guest hunter judge king lawyer man manager nurse "
    "officer painter pilot player poet prince queen sailor secretary senator singer soldier "
    "student surgeon tailor teacher thief waiter wife witness woman writer"
).split()
_RELATED = "boss brother cousin doctor enemy friend lawyer manager sister teacher".split()
_VERB_PHRASES = (
    "drink tea|know the answer|like music|live in London|love the sea|need help|play chess|"
    "read books|sing songs|sleep late|speak French|walk to school|want a dog|work every day|"
    "write letters"
).split("|")
_ADJECTIVES = "angry famous happy late old quiet rich sick tall tired young".split()
_PREPOSITIONS = ("behind", "beside", "in front of", "near", "next to")
_TRANSITIVE = "admire avoid call fear hate help know like love miss pay see trust watch".split()
Form = Literal["NN", "NNS", "VBZ", "VBP"]  # Penn Treebank: noun and plural, verb and plural
_NUMBERS: tuple[tuple[Form, Form], ...] = (("NN", "VBZ"), ("NNS", "VBP"))


def inflected(word: str, form: Form) -> str:
    """Return a form of a noun or verb: the first, but "are" of "am, are"."""
    forms: tuple[str, ...] = source_package("lemminflect").getInflection(word, form)
    return forms[-1] if word == "be" else forms[0]


def build_agreement(settings: BuildSettings) -> Probe:
    """Build the probe: a verb agrees with its subject, not with the noun before it."""
    rng = Random(f"agreement:{settings.seed}")
    pairs = dict[str, list[Draft]]()
    while len(pairs) < _NUM_SENTENCES:
        between = rng.choice(("complement", "phrase", "clause"))
        predicate = rng.choice(("be", "have", "verb"))
        subject, attractor = rng.sample(_NOUNS, 2)
        if between == "complement":
            subject, link = rng.choice([noun for noun in _RELATED if noun != attractor]), "of"
        else:
            link = "that" if between == "clause" else rng.choice(_PREPOSITIONS)
        inner_verb = rng.choice(_TRANSITIVE)
        endings = {"be": rng.choice(_ADJECTIVES), "have": "left"}
        verb, _, end = rng.choice(_VERB_PHRASES).partition(" ")
        if predicate in endings:
            verb, end = predicate, endings[predicate]
        sentences = list[tuple[str, str]]()
        for (noun, form), (other_noun, other_form) in (_NUMBERS, _NUMBERS[::-1]):
            begin = f"The {inflected(subject, noun)} {link} the {inflected(attractor, other_noun)}"
            begin += f" {inflected(inner_verb, other_form)}" * (between == "clause")
            right, wrong = (f"{begin} {inflected(verb, f)} {end}." for f in (form, other_form))
            sentences.append((right, wrong))
        cluster = sentences[0][0]
        meta = {"cluster": cluster, "paradigm": f"{between}_{predicate}"}
        pairs[cluster] = [Draft("", right, (wrong,), cluster, meta) for right, wrong in sentences]
    return finish("agreement", deal(pairs.values()), rng)


AGREEMENT = school_builder(
    build_agreement,
    """\
Minimal pairs as in Linzen et al. (2016) and Marvin and Linzen (2018): a verb, "is" and "are",
or "has" and "have", after a subject and a noun of the other number: in a complement ("The friend of
the pilots is tall."), another phrase ("The author near the pilots likes music.") or a clause ("The
author that the pilots like has left."). Each is asked with a singular and a plural
subject; both are in one group. The words are our own, their forms lemminflect's.""",
    "lemminflect",
    "MIT",
)
