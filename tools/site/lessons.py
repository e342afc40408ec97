"""The notebooks of the site: which of their cells can run in a browser is read off what they import and use.

A cell cannot when it uses a name that was imported from a package the site does not have (Spark, kazoo, pandas), asks a
lab for a real ZooKeeper or for connections, or uses what such a cell has made. It stays as text, with its
outputs; a sentence at the top of the notebook says where to go on. All other cells are left as they are.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from kafka_ctl.paths import ROOT
from tools import editions
from tools.notebooks import notebooks
from tools.site.imports import Name, lacking

Notebook = dict[str, Any]
NAMES = {
    "pyspark": "Spark",
    "pyarrow": "Spark",
    "kazoo": "a real ZooKeeper",
    "zookeeper": "a real ZooKeeper",
    "wire": "connections",
    "subprocess": "processes",
    "socket": "connections",
    "threading": "threads",
}
"""The names of the missing parts as a reader knows them; packages go by their own names."""
ONWARDS = "`python3 -m kafka_ctl lab` in a clone of the project sets up everything and opens the same notebook."
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")
"""A relative link in Markdown."""


class Lesson(NamedTuple):
    """One notebook as the site has it."""

    path: Path
    """Of the notebook in the checkout, where a starter need not be."""
    book: Notebook
    cells: int
    """Code cells in the source."""
    left_out: int
    """The number of them that cannot run in a browser."""
    lacks: tuple[str, ...]
    """The needs of these cells, in words."""

    @property
    def file(self) -> str:
        """The path in the site's contents."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def title(self) -> str:
        """The first heading."""
        found = re.search(r"^# (.+)$", "\n".join(map(source, self.book["cells"])), re.MULTILINE)
        return found[1] if found else self.path.stem

    @property
    def runs(self) -> bool:
        """True if at least half of it does."""
        return self.left_out * 2 <= self.cells


def lessons(there: Sequence[str]) -> list[Lesson]:
    """The start page, every lesson and its starter; `there` are the modules that the site's wheels bring."""
    books = {path: json.loads(path.read_text(encoding="utf-8")) for path in notebooks()}
    books |= {editions.STARTER / name: json.loads(editions.text(b)) for name, b in editions.starters().items()}
    wanted = {name for book in books.values() for cell in _code(book) for name, _, _ in _imports(parse(source(cell)))}
    missing = lacking(wanted, there)
    return [prepared(path, book, missing) for path, book in books.items()]


def prepared(path: Path, book: Notebook, missing: Mapping[Name, str]) -> Lesson:
    """A notebook without what a browser lacks."""
    made, lost, reasons, left_out = deepcopy(book), dict[str, str](), dict[str, None](), 0
    for place, cell in enumerate(made["cells"]):
        if cell["cell_type"] != "code":
            continue
        tree = parse(source(cell))
        cell["source"], gone = _without(source(cell), tree, missing)
        lost |= gone
        why = _needs(tree, lost)
        bound = _bound(tree) - gone.keys()
        if why is None:
            lost = {name: reason for name, reason in lost.items() if name not in bound}
            continue
        lost |= dict.fromkeys(bound, why)
        reasons[NAMES.get(why, why)] = None
        left_out += 1
        made["cells"][place] = as_text(cell)
    if left_out:
        made["cells"].insert(1, _text_cell("in-a-browser", note(left_out, len(list(_code(book))), tuple(reasons))))
    return Lesson(path, made, len(list(_code(book))), left_out, tuple(reasons))


