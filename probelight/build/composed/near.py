"""Wrong answers near the right one: a close year, a city of the same country, a like person."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from probelight.build.composed.chains import CITIZEN, COUNTRY, GENDER, Chain, World
from probelight.build.hygiene.finding import plain_words

NUM_WRONG = 2
_YEARS = (1, 2, 3)  # how far a wrong year is from the right one


class NearAnswers:
    """Draws the wrong answers of one template's items in a split.

    Wrong years are before or behind the right one so that each of three is equally often right.
    Other wrong answers are right answers of the split's other items, and those come first that were
    wrong more seldom than they are right: the choices alone do not tell a gold.

    Args:
        world: What Wikidata says.
        chains: The split's.
        rng: The order.
    """

    def __init__(self, world: World, chains: Sequence[Chain], rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.golds = {chain.ids[2]: chain.names[2] for chain in chains}
        self.surplus = Counter[str]()
        for chain in chains:
            self.surplus[chain.ids[2]] -= NUM_WRONG

    def of(self, chain: Chain) -> tuple[str, ...] | None:
        """The wrong answers of an item; None where there are too few."""
        if chain.template == "band":
            return self._years(int(chain.ids[2]))
        near = self._near(chain)
        self.rng.shuffle(near)
        near.sort(key=self.surplus.__getitem__)
        chosen = dict[str, str]()
        for id in near:
            chosen.setdefault(plain_words(self.golds[id]), id)
            if len(chosen) == NUM_WRONG:
                self.surplus.update(chosen.values())
                return tuple(self.golds[one] for one in chosen.values())
        return None

    def _years(self, right: int) -> tuple[str, ...]:
        num_before = self.rng.randint(0, NUM_WRONG)
        before = self.rng.sample(_YEARS, num_before)
        behind = self.rng.sample(_YEARS, NUM_WRONG - num_before)
        return tuple(str(right + n) for n in [*(-n for n in before), *behind])

    def _near(self, chain: Chain) -> list[str]:
        world, gold, ids = self.world, chain.ids[2], {chain.ids[2]}
        ids |= world.all_right(chain.template, chain.ids[0])
        right = {plain_words(world.name(id)) for id in ids}
        others = [id for id, name in self.golds.items() if plain_words(name) not in right]
        if chain.template == "headquarters":
            return [
                id
                for id in others
                if world.share(id, gold, COUNTRY) and not world.lies_within(id, gold)
            ]
        like = [id for id in others if world.share(id, gold, GENDER)]
        citizens = [id for id in like if world.share(id, gold, CITIZEN)]
        return citizens if len(citizens) >= NUM_WRONG else like
