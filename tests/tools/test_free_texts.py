from __future__ import annotations

import gzip
import re
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

from tools.free_texts import FREE_TEXTS, free_text_documents

START = "Header.\n*** START OF THIS PROJECT GUTENBERG EBOOK ALICE ***\n\n"
END = "\n\nEnd of Project Gutenberg's Alice\n\nOur licence is long."
STORY = "CHAPTER I\n\n“So it is,” said Mr. Dodgson. “Is it?”\nShe _never_ said—so.\n\nNo more.\n"


def write_text(root: Path, name: str, data: bytes) -> Path:
    path = root / FREE_TEXTS[name].path
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def sentences(name: str, root: Path) -> list[str]:
    return [s for d in free_text_documents(name, root) for s in d.sentences]


def test_the_text_between_header_and_licence_is_split_into_sentences(tmp_path: Path) -> None:
    write_text(tmp_path, "moby_dick", (START + STORY.replace("No more.", "") + END).encode())
    (document,) = free_text_documents("moby_dick", tmp_path)
    assert document.sentences == (
        '"So it is," said Mr. Dodgson.',
        '"Is it?"',
        "She never said -- so.",
    )
    assert (document.key, document.source, document.in_order) == ("moby_dick:0", "moby_dick", True)
    assert document.words == ()


def test_documents_end_with_the_sentence_that_fills_them(tmp_path: Path) -> None:
    text = "\n\n".join(f"Sentence number {i} of the text goes on and on." for i in range(30))
    write_text(tmp_path, "moby_dick", (START + text + END).encode("latin-1"))
    documents = [*free_text_documents("moby_dick", tmp_path)]
    assert [s for d in documents for s in d.sentences] == text.split("\n\n")
    # Sentences of 45 and 46 characters: ten fill 450 when nine or more of them are of 45.
    assert [len(d.sentences) for d in documents] == [10, 10, 10]


def test_a_long_sentence_is_cut_at_its_semicolons(tmp_path: Path) -> None:
    half = "a " * 150
    write_text(tmp_path, "moby_dick", f"{START}B {half}; c {half}.{END}".encode())
    assert [len(s) for s in sentences("moby_dick", tmp_path)] == [303, 303]


def test_each_volume_of_poe_is_read_and_sawyer_only_once(tmp_path: Path) -> None:
    volume = (
        "Legal.\n*END*THE SMALL PRINT!*\nIt was volume {}.\nEnd of The Project Gutenberg Etext\n"
    )
    write_text(tmp_path, "poe", (volume.format("one") + volume.format("two")).encode())
    assert sentences("poe", tmp_path) == ["It was volume one.", "It was volume two."]
    book = "Tom it was.\n\nThat was part of their lives at present.\n"
    write_text(tmp_path, "tom_sawyer", (book + book).encode())
    assert sentences("tom_sawyer", tmp_path) == [
        "Tom it was.",
        "That was part of their lives at present.",
    ]


def test_packed_texts_are_unpacked(tmp_path: Path) -> None:
    path = write_text(tmp_path, "alice", b"")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("alice.txt", START + "Down the hole." + END)
    assert sentences("alice", tmp_path) == ["Down the hole."]
    write_text(tmp_path, "jargon_file", gzip.compress(b"About it.\n\n0\n Numeric zero, no less.\n"))
    assert sentences("jargon_file", tmp_path) == ["0 Numeric zero, no less."]


def r_object(lines: list[str]) -> bytes:
    """Return a character vector as R's lazy-load database keeps it."""
    head = b"X\n" + struct.pack(">III", 3, 0x40201, 0x30500) + struct.pack(">I", 5) + b"UTF-8"
    strings = b"".join(struct.pack(">Ii", 0x40009, len(t)) + t for t in map(str.encode, lines))
    data = head + struct.pack(">II", 0x10, len(lines)) + strings
    return struct.pack(">I", len(data)) + zlib.compress(data)


def test_strings_of_r_objects(tmp_path: Path) -> None:
    novels = r_object(["Emma was", "clever.", "", "So she was."]) + r_object(["Anne was not."])
    write_text(tmp_path, "austen", novels)
    assert sentences("austen", tmp_path) == ["Emma was clever.", "So she was.", "Anne was not."]


def test_books_of_a_sword_module_without_notes_and_titles(tmp_path: Path) -> None:
    book = (
        "<title>Genesis</title><div sID='1'/><w lemma='a'>In</w> the beginning<note>or: at"
        "</note> it was.<div sID='2'/>“Light &amp; day,” he said."
    ).replace("'", '"')
    packed = zlib.compress(book.encode())
    folder = tmp_path / FREE_TEXTS["world_english_bible"].path
    folder.mkdir(parents=True)
    for testament in ("ot", "nt"):
        (folder / f"{testament}.bzs").write_bytes(struct.pack("<III", 0, len(packed), len(book)))
        (folder / f"{testament}.bzz").write_bytes(packed)
    expected = ["In the beginning it was.", '"Light & day," he said.']
    assert sentences("world_english_bible", tmp_path) == 2 * expected


def test_a_missing_file_names_its_package_and_another_edition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"apt-get install pyro4-examples"):
        next(free_text_documents("alice", tmp_path))
    path = write_text(tmp_path, "moby_dick", b"Call me Ishmael.")
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}: no text matches"):
        next(free_text_documents("moby_dick", tmp_path))