def note(left_out: int, cells: int, needs: Sequence[str]) -> str:
    """The text of a notebook about the cells that cannot run."""
    which = (
        "Nothing of this lesson runs" if left_out == cells else f"{left_out} of {cells} cells of this lesson do not run"
    )
    return f"> **In a browser.** {which} here, as they need {_listed(needs)}; they are shown as text. {ONWARDS}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def as_text(cell: Notebook) -> Notebook:
    """A code cell as Markdown: the code, and what is stored with it of texts and pictures."""
    parts, attachments = [f"```python\n{source(cell)}\n```"], {}
    for number, output in enumerate(cell["outputs"]):
        data = output.get("data", {})
        if (kind := next((kind for kind in ("image/png", "image/svg+xml") if kind in data), None)) is not None:
            name = f"output-{number}.{'png' if kind.endswith('png') else 'svg'}"
            attachments[name] = {kind: data[kind]}
            parts.append(f"![what the cell shows](attachment:{name})")
        elif text := "".join(output.get("text", data.get("text/plain", ""))).rstrip():
            parts.append(f"```text\n{text}\n```")
    made = _text_cell(cell["id"], "\n\n".join(parts))
    return made | ({"attachments": attachments} if attachments else {})


def _text_cell(name: str, text: str) -> Notebook:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text}


def source(cell: Notebook) -> str:
    return "".join(cell["source"])


def parse(text: str) -> ast.Module:
    """The code of a cell; a line of IPython's own is no code."""
    return ast.parse("\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in text.splitlines()))


def _code(book: Notebook) -> Iterator[Notebook]:
    return (cell for cell in book["cells"] if cell["cell_type"] == "code")


def _imports(tree: ast.Module) -> Iterator[tuple[Name, str, ast.stmt]]:
    """An import of a cell: the module, the name it gets here, and the statement."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (((a.name, ""), a.asname or a.name.partition(".")[0], node) for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (((node.module, a.name), a.asname or a.name, node) for a in node.names)


def _without(text: str, tree: ast.Module, missing: Mapping[Name, str]) -> tuple[str, dict[str, str]]:
    """The code without the imports that fail, and the names that are lost with them."""
    lines: list[str | None] = [*text.splitlines()]
    lost = {here: missing[name] for name, here, _ in _imports(tree) if name in missing}
    for node in {id(node): node for _, here, node in _imports(tree) if here in lost}.values():
        assert isinstance(node, ast.Import | ast.ImportFrom)
        node.names = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) not in lost]
        lines[node.lineno - 1 : node.end_lineno] = [None] * ((node.end_lineno or node.lineno) - node.lineno + 1)
        if node.names:
            lines[node.lineno - 1] = ast.unparse(node)
    return ("\n".join(line for line in lines if line is not None).strip() if lost else text), lost


def _needs(tree: ast.Module, lost: Mapping[str, str]) -> str | None:
    """The lost names that a cell uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in lost and isinstance(node.ctx, ast.Load):
            return lost[node.id]
        if isinstance(node, ast.keyword) and _is_real(node):
            return node.arg
    return None


def _is_real(given: ast.keyword) -> bool:
    """True if this asks a lab for a ZooKeeper that is not in memory, or for connections."""
    value = given.value.value if isinstance(given.value, ast.Constant) else None
    return (given.arg == "zookeeper" and value != "memory") or (given.arg == "wire" and value is not False)


def _bound(tree: ast.Module) -> set[str]:
    """The names that a cell gives values to."""
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return stored | defined | {here for _, here, _ in _imports(tree)}


def linked(found: Iterable[Lesson]) -> set[Path]:
    """The files of the checkout that notebooks link to, in a folder as well, those that these link to, and so on."""
    todo = [(lesson.path, text) for lesson in found for text in [prose(lesson.book)]]
    files: set[Path] = set()
    while todo:
        path, text = todo.pop()
        for link in LINK.findall(text):
            target = (path.parent / link).resolve()
            for file in [target] if target.is_file() else sorted(target.glob("*.*")):
                if file.is_relative_to(ROOT) and file.suffix != ".ipynb" and file not in files:
                    files.add(file)
                    todo += [(file, file.read_text(encoding="utf-8"))] if file.suffix == ".md" else []
    return files


def prose(book: Notebook) -> str:
    """The text of all cells that are no code."""
    return "\n\n".join(source(cell) for cell in book["cells"] if cell["cell_type"] == "markdown")
