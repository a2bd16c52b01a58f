"""Which words are frequent in text: the paper's Google Books, here the package `wordfreq`."""

from __future__ import annotations

from functools import cache


@cache
def frequent_words(count: int) -> frozenset[str]:
    """The most frequent English words, by `wordfreq`'s large list.

    Args:
        count: How many.

    Raises:
        FileNotFoundError: If the package is missing, with how to get it.
    """
    try:
        from wordfreq import top_n_list
    except ModuleNotFoundError as error:
        raise FileNotFoundError(
            "word frequencies come from the package wordfreq: pip install 'probelight[sources]'"
        ) from error
    return frozenset(top_n_list("en", count, wordlist="large"))
