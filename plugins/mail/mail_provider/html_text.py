"""Converts HTML to readable plain text. Runs no scripts and fetches no resources.

Tags are found by one expression. Python's HTML parser compiles expressions while it runs, which costs more than all the rest.
"""

from __future__ import annotations

import re
from html import unescape

_HIDDEN = {"script", "style", "head", "title", "template", "noscript", "svg"}
#: Hidden elements whose contents have no tags.
_RAW = {"script", "style", "title"}
_BLOCKS = {"p", "div", "table", "tr", "ul", "ol", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "section",
           "article", "header", "footer", "hr", "form", "dl", "dt", "dd", "center"}  # fmt: skip
_PARAGRAPHS = {"p", "blockquote", "pre", "ul", "ol", "table", "h1", "h2", "h3", "h4", "h5", "h6", "hr"}
#: Elements that end a head without its end tag.
_BODY = {"body", "p", "div", "table", "br", "a", "h1", "h2", "h3", "span", "img", "font", "center"}

_TAG = re.compile(
    r"<(?:(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*)(?P<attributes>[^>\"']*(?:(?:\"[^\"]*\"|'[^']*')[^>\"']*)*)>"
    r"|!--(?P<comment>.*?)(?:--!?>|\Z)|[!?/][^>]*(?:>|\Z))",
    re.DOTALL,
)
_RAW_END = {name: re.compile(rf"</{name}\b[^>]*>", re.IGNORECASE) for name in _RAW}
_ATTRIBUTE = re.compile(r"([^\s=/\"'>]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*))", re.DOTALL)
_SPACES = re.compile(r"[ \t\r\n\f]+")
_LINE_ENDS = re.compile(r"[ \t]*\n[ \t]*")
_BLANK_LINES = re.compile(r"\n{3,}")


def html_to_text(html: str) -> str:
    """The text of a page of HTML."""
    reader = _Reader()
    at = 0
    while tag := _TAG.search(html, at):
        reader.text(html[at : tag.start()])
        at = tag.end()
        name = (tag["name"] or "").lower()
        if tag["end"]:
            reader.end(name)
        elif name:
            reader.start(name, tag["attributes"])
            if name in _RAW and (end := _RAW_END[name].search(html, at)):
                at = end.end()
                reader.end(name)
    reader.text(html[at:])
    text = _LINE_ENDS.sub("\n", "".join(reader.pieces))
    return _BLANK_LINES.sub("\n\n", text).strip()


class _Reader:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.hidden: list[str] = []
        self.verbatim = 0
        self.link: tuple[str, int] | None = None

    def start(self, name: str, attributes: str) -> None:
        if name in _HIDDEN:
            if not attributes.endswith("/"):
                self.hidden.append(name)
            return
        if self.hidden == ["head"] and name in _BODY:
            self.hidden = []
        if self.hidden:
            return
        if name == "br":
            self.pieces.append("\n")
        elif name == "li":
            self.pieces.append("\n- ")
        elif name in ("td", "th"):
            self.pieces.append(" ")
        elif name == "a":
            self.link = (_attribute(attributes, "href"), len(self.pieces))
        elif name == "img" and (alt := _attribute(attributes, "alt")):
            self.pieces.append(f"[{alt}]")
        self._break(name)
        self.verbatim += name == "pre"

    def end(self, name: str) -> None:
        if name in self.hidden:
            del self.hidden[self.hidden.index(name) :]
            return
        if self.hidden:
            return
        if name == "a" and self.link:
            href, start = self.link
            self.link = None
            shown = "".join(self.pieces[start:]).strip()
            if href.startswith(("http:", "https:", "mailto:")) and href.removeprefix("mailto:") != shown:
                self.pieces.append(f" <{href}>")
        self.verbatim = max(self.verbatim - (name == "pre"), 0)
        self._break(name)

    def text(self, data: str) -> None:
        if not data or self.hidden:
            return
        if "&" in data:
            data = unescape(data)
        if not self.verbatim:
            data = _SPACES.sub(" ", data)
            if not self.pieces or self.pieces[-1].endswith(("\n", " ")):
                data = data.lstrip(" ")
        if data:
            self.pieces.append(data)

    def _break(self, name: str) -> None:
        if name in _BLOCKS:
            self.pieces.append("\n\n" if name in _PARAGRAPHS else "\n")


def _attribute(attributes: str, name: str) -> str:
    """The value of an attribute, or an empty text."""
    for key, double, single, bare in _ATTRIBUTE.findall(attributes):
        if key.lower() == name:
            return unescape(double or single or bare).strip()
    return ""
