"""How much is read at most: generous for real files, and far from what fills a machine."""

from __future__ import annotations

from dataclasses import dataclass

KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True)
class Limit:
    """How much of a file of one kind is read.

    Attributes:
        kind: What such a file holds, for messages.
        num_bytes: Of the whole file, decompressed.
        line_bytes: Of its longest line.
    """

    kind: str
    num_bytes: int
    line_bytes: int


# The largest known, the articles and questions of RACE in one file, has about 200 MiB.
ITEMS = Limit("items", 512 * MIB, MIB)
# A prompt of 25 examples stands there once for each choice of each item.
SAMPLES = Limit("samples", 8 * GIB, 64 * MIB)
# GloVe 840B has 5.3 GiB, fastText's largest 7; a line of 4,096 numbers 50 KiB.
WORDS = Limit("words", 64 * GIB, MIB)
# Read through once and not kept, so its size is the reader's patience; lines do not matter.
TEXT = Limit("text", 4096 * GIB, 4096 * GIB)
# Wikidata unpacks to less than 2 TiB, with entities of up to 4 MiB; ConceptNet to 10 GiB.
KNOWLEDGE = Limit("knowledge", 16 * 1024 * GIB, 64 * MIB)
SETTINGS = Limit("settings", 64 * KIB, 64 * KIB)
RESULTS = Limit("results", 512 * MIB, 512 * MIB)

MAX_ITEMS = 1_000_000
# Text packs 4 to 25 times smaller. A bomb, with up to 1,032 of gzip, is only worth it when large.
MAX_RATIO = 200
RATIO_FREE = 16 * MIB  # that much any packed file may hold

HTTP_SLOWEST = 4 * KIB  # bytes a second that a server must send,
HTTP_PATIENCE = 60.0  # measured over so many seconds

MAX_JSON_DEPTH = 50  # values within values; Python's stack ends at some hundreds
MAX_INTEGER = 2**63 - 1  # of numpy's and pandas' columns

MAX_YAML_NODES = 100_000  # with each alias counted as what it stands for
MAX_YAML_DEPTH = 50

MAX_PATTERN = 2_000  # characters of a regular expression
MAX_REPEATS = (
    10_000  # product of its counted repetitions, which are written out when it is compiled
)
MATCH_SECONDS = 1.0  # of processor time for one stem, which takes some microseconds
