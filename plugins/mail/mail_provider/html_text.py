"""Converts HTML to readable plain text. Runs no scripts and fetches no resources."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_HIDDEN = {"script", "style", "head", "title", "template", "noscript", "svg"}
_BLOCKS = {"p", "div", "table", "tr", "ul", "ol", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "section",
           "article", "header", "footer", "hr", "form", "dl", "dt", "dd", "center"}  # fmt: skip
_PARAGRAPHS = {"p", "blockquote", "pre", "ul", "ol", "table", "h1", "h2", "h3", "h4", "h5", "h6", "hr"}


def html_to_text(html: str) -> str:
    """The text of a page of HTML."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", "".join(reader.pieces))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.hidden = 0
        self.verbatim = 0
        self.link: tuple[str, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self.hidden += 1
        elif tag == "br":
            self.pieces.append("\n")
        elif tag == "li":
            self.pieces.append("\n- ")
        elif tag in ("td", "th"):
            self.pieces.append(" ")
        elif tag == "a":
            self.link = (dict(attrs).get("href") or "", len(self.pieces))
        elif tag == "img" and (alt := dict(attrs).get("alt")):
            self.pieces.append(f"[{alt}]")
        self._break(tag)
        self.verbatim += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in _HIDDEN:
            self.hidden = max(self.hidden - 1, 0)
        elif tag == "a" and self.link:
            href, start = self.link
            self.link = None
            shown = "".join(self.pieces[start:]).strip()
            if href.startswith(("http:", "https:", "mailto:")) and href.removeprefix("mailto:") != shown:
                self.pieces.append(f" <{href}>")
        self.verbatim = max(self.verbatim - (tag == "pre"), 0)
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if self.hidden:
            return
        if self.verbatim:
            self.pieces.append(data)
            return
        text = re.sub(r"[ \t\r\n\f]+", " ", data)
        at_start = not self.pieces or self.pieces[-1].endswith(("\n", " "))
        self.pieces.append(text.lstrip(" ") if at_start else text)

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS and not self.hidden:
            self.pieces.append("\n\n" if tag in _PARAGRAPHS else "\n")
