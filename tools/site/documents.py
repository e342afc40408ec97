"""The documentation as pages: Markdown, and the code and the stories that it links to.

A page has the path of its file: `docs/museum.md` is `docs/museum.html`, `kafka_ctl/election.py` is
`kafka_ctl/election.py.html`. So most links stay as they are. A fenced block that is a story, a paragraph that is only a
link to a story, and the page of a story each become a figure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_by_name
from pygments.util import ClassNotFound

from kafka_ctl.errors import BadInput
from kafka_ctl.paths import ROOT
from tools.site.figures import figure, is_story
from tools.site.layout import PREFIX, contents, framed, write_file

FIRST = ("README.md", "CHANGES.md", "CONTRIBUTING.md")
MARKDOWN = MarkdownIt("commonmark").enable("table")
PICTURES = (".svg", ".png")
LINKS = {"href", "src"}
NAMED = re.compile(r'(?<=<span class="code-nn">)kafka_ctl[\w.]*(?=</span>)|(?<![\w/.-])(?:[\w-]+/)+[\w-]+\.(?:py|md)')
"""The names of other files in code: a module that it imports, and a path in a comment or a docstring."""
WORDS = re.compile('(?<!">)<code>[^<]*</code>')
"""A word in the type of code that is not a link."""


class Section(NamedTuple):
    """A heading with what stands below it, for the search."""

    address: str
    page: str
    heading: str
    text: str


class Document:
    """One file of the checkout and its page."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.relative_to(ROOT).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tokens = MARKDOWN.parse(self.text) if path.suffix == ".md" else []

    @property
    def address(self) -> str:
        """Of the page, from the site's folder."""
        return address(self.path)

    @property
    def root(self) -> str:
        """The way from the page to the site's folder."""
        return "../" * self.name.count("/")

    @property
    def title(self) -> str:
        """The first heading, or the file's name."""
        return next((plain(words) for _, words in headings(self.tokens)), self.name)

    @cached_property
    def about(self) -> str:
        """Of code the docstring, of a story what it says of itself; of a document nothing."""
        if self.tokens:
            return ""
        lines = [line.removeprefix("# ") for line in self.text.splitlines() if line.startswith("# ")]
        docstring = ast.get_docstring(ast.parse(self.text)) if self.path.suffix == ".py" else "\n".join(lines)
        return " ".join((docstring or "").split())

    def target(self, link: str) -> Path | None:
        """The file that a link leads to; None for an address elsewhere. Raises BadInput where there is no file."""
        if re.match(r"[a-z]+:|#", link):
            return None
        found = (self.path.parent / unquote(link.partition("#")[0])).resolve()
        if not found.is_file():
            raise BadInput(f"{self.name} links to {link}, which is no file of the checkout")
        return found

    @cached_property
    def targets(self) -> list[Path]:
        """All files that the document links to, or names as code."""
        links = [str(child.attrs[name]) for child in self.inside() for name in child.attrs.keys() & LINKS]
        words = [child.content for child in self.inside() if child.type == "code_inline"]
        return [*filter(None, [*map(self.target, links), *map(named, words)])]

    def inside(self) -> Iterator[Token]:
        """The words, links and pictures of all paragraphs."""
        return (child for token in self.tokens for child in token.children or ())


def address(path: Path) -> str:
    """The page of a file, from the site's folder."""
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".ipynb":
        return f"lab/index.html?path={name}"
    if path.suffix in PICTURES:
        return name
    return f"{name.removesuffix('.md')}.html"


def headings(tokens: Sequence[Token]) -> Iterator[tuple[Token, Token]]:
    """Each heading and its words."""
    yield from ((token, tokens[place + 1]) for place, token in enumerate(tokens) if token.type == "heading_open")


def plain(words: Token) -> str:
    """The text of a paragraph or a heading, without its marks."""
    return "".join(" " if child.type == "softbreak" else child.content for child in words.children or ())


def anchors(tokens: Sequence[Token]) -> list[str]:
    """The names of the headings in an address, as code hosts make them: equal ones are numbered from the second on."""
    names = [re.sub(r"[^\w\- ]", "", plain(words).lower()).replace(" ", "-") for _, words in headings(tokens)]
    before = [names[:place].count(name) for place, name in enumerate(names)]
    return [f"{name}-{times}" if times else name for name, times in zip(names, before, strict=True)]


def write(out: Path, files: Iterable[Path] = ()) -> list[Section]:
    """Write the pages of all documents, and of these files, into the site's folder `out`; what can be searched."""
    found = _documents(files)
    for document in found.values():
        page = _page(document, found.keys(), out)
        write_file(out / document.address, page)
        if document.path.name == "README.md" and document.root:
            write_file(out / document.address.replace("README", "index"), page)
        for path in document.targets:
            if path.suffix in PICTURES:
                (out / address(path)).parent.mkdir(parents=True, exist_ok=True)
                copyfile(path, out / address(path))
    return [section for document in found.values() for section in _sections(document)]


