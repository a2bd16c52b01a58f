from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import types
from collections.abc import Iterator
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import yaml

import probelight
from probelight import cli
from probelight.cli.parsing import command_parser
from probelight.metrics.power import effective_items, paired, paired_items, two_proportions
from tests.fixtures.checkout import ROOT

DOCS = ROOT / "docs"
GALLERY = DOCS / "images" / "gallery"


class Tolerant(yaml.SafeLoader):
    """Reads mkdocs.yml without what its tags import."""


def _plain(loader: Tolerant, _: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node)
    assert isinstance(node, yaml.ScalarNode)
    return loader.construct_scalar(node)


Tolerant.add_multi_constructor("!", _plain)
Tolerant.add_multi_constructor("tag:yaml.org,2002:python/", _plain)
CONFIG = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=Tolerant)


@pytest.fixture(scope="module")
def hooks() -> types.ModuleType:
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for below in entry.values():
            yield from leaves(below)
    else:
        for below in entry:
            yield from leaves(below)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation_once(hooks: types.ModuleType) -> None:
    there = [path for ending in ("md", "ipynb") for path in DOCS.rglob(f"*.{ending}")]
    pages = [path.relative_to(DOCS).as_posix() for path in there]
    assert sorted(leaves(CONFIG["nav"])) == sorted([*pages, *hooks.PAGES.values()])


def test_the_site_needs_no_other_host_and_opens_from_the_disk() -> None:
    assert CONFIG["theme"]["font"] is False
    assert CONFIG["use_directory_urls"] is False
    assert "analytics" not in CONFIG["extra"]
    for script in CONFIG["extra"]["polyfills"]:
        assert (DOCS / script).is_file()


def test_the_check_builds_the_site_strictly() -> None:
    check = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "mkdocs build --strict" in check
    assert check.index('stage "docs"') < check.index('stage "tests"')


# The reference.


@cache
def tree_of(module: str) -> ast.Module:
    path = ROOT / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def defined(module: str) -> dict[str, ast.ClassDef | ast.FunctionDef]:
    """The public classes and functions of a module: those of `__all__`, if it has one."""
    nodes = {
        node.name: node
        for node in tree_of(module).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    names = {name for name in nodes if not name.startswith("_")}
    for node in tree_of(module).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = set(ast.literal_eval(node.value))
    return {name: node for name, node in nodes.items() if name in names}


def modules_of(room: str) -> list[str]:
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted((ROOT / "probelight" / room).rglob("*.py"))
        if path.stem != "__init__"
    ]


def reference() -> dict[str, list[str]]:
    """The members that the pages list of each module; those of a whole module are all."""
    by_module: dict[str, list[str]] = {}
    for path in (DOCS / "reference").glob("*.md"):
        blocks = re.findall(r"^::: (\S+)\n((?: {4}.*\n)*)", path.read_text("utf-8"), re.MULTILINE)
        for module, options in blocks:
            members = (yaml.safe_load(options) or {}).get("options", {}).get("members")
            by_module.setdefault(module, []).extend(members or defined(module))
    return by_module


CLASSES = ["lightning_modules", "datamodules", "callbacks", "integrations"]
SEAMS = {
    "probelight.models.scorer": ["Scorer", "LikelihoodScorer", "Question"],
    "probelight.probes.record": ["Record"],
    "probelight.probes.catalog": ["ProbeConfig"],
    "probelight.probes.controls": ["Control"],
    "probelight.lightning_modules.base": ["ChoiceModule"],
    "probelight.lightning_modules.keeping": ["Penalty"],
    "probelight.reports.table": [*defined("probelight.reports.table")],
    "probelight.results.frames": ["results_frame", "items_frame"],
    "probelight.results.importers.answers": ["Imported"],
    "probelight.results.record": ["RunRecord"],
    "probelight.commands.command": ["Command"],
}


def public() -> Iterator[tuple[str, str]]:
    yield from (("probelight", name) for name in probelight.__all__)
    for room in CLASSES:
        for module in modules_of(room):
            for name, node in defined(module).items():
                if isinstance(node, ast.ClassDef):
                    yield module, name
    yield from ((module, name) for module in modules_of("metrics") for name in defined(module))
    yield from ((module, name) for module, names in SEAMS.items() for name in names)


