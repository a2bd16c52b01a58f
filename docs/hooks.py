"""Hooks of `mkdocs build`: pages made from files outside docs/, and from the program itself."""

from __future__ import annotations

import html
import posixpath
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from jsonargparse import SUPPRESS
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# Pages of the site whose text is a file at the top of the repository, by that file.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


def on_startup(**_: Any) -> None:
    """Let the build import this checkout's package, whichever is installed."""
    sys.path.insert(0, str(ROOT))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages whose text is outside docs/."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Return the text of a page with links that work on the site and its generated parts."""
    uri = page.file.src_uri
    if page.parent is None:  # nothing to navigate next to it
        page.meta["hide"] = ["navigation"]
    if uri == PAGES["CHANGELOG.md"]:  # the search shows how-tos first
        page.meta["search"] = {"boost": 0.3}
    source = {page: name for name, page in PAGES.items()}.get(uri, f"docs/{uri}")
    markdown = relinked(markdown, source, uri)
    return re.sub(r"(?m)^<!-- made: (\w+) -->$", lambda made: "\n".join(MADE[made[1]]()), markdown)


def relinked(markdown: str, source: str, page: str) -> str:
    """Return a text of the repository with its links as the site needs them.

    A link to a page leads there, wherever its file is; to any other file, it becomes the file's
    path in code font.

    Args:
        markdown: The text.
        source: The file that it is from, relative to the repository.
        page: The page that shows it, relative to docs/.
    """

    def link(found: re.Match[str]) -> str:
        image, text, target = found.groups()
        path, hash_sign, anchor = target.partition("#")
        if ":" in path or not path:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if path not in PAGES and not path.startswith("docs/"):
            return f"`{path}`" if text.strip("`") in {path, target} else f"{text} (`{path}`)"
        there = PAGES.get(path, path.removeprefix("docs/"))
        there = posixpath.relpath(there, posixpath.dirname(page) or ".")
        return f"{image}[{text}]({there}{hash_sign}{anchor})"

    parts = _FENCED.split(markdown)  # code is at the odd places
    return "".join(part if n % 2 else _LINK.sub(link, part) for n, part in enumerate(parts))


def commands() -> Iterator[str]:
    """Yield the reference of the command line: every command, and its options by group."""
    from probelight import cli
    from probelight.cli.parsing import command_parser, fit_help
    from probelight.commands.command import DECLARED

    for name, summary in cli.SUMMARIES.items():
        yield f"\n## {name}\n"
        if name not in cli.COMMANDS:  # LightningCLI's, whose hundreds of options take seconds
            yield f"```text\n{fit_help(name, summary)}\n```"
            continue
        function = cli.function_of(name)
        parser = command_parser(name, function)
        yield f"{parser.description}\n\n```bash\n{DECLARED[function].example}\n```"
        defaults = parser.get_defaults(skip_validation=True)
        groups: dict[str, list[Any]] = {}
        for group in parser._action_groups:
            known = [action for action in group._group_actions if action.default != SUPPRESS]
            prefixes = {action.dest.rpartition(".")[0] for action in known}
            prefix = min(prefixes - {""}, key=len, default="")
            title = html.escape(" ".join(str(group.title).split()))
            groups.setdefault(prefix and f"`--{prefix}.*`: {title}", []).extend(known)
        for title, actions in groups.items():
            indent = "    " if title else ""
            yield f'\n??? abstract "{title}"\n' if title else ""
            yield f"{indent}| option | what it does |\n{indent}|---|---|"
            yield from (indent + _row(action, defaults.get(action.dest)) for action in actions)


def _row(action: Any, default: object) -> str:
    """Return the row of an option in the table of its group."""
    typed = action.option_strings or [action.dest.upper()]
    hint = getattr(action, "_typehint", None)
    cell = html.escape(" ".join((action.help or "").split()), quote=False)
    if get_origin(hint) is Literal:
        cell += f" One of {', '.join(f'`{value}`' for value in get_args(hint))}."
    if default not in (None, "", [], ()):
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        cell += f" (default: `{shown.removeprefix(f'{ROOT}/probelight/')}`)"
    elif action.required:
        cell += " (required)"
    return f"| `{typed[0]}` | {cell.replace('|', chr(92) + '|')} |"


def _columns(name: str) -> Iterator[str]:
    """Yield the table of a frame's columns, as the program describes them."""
    from probelight.results import frames

    yield "| column | what it holds |\n|---|---|"
    yield from (f"| `{column}` | {text} |" for column, text in getattr(frames, name).items())


# The parts of pages that are made, by NAME in <!-- made: NAME -->.
MADE: dict[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "numbers": lambda: _columns("NUMBERS"),
    "items": lambda: _columns("ITEMS"),
}