def _documents(files: Iterable[Path]) -> dict[Path, Document]:
    """The documents, these files, and all files of the checkout that they link to, and so on."""
    todo = [*(ROOT / name for name in FIRST), *sorted((ROOT / "docs").glob("*.md")), *sorted(files)]
    found: dict[Path, Document] = {}
    for path in todo:
        if path not in found and path.suffix not in (*PICTURES, ".ipynb"):
            found[path] = Document(path)
            todo += found[path].targets
    return found


def _page(document: Document, known: Collection[Path], out: Path) -> str:
    """A document as HTML."""
    if document.path.suffix != ".md":
        main, beside = f"<h1>{escape(document.name)}</h1>\n{_file(document, known, out)}", ""
    else:
        _lead(document)
        parts = [(token.attrGet("id"), words) for token, words in headings(document.tokens) if token.tag == "h2"]
        beside = contents((f"#{name}", plain(words)) for name, words in parts)
        made = str(MARKDOWN.renderer.render([*_blocks(document, known, out)], MARKDOWN.options, {}))
        main = WORDS.sub(lambda words: _named(document, known, words[0]), made)
    return framed(document.title, f'<main id="content">{main}</main>', document.root, beside, document.about)


def _lead(document: Document) -> None:
    """Name the headings, and let the links lead to pages."""
    for (token, _), name in zip(headings(document.tokens), anchors(document.tokens), strict=True):
        token.attrSet("id", name)
    for child in document.inside():
        for name in child.attrs.keys() & LINKS:
            link = str(child.attrs[name])
            if target := document.target(link):
                child.meta["file"] = target
                child.attrSet(name, document.root + address(target) + "".join(link.partition("#")[1:]))


def _blocks(document: Document, known: Collection[Path], out: Path) -> Iterator[Token]:
    """The parts of a page: a fenced block in its colours; a figure above a story and below a link to one."""
    tokens = document.tokens
    for place, token in enumerate(tokens):
        if token.type == "fence":
            shown = figure(token.content, out, document.root) if is_story(token.content) else ""
            code = _named(document, known, coloured(token.content, token.info.strip()))
            yield Token("html_block", "", 0, content=shown + code)
        else:
            yield token
        if token.type == "paragraph_close" and (text := _linked_story(tokens[place - 1])):
            yield Token("html_block", "", 0, content=figure(text, out, document.root))


def _linked_story(words: Token) -> str:
    """The story that a paragraph links to, if it does nothing else."""
    link = (words.children or [words])[0]
    if len(words.children or ()) != 3 or not (path := link.meta.get("file")):
        return ""
    text = Path(path).read_text(encoding="utf-8")
    return text if is_story(text) else ""


def _file(document: Document, known: Collection[Path], out: Path) -> str:
    """A file that is no prose: a story with its figure, or code whose imports and comments lead on."""
    text = document.text
    if is_story(text):
        return figure(text, out, document.root, alone=True) + coloured(text)
    return _named(document, known, coloured(text, document.path.suffix.removeprefix(".")))


def _named(document: Document, known: Collection[Path], code: str) -> str:
    """Code as HTML in which the names of files are links."""

    def lead(found: re.Match[str]) -> str:
        place = named(found[0])
        ours = place in known and place != document.path
        return f'<a href="{document.root}{address(place)}">{found[0]}</a>' if place and ours else found[0]

    return NAMED.sub(lead, code)


def named(words: str) -> Path | None:
    """The file of the checkout with this path or as this module; paths may begin in the package."""
    name = words.replace(".", "/") + ".py" if words.startswith("kafka_ctl.") else words
    places = (ROOT / name, ROOT / "kafka_ctl" / name) if "/" in name and name.endswith((".py", ".md")) else ()
    return next((place for place in places if place.is_file()), None)


def coloured(text: str, language: str = "") -> str:
    """Code as HTML, in the colours of its language if there is one."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        lexer = TextLexer()
    return str(highlight(text, lexer, HtmlFormatter(classprefix=PREFIX)))


def _sections(document: Document) -> Iterator[Section]:
    """The parts that a search finds; of code the docstring, of a story what it says of itself."""
    tokens = document.tokens
    if not tokens:
        yield Section(document.address, document.title, document.name, document.about)
    for section, name in zip(sections(tokens, document.title, document.address), anchors(tokens), strict=True):
        yield section._replace(address=f"{section.address}#{name}")


def sections(tokens: Sequence[Token], page: str, address: str) -> Iterator[Section]:
    """The text below each heading, for the search."""
    starts = [place for place, token in enumerate(tokens) if token.type == "heading_open"]
    for start, end in pairwise([*starts, len(tokens)]):
        heading = plain(tokens[start + 1])
        text = " ".join(plain(token) for token in tokens[start + 2 : end] if token.type == "inline")
        yield Section(address, page, heading, text)
