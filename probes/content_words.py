"""The content words of a text: everything but function words (Talmor 2020, section 5)."""

from __future__ import annotations

import re

# The closed classes of English (Quirk et al. 1985, chapter 2), the paper's list is not published.
# The answers of some probes ("not", "always", "larger") are content here: they are what is asked.
FUNCTION_WORDS = frozenset(
    (
        # Articles and determiners.
        "a an the this that these those some any each every either neither no all both half such "
        "another other others much many more most few fewer fewest little less least several "
        "enough "
        # Pronouns.
        "i me my mine myself we us our ours ourselves you your yours yourself yourselves he him "
        "his himself she her hers herself it its itself they them their theirs themselves one "
        "ones who whom whose which what where when why how that there here someone somebody "
        "something anyone anybody anything everyone everybody everything nobody nothing none "
        # Prepositions.
        "about above across after against along among amongst around as at before behind below "
        "beneath beside besides between beyond by despite down during except for from in inside "
        "into like near of off on onto out outside over past per since through throughout till to "
        "toward towards under until up upon via with within without "
        # Conjunctions.
        "and or but nor so yet if because although though while whereas unless than whether "
        # Auxiliaries.
        "am is are was were be been being have has had having do does did doing done can could "
        "may might must shall should will would ought cannot "
        # Clitics.
        "s t d ll m re ve "
    ).split()
)
_WORD = re.compile(r"[a-z]+|\d+")


def content_words(text: str) -> list[str]:
    """Words and numbers of a text in lower case, in order, without function words and masks."""
    return [
        word
        for word in _WORD.findall(text.replace("[MASK]", " ").lower())
        if word not in FUNCTION_WORDS
    ]