def test_everything_public_is_in_the_reference() -> None:
    named = reference()
    missing = [f"{module}.{name}" for module, name in public() if name not in named.get(module, [])]
    assert missing == []


def test_everything_in_the_reference_exists_and_is_documented() -> None:
    for module, names in reference().items():
        if module == "probelight":  # the facade, whose names are other modules'
            assert sorted(names) == sorted(probelight.__all__)
            continue
        nodes = defined(module)
        assert [name for name in names if name not in nodes] == [], module
        assert [name for name in names if not ast.get_docstring(nodes[name])] == [], module


@pytest.mark.parametrize("frame_name", ["numbers", "items"])
def test_every_column_is_described(hooks: types.ModuleType, frame_name: str) -> None:
    rows = "\n".join(hooks.MADE[frame_name]()).splitlines()[2:]
    assert len(rows) > 20
    assert [row for row in rows if not re.fullmatch(r"\| `\w+` \| \S.* \|", row)] == []
    assert f"<!-- made: {frame_name} -->" in text_of("reference/frames.md")


@pytest.mark.thorough
def test_the_command_line_page_has_every_command_with_its_options(hooks: types.ModuleType) -> None:
    assert "\n<!-- made: commands -->\n" in text_of("reference/command_line.md")
    text = "\n".join(hooks.commands())
    sections = dict(chunk.split("\n", 1) for chunk in re.split(r"^## ", text, flags=re.M)[1:])
    assert sections.keys() == cli.SUMMARIES.keys()
    for name in cli.COMMANDS:
        parser = command_parser(name, cli.function_of(name))
        for action in parser._actions:
            typed = action.option_strings[0] if action.option_strings else action.dest.upper()
            if action.default != "==SUPPRESS==":
                assert f"| `{typed}` | " in sections[name], (name, typed)
    assert str(ROOT) not in text
    assert str(Path.home()) + "/" not in text
    assert "\n".join(hooks.commands()) == text


# Links.


