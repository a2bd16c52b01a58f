"""A WordNet database of some thirty synsets, in the format of the real one."""

from __future__ import annotations

from pathlib import Path

TOPS, ANIMAL, ARTIFACT, ADJECTIVE, VERB = 3, 5, 6, 0, 30
NOUNS = """
entity | | a thing with an existence of its own
animal | entity | a living thing that moves and feels; "no animal was hurt"
mammal | animal | an animal that feeds milk to its young; "a whale is a mammal"
bird | animal | an animal with feathers; "the bird sang at dawn"
dog,domestic_dog | mammal | an animal that barks; "the dogs barked all night"
cat | mammal | an animal that purrs; "the cat slept on the mat"
horse | mammal | an animal one rides; "the horse ran away"
poodle | dog | an animal with curly hair; "her poodle was white"
hound | dog | an animal that hunts; "the hound found the fox"
hen | bird | a female fowl that lays; "the hen laid an egg"
owl | bird | a night hunter with large eyes; "the owl hooted twice"
duck | bird | a swimmer with webbed feet; "a duck swam by"
artifact | entity | something made by people; "every artifact was sold"
vehicle | artifact | something that carries people; "the vehicle broke down"
building | artifact | something with walls and a roof; "the building burned"
car | vehicle | a four-wheeled carrier; "the car is new"
boat | vehicle | a small vessel; "the boat sank"
ferry | vehicle | a carrier over water; "a ferry is late"
barn | building | a place for hay; "the barn was full"
house | building | a place to live in; "the house is cold"
mill | building | a place where grain is ground; "the mill stood still"
"""
# A calf is an animal by way of "young" alone, as in the real one.
ANIMALS = """
entity | | a thing with an existence of its own
animal | entity | what moves and feels; "no animal was hurt"
chordate | animal | what has a cord; "a chordate swims"
vertebrate | chordate | what has a backbone; "a vertebrate has bones"
invertebrate | animal | what has none; "an invertebrate crawls"
bird | vertebrate | what has feathers; "a bird sang"
swan | bird | a white swimmer; "a swan swam by"
owl | bird | a night hunter; "an owl hooted"
clam | invertebrate | what lives in a shell; "a clam shut"
young | animal | what is not grown; "a young cried"
calf | young | the offspring of a cow; "a calf was born"
"""
ADJECTIVES = """
hot,warm | cold | of a high temperature; "a hot stove"
cold | hot | of a low temperature; "a cold room"
scorching | &hot | hot and dry; "a scorching day"
"""
VERBS = """
move | | change place; "we move often"
run | move | go fast on foot; "the children ran home"
"""


def write_wordnet(folder: Path, nouns: str = NOUNS) -> Path:
    """Writes the database files; each noun's line is its words, what it is a kind of, its gloss."""
    senses = list[str]()
    counts = list[str]()
    for part, letter, text in (
        ("noun", "n", nouns),
        ("adj", "a", ADJECTIVES),
        ("verb", "v", VERBS),
        ("adv", "r", ""),
    ):
        rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
        data, offsets = _data(rows, letter)
        (folder / f"data.{part}").write_text(data)
        index: dict[str, list[int]] = {}
        for words, *_ in rows:
            for word in words.split(","):
                index.setdefault(word, []).append(offsets[words.split(",")[0]])
        (folder / f"index.{part}").write_text(
            "".join(
                f"{word} {letter} {len(at)} 0 {len(at)} 0 {' '.join(f'{o:08d}' for o in at)}  \n"
                for word, at in sorted(index.items())
            )
        )
        (folder / f"{part}.exc").write_text("ran run\n" if part == "verb" else "")
        for words, up, _ in rows:
            for word in words.split(","):
                key = _sense_key(words.split(",")[0], word, letter, up)
                senses.append(f"{key} {offsets[words.split(',')[0]]:08d} 1 5\n")
                counts.append(f"{key} 1 5\n")
    (folder / "index.sense").write_text("".join(sorted(senses)))
    (folder / "cntlist.rev").write_text("".join(sorted(counts)))
    return folder


def _data(rows: list[list[str]], letter: str) -> tuple[str, dict[str, int]]:
    """Lines name each other by their place in bytes, so they are written twice."""
    offsets = {row[0].split(",")[0]: 0 for row in rows}
    for _ in range(2):
        text = "  a licence would stand here\n"
        for row in rows:
            offsets[row[0].split(",")[0]] = len(text)
            text += _line(row, letter, offsets, rows)
    return text, offsets


def _line(row: list[str], letter: str, offsets: dict[str, int], rows: list[list[str]]) -> str:
    words, up, gloss = row[0].split(","), row[1], row[2]
    pointers = []
    for name in filter(None, [up.removeprefix("&")]):
        symbol = "&" if up.startswith("&") else "!" if letter == "a" else "@"
        pointers.append((symbol, name, "0101" if symbol == "!" else "0000"))
    for other in rows:
        if other[1].removeprefix("&") == words[0] and letter != "a":
            pointers.append(("~", other[0].split(",")[0], "0000"))
        elif other[1] == f"&{words[0]}":
            pointers.append(("&", other[0].split(",")[0], "0000"))
    kind = "s" if up.startswith("&") else letter
    fields = [f"{offsets[words[0]]:08d}", f"{_field(words[0], letter):02d}", kind]
    fields += [f"{len(words):02x}", *(f"{word} 0" for word in words), f"{len(pointers):03d}"]
    for symbol, name, ends in pointers:
        pos = "s" if name == "scorching" else letter
        fields.append(f"{symbol} {offsets[name]:08d} {pos} {ends}")
    return f"{' '.join(fields)}{' 00' if letter == 'v' else ''} | {gloss}  \n"


def _field(word: str, letter: str) -> int:
    if letter != "n":
        return {"a": ADJECTIVE, "v": VERB}[letter]
    if word == "entity":
        return TOPS
    artifacts = "artifact vehicle building car boat ferry barn house mill".split()
    return ARTIFACT if word in artifacts else ANIMAL


def _sense_key(first: str, word: str, letter: str, up: str) -> str:
    if up.startswith("&"):
        return f"{word}%5:{ADJECTIVE:02d}:00:{up[1:]}:00"
    number = {"n": 1, "v": 2, "a": 3}[letter]
    return f"{word}%{number}:{_field(first, letter):02d}:00::"