@pytest.mark.parametrize(
    ("text", "source", "page", "relinked"),
    [
        ("[a](docs/asking.md)", "README.md", "index.md", "[a](asking.md)"),
        ("[a](docs/python.md#x-y)", "README.md", "index.md", "[a](python.md#x-y)"),
        ("![`a` b](docs/images/a.png)", "README.md", "index.md", "![`a` b](images/a.png)"),
        ("[a](CONTRIBUTING.md#x)", "README.md", "index.md", "[a](contributing.md#x)"),
        ("[a](README.md#x)", "CONTRIBUTING.md", "contributing.md", "[a](index.md#x)"),
        ("[a](../README.md)", "docs/questions.md", "questions.md", "[a](index.md)"),
        ("[a](../../README.md)", "docs/reference/a.md", "reference/a.md", "[a](../index.md)"),
        ("[a](../asking.md)", "docs/reference/a.md", "reference/a.md", "[a](../asking.md)"),
        ("[a](notebooks/b.ipynb)", "docs/python.md", "python.md", "[a](notebooks/b.ipynb)"),
        ("[a](#here)", "README.md", "index.md", "[a](#here)"),
        ("[a](https://b.org/c.md)", "README.md", "index.md", "[a](https://b.org/c.md)"),
        ("[LICENSE](LICENSE)", "README.md", "index.md", "`LICENSE`"),
        ("[card](assets/a/README.md)", "README.md", "index.md", "card (`assets/a/README.md`)"),
        ("[c](../configs/a.yaml)", "docs/a.md", "a.md", "c (`configs/a.yaml`)"),
        ("```\n[a](docs/b.md)\n```", "README.md", "index.md", "```\n[a](docs/b.md)\n```"),
        ("- x\n  ```\n  [a](b)\n  ```\n", "README.md", "index.md", "- x\n  ```\n  [a](b)\n  ```\n"),
    ],
)
def test_links_of_the_repository_work_on_the_site(
    hooks: types.ModuleType, text: str, source: str, page: str, relinked: str
) -> None:
    assert hooks.relinked(text, source, page) == relinked


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_pages_outside_docs_have_only_links_that_the_hooks_know(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert (
        re.findall(r"(?:src|href)=[\"'](?!https?:)[^\"']*|^\[[^\]]+\]: (?!https?:).*", text) == []
    )


def test_the_front_page_is_short_and_leads_to_what_people_search_for() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    headings = re.findall(r"^## (.+)$", text_of("questions.md"), re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}
    anchors = re.findall(r"\]\(docs/questions\.md#([^)]+)\)", readme)
    assert len(anchors) >= 14
    assert set(anchors) <= slugs


# Questions.


def test_the_numbers_of_the_questions_are_those_of_the_code() -> None:
    text = text_of("questions.md")
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 3
    for row in rows:
        items, *percents = (float(cell.replace(",", "")) for cell in row)
        smallest = [paired(items, 0.1), paired(items, 0.3), two_proportions(items)]
        assert [round(100 * value, 1) for value in smallest] == percents
    ten, five, two = (f"{ceil(paired_items(points / 100, 0.3)):,}" for points in (10, 5, 2))
    assert f"10 points take {ten} items, 5 points {five} and 2 points {two}." in text
    three, five, ten = (f"{effective_items(300, seeds, 0.5):.0f}" for seeds in (3, 5, 10))
    worth = f"300 items are worth {three} with three seeds, {five} with five and {ten} with ten"
    assert worth in " ".join(text.split())


def test_every_answer_ends_with_a_link() -> None:
    _, *answers = re.split(r"^## ", text_of("questions.md"), flags=re.MULTILINE)
    assert len(answers) >= 12
    for answer in answers:
        assert re.search(r"\]\([\w./#-]+\)\S*\Z", answer.strip()), answer.splitlines()[0]


@pytest.mark.parametrize("page", ["../README.md", "questions.md", "gallery.md", "demo.md"])
def test_the_commands_of_a_page_can_be_typed(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", "").splitlines()]
    if page == "../README.md":
        lines = [line for line in lines if line.startswith("python ")]  # others install
    assert lines
    for line in lines:
        python, script, *arguments = shlex.split(line, comments=True)
        assert (python, script) == ("python", "train.py")
        with pytest.raises(SystemExit, match=r"^0$"):
            cli.main([*arguments, "--print_config"])
        assert capsys.readouterr().out


# Troubleshooting: each message is where the page says.

ENTRY = re.compile(r"^### (.*)\n(?:<!-- message in (\S+): \"(.+)\" -->\n)?", re.MULTILINE)


def printed_by(path: Path) -> str:
    """The texts of a module, a line each, with {} for what is put into them."""
    texts = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            texts_in = [v.value if isinstance(v, ast.Constant) else "{}" for v in node.values]
            texts.append("".join(map(str, texts_in)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return "\n".join(texts)


def source_of(name: str) -> Path:
    """A file of the checkout, or of an installed package whose messages are passed on."""
    if (ROOT / name).is_file():
        return ROOT / name
    package, _, below = name.partition("/")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / below


@pytest.mark.parametrize(
    ("heading", "name", "fragment"), ENTRY.findall(text_of("troubleshooting.md"))
)
def test_a_message_is_printed_as_the_page_says(heading: str, name: str, fragment: str) -> None:
    assert re.fullmatch(r"`[^`]+`", heading)
    assert fragment.strip(" :;,()") in heading
    assert fragment in printed_by(source_of(name)), f"{name} no longer prints it: reword the entry"


def test_the_page_has_the_messages_that_users_meet() -> None:
    assert len(ENTRY.findall(text_of("troubleshooting.md"))) >= 20


def test_every_picture_of_the_gallery_is_shown_and_small() -> None:
    pictures = re.findall(r"^!\[[^\]]+\]\(images/gallery/([\w.]+)\)", text_of("gallery.md"), re.M)
    there = sorted(GALLERY.iterdir())
    assert sorted(pictures) == [path.name for path in there]
    assert sum(path.stat().st_size for path in there) < 1_000_000
    named = re.findall(r"^`([\w.]+)`:", text_of("gallery.md"), re.MULTILINE)
    assert named == pictures  # how to read it
