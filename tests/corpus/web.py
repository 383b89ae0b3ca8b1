"""Feeds of every version, well-formed and not, and what feedparser says of each.

Each case is a file whose first line is its content type. The expected value is a list of entries.
"""

import calendar
import codecs
import datetime
import html
import io
import json
import re
import sys
from pathlib import Path

import feedparser

BASE = "http://corpus.example/feeds/feed.xml"
RSS = '<rss version="2.0"{ns}><channel><title>T</title><link>http://x.example/</link><description>d</description>{items}</channel></rss>'
ATOM = '<feed xmlns="http://www.w3.org/2005/Atom"{ns}><title>T</title><id>urn:f</id><link href="http://x.example/"/>{items}</feed>'
ATOM03 = '<feed version="0.3" xmlns="http://purl.org/atom/ns#"{ns}><title>T</title><link rel="alternate" type="text/html" href="http://x.example/"/>{items}</feed>'
NAMESPACES = (
    ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/"'
    ' xmlns:media="http://search.yahoo.com/mrss/" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
    ' xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dcterms="http://purl.org/dc/terms/"'
)
DATE = "Tue, 28 Jul 2026 12:30:00 GMT"

cases: list[tuple[str, str, bytes]] = []


def case(name: str, text: str | bytes, media: str = "application/xml", charset: str = "utf-8") -> None:
    cases.append((name, media, text if isinstance(text, bytes) else text.encode(charset)))


def rss(name: str, *items: str, ns: str = NAMESPACES, media: str = "application/rss+xml") -> None:
    case(f"rss: {name}", RSS.format(ns=ns, items="".join(f"<item>{item}</item>" for item in items)), media)


def atom(name: str, *items: str, ns: str = "", form: str = ATOM) -> None:
    kind = "atom 0.3" if form is ATOM03 else "atom"
    case(f"{kind}: {name}", form.format(ns=ns, items="".join(f"<entry>{item}</entry>" for item in items)), "application/atom+xml")


ITEM = "<title>One</title><link>http://x.example/1</link>"

# Versions and namespaces.
for version in ("0.91", "0.92", "0.93", "0.94", "2.0", "2.0.1", "", "3"):
    case(f"version {version}", RSS.replace("2.0", version).format(ns="", items=f"<item>{ITEM}<description>a</description></item>"))
for uri in (
    "http://backend.userland.com/rss2", "http://backend.userland.com/RSS2", "http://blogs.law.harvard.edu/tech/rss",
    "http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/", "urn:unknown",
):  # fmt: skip
    rss(f"default namespace {uri}", f"{ITEM}<description>a</description><pubDate>{DATE}</pubDate>", ns=f' xmlns="{uri}"')
prefixed = re.sub(r"<(/?)(?!rss)(\w)", r"<\1r:\2", RSS).replace("{ns}", ' xmlns:r="http://backend.userland.com/rss2"')
case("prefixed rss", prefixed.format(items="<r:item><r:title>One</r:title><r:link>http://x.example/1</r:link></r:item>"))
prefixed = re.sub(r"<(/?)(\w)", r"<\1a:\2", ATOM).replace("xmlns=", "xmlns:a=").replace("{ns}", "")
case("prefixed atom", prefixed.format(items='<a:entry><a:title>One</a:title><a:link href="http://x.example/1"/><a:id>urn:1</a:id></a:entry>'))
for uri in ("http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/"):
    case(
        f"rdf {uri}",
        f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="{uri}"{NAMESPACES}><channel rdf:about="http://x.example/">'
        "<title>T</title><link>http://x.example/</link><items><rdf:Seq><rdf:li rdf:resource='http://x.example/1'/></rdf:Seq></items></channel>"
        "<image rdf:about='http://x.example/i'><title>Image</title><url>http://x.example/i.png</url><link>http://x.example/</link></image>"
        f"<item rdf:about='http://x.example/1'>{ITEM}<description>a &amp; b</description><dc:creator>Ann</dc:creator>"
        "<dc:date>2026-07-28T12:30:00+02:00</dc:date><dc:subject>Boats</dc:subject><content:encoded>&lt;p&gt;Long &lt;b&gt;text&lt;/b&gt;.&lt;/p&gt;</content:encoded></item>"
        "<textinput><title>Search</title><link>http://x.example/s</link></textinput></rdf:RDF>",
        "application/rdf+xml",
    )
case("cdf", '<channel href="http://x.example/"><title>T</title><item href="http://x.example/1" lastmod="2026-07-28T12:30:00Z"><title>One</title><abstract>a</abstract></item></channel>')
case("upper case", RSS.format(ns="", items=f"<ITEM><TITLE>One</TITLE><LINK>http://x.example/1</LINK><PUBDATE>{DATE}</PUBDATE></ITEM>"))

# Identities and links.
for attributes in ("", ' isPermaLink="true"', ' isPermaLink="false"', ' ispermalink="false"'):
    rss(f"guid{attributes}", f"<title>One</title><guid{attributes}>http://x.example/guid</guid>", f"{ITEM}<guid{attributes}>http://x.example/guid</guid>")
rss("guid that is no link", f"{ITEM}<guid isPermaLink='false'>tag:1</guid>", "<title>Two</title><guid isPermaLink='false'>tag:2</guid>")
rss("relative guid", "<title>One</title><guid>/posts/1</guid>")
rss("relative link", "<title>One</title><link>/posts/1?a=1&amp;b=2#c</link>", "<title>Two</title><link>posts/2</link>")
rss("link with spaces", "<title>One</title><link>\n  http://x.example/1\n</link>", "<title>Two</title><link><![CDATA[ http://x.example/2 ]]></link>")
rss("links of atom", f'{ITEM}<atom:link href="http://x.example/atom" rel="alternate"/>', '<title>Two</title><atom:link href="http://x.example/2"/>', f'{ITEM}<atom:link rel="self" href="http://x.example/self"/>')
rss("links of both kinds", '<title>One</title><atom:link href="http://x.example/a"/><link>http://x.example/b</link>')
rss("no title", "<link>http://x.example/1</link><description>Only text here</description>")
rss("media title", "<media:title>Media</media:title><title>One</title>", "<title>Two</title><media:title>Media</media:title>", "<media:group><media:title>Media</media:title></media:group><title>Three</title>", "<media:group><media:title>Four</media:title></media:group>")
rss("dc title", "<dc:title>One</dc:title><link>http://x.example/1</link>", "<title>Two</title><dc:title>Other</dc:title>")
rss("two titles", "<title>One</title><title>Other</title>")
rss("image in an item", f"<image><url>http://x.example/i.png</url><title>Image</title></image>{ITEM}", f"{ITEM}<image><title>Image</title><link>http://x.example/i</link></image>")
rss("source", f"{ITEM}<source url='http://y.example/'>Elsewhere</source>")
rss("xml base", "<title>One</title><link xml:base='http://y.example/d/'>1</link>")
atom("links", *(
    f"<title>{number}</title>{links}"
    for number, links in enumerate((
        '<link href="http://x.example/1"/>',
        '<link rel="alternate" type="text/html" href="http://x.example/2"/><link rel="self" type="application/atom+xml" href="http://x.example/s"/>',
        '<link rel="self" href="http://x.example/s"/><link rel="alternate" href="http://x.example/3"/>',
        '<link rel="edit" href="http://x.example/e"/><link rel="replies" type="text/html" href="http://x.example/r"/><link rel="alternate" type="text/html" href="http://x.example/4" title="t"/>',
        '<link rel="alternate" type="application/xhtml+xml" href="http://x.example/5"/>',
        '<link rel="enclosure" type="audio/mpeg" length="1" href="http://x.example/6.mp3"/><link href="http://x.example/6"/>',
        '<link rel="ALTERNATE" type="TEXT/HTML" href="http://x.example/7"/>',
        '<link rel="alternate" href="/8"/>',
        '<link href="http://x.example/9" type="application/json"/><link href="http://x.example/9b"/>',
    ))
))  # fmt: skip
atom("bases", '<title>One</title><link href="1"/>', '<title>Two</title><link xml:base="http://z.example/" href="2"/>', ns=' xml:base="http://y.example/d/e"')
atom("id that is a link", "<title>One</title><id>http://x.example/1</id>", "<title>Two</title><id>tag:x.example,2026:2</id>")
atom("source of an entry", '<source><title>Other</title><link href="http://y.example/"/><updated>2001-01-01T00:00:00Z</updated></source><title>One</title><link href="http://x.example/1"/><updated>2026-07-28T12:30:00Z</updated>')

# Texts and their types.
for kind, text in (
    ("", "Plain &amp; simple"), (' type="text"', "a &lt; b"), (' type="html"', "&lt;b&gt;Bold&lt;/b&gt; &amp;amp; more"),
    (' type="xhtml"', '<div xmlns="http://www.w3.org/1999/xhtml"><p>Some <em>words</em> &amp; more</p></div>'),
    (' type="text/html"', "&lt;i&gt;Words&lt;/i&gt;"), (' type="text/plain"', "a &lt;b&gt; c"), (' type="application/xhtml+xml"', '<div xmlns="http://www.w3.org/1999/xhtml">Words</div>'),
    (' type="nonsense"', "Some words"), (' type="html/"', "Some words"), (' type="text/x-markdown"', "*Some* words"), (' type=""', "Some words"), (' type="html; charset=utf-8"', "&lt;p&gt;Some words&lt;/p&gt;"),
    (' type="html"', "<![CDATA[<p>In <b>CDATA</b></p>]]>"),
):  # fmt: skip
    atom(f"content{kind}", f'<title>One</title><link href="http://x.example/1"/><content{kind}>{text}</content>', f"<title{kind}>{text}</title><summary{kind}>{text}</summary>")
for mode, kind, text in (
    ("escaped", "text/html", "&lt;p&gt;Some &lt;b&gt;words&lt;/b&gt;&lt;/p&gt;"), ("xml", "application/xhtml+xml", '<div xmlns="http://www.w3.org/1999/xhtml"><p>Some words</p></div>'),
    ("base64", "text/html", "PHA+U29tZSB3b3JkczwvcD4="), ("escaped", "text/plain", "Some words"), ("xml", "text/plain", "Some words"),
):  # fmt: skip
    atom(
        f"{mode} {kind}",
        f'<title mode="{mode}" type="{kind}">{text}</title><link rel="alternate" type="text/html" href="http://x.example/1"/><id>urn:1</id>'
        f'<issued>2026-07-28T12:30:00+02:00</issued><modified>2026-07-29T10:00:00Z</modified><created>2026-07-27T10:00:00Z</created>'
        f'<author><name>Ann</name><email>ann@x.example</email></author><summary mode="{mode}" type="{kind}">{text}</summary><content mode="{mode}" type="{kind}">{text}</content>',
        form=ATOM03,
    )
rss("titles with markup", *(
    f"<title>{title}</title><link>http://x.example/{number}</link>"
    for number, title in enumerate((
        "AT&amp;T", "AT&amp;amp;T", "a &lt; b", "&lt;b&gt;Bold&lt;/b&gt; title", "<![CDATA[<i>In</i> CDATA &amp; more]]>", "<![CDATA[Vec<T> & more]]>",
        "Vec&lt;T&gt;", "Caf&#233; &#8212; &#x201c;x&#x201d;", "&amp;#8217;quoted&amp;#8217;", "  many \n spaces  ", "&amp;lt;p&amp;gt; twice", "C++ &amp;&amp; C#", "100% &euro; &nbsp;x",
    ))
))  # fmt: skip
rss("descriptions", *(
    f"<title>Item {number}</title><description>{text}</description>"
    for number, text in enumerate((
        "Plain", "&lt;p&gt;One&lt;/p&gt;&lt;p&gt;Two&lt;/p&gt;", "<![CDATA[<p>A <a href='/rel'>link</a> and <img src='i.png' alt='picture'/></p>]]>", "a &amp;amp; b", "", "&lt;script&gt;evil()&lt;/script&gt;Good",
        "<![CDATA[One]]> and <![CDATA[two]]>", "&lt;ul&gt;&lt;li&gt;a&lt;li&gt;b&lt;/ul&gt;", "<p>Not <b>escaped</b></p> here", "Line&lt;br&gt;break", "Tab\tand\r\nline", "&lt;table&gt;&lt;tr&gt;&lt;td&gt;cell&lt;/td&gt;&lt;/tr&gt;&lt;/table&gt;",
    ))
))  # fmt: skip
rss(
    "contents",
    f"{ITEM}<description>Short</description><content:encoded><![CDATA[<p>The <b>long</b> text</p>]]></content:encoded>",
    f"{ITEM}<content:encoded>&lt;p&gt;Only content&lt;/p&gt;</content:encoded>",
    f"{ITEM}<content:encoded>&lt;p&gt;First&lt;/p&gt;</content:encoded><description>After</description>",
    f"{ITEM}<description>Short</description><itunes:summary>Longer of itunes</itunes:summary>",
    f"{ITEM}<itunes:summary>Only itunes</itunes:summary>",
    f"{ITEM}<dc:description>Of Dublin Core</dc:description>",
    f"{ITEM}<media:description>Of media</media:description>",
    f'{ITEM}<body xmlns="http://www.w3.org/1999/xhtml"><p>In a body</p></body>',
    f"{ITEM}<fullitem>Full item</fullitem>",
)

# Dates.
rss("dates", *(
    f"<title>Item {number}</title><pubDate>{date}</pubDate>"
    for number, date in enumerate((
        DATE, "28 Jul 2026 12:30:00 +0200", "Tue, 28 Jul 2026 12:30 EST", "Tue, 28 Jul 26 12:30:00 PDT", "2026-07-28T12:30:00Z", "2026-07-28T12:30:00.123-07:00", "2026-07-28 12:30:00", "2026-07-28", "2026-07", "2026",
        "20260728", "Tue Jul 28 12:30:00 2026", "Tue, 28 July 2026 12:30:00 GMT", "Jul 28 2026 12:30:00 GMT", "Mon, 1 Jan 1990 00:00:00 +0000", "Sun, 31 Dec 1950 23:59:59 GMT", "never", "", "Tue, 28 Jul 2026", "2026-07-28T12:30+05:30",
        "Tue, 28 Jul 2026 7:05:00 +0000", "Wed, 29 Feb 2024 10:00:00 GMT", "Tue, 28 Jul 2026 12:30:00 GMT+02:00", "\n Tue, 28 Jul 2026\n 12:30:00 GMT ", "2026-07-28T12:30Z", "2026-209", "Fri, 2006/09/15 08:19:53 EDT", "Tue, 28 Jul 2026 12:30:00 UT",
    ))
))  # fmt: skip
rss("dates of other elements", f"{ITEM}<dc:date>2026-07-28</dc:date>", f"{ITEM}<dcterms:modified>2026-07-28T01:02:03Z</dcterms:modified>", f"{ITEM}<dcterms:issued>2026-07-28T01:02:03Z</dcterms:issued>", f"{ITEM}<pubDate>{DATE}</pubDate><dc:date>2026-07-29</dc:date>", f"{ITEM}<atom:updated>2026-07-28T01:02:03Z</atom:updated>")
atom("dates", "<title>One</title><published>2026-07-28T12:30:00Z</published><updated>2026-07-29T12:30:00Z</updated>", "<title>Two</title><updated>2026-07-29T12:30:00.5+01:00</updated>", "<title>Three</title><published>2026-07-28</published>")

# People, categories, enclosures.
rss("authors", *(
    f"<title>Item {number}</title>{author}"
    for number, author in enumerate((
        "<author>ann@x.example (Ann Berg)</author>", "<author>Ann Berg</author>", "<author>ann@x.example</author>", "<dc:creator>Ann Berg</dc:creator>", "<dc:creator><![CDATA[Ann Berg]]></dc:creator>", "<itunes:author>Ann Berg</itunes:author>",
        "<author>Ann Berg &lt;ann@x.example&gt;</author>", "<dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator>", "<author><name>Ann</name><email>a@x.example</email></author>", "<author/>",
    ))
))  # fmt: skip
atom("authors", "<title>One</title><author><name>Ann Berg</name></author>", "<title>Two</title><author><name>Ann</name><email>ann@x.example</email><uri>http://ann.example/</uri></author>", "<title>Three</title><contributor><name>Carl</name></contributor>", "<title>Four</title><author><email>ann@x.example</email></author>")
rss("categories", f"{ITEM}<category>Boats</category><category domain='d'>Sea</category><category/>", f"{ITEM}<itunes:keywords>a, b,c</itunes:keywords>", f"{ITEM}<dc:subject>Subject</dc:subject><media:category>Media</media:category>")
atom("categories", "<title>One</title><category term='boats' label='Boats'/><category term='sea' scheme='http://s.example/'/>")
rss(
    "enclosures",
    f'{ITEM}<enclosure url="http://x.example/1.mp3" length="1" type="audio/mpeg"/>',
    f'{ITEM}<media:content url="http://x.example/1.jpg" medium="image"/>',
    f'{ITEM}<media:group><media:content url="http://x.example/2.mp4"/></media:group>',
    f'{ITEM}<enclosure url="http://x.example/a%20b.mp3?x=1&amp;y=2"/><enclosure url="http://x.example/2.mp3"/>',
)

# Broken XML.
for name, text in (
    ("undeclared prefix", RSS.format(ns="", items=f"<item>{ITEM}<dc:creator>Ann</dc:creator><content:encoded>&lt;p&gt;Text&lt;/p&gt;</content:encoded></item>")),
    ("bare ampersands", RSS.format(ns="", items="<item><title>A & B</title><link>http://x.example/?a=1&b=2</link></item>")),
    ("entities of HTML", RSS.format(ns="", items="<item><title>Caf&eacute; &ndash; &hellip;</title><description>&nbsp;x&copy;</description></item>")),
    ("no end", RSS.format(ns="", items=f"<item>{ITEM}</item><item><title>Two</title><link>http://x.example/2</link></item>").partition("</channel>")[0]),
    ("cut", RSS.format(ns="", items=f"<item>{ITEM}</item><item><title>Two</title><link>http://x.example/2</link><desc").partition("</channel>")[0]),
    ("wrong nesting", RSS.format(ns="", items=f"<item>{ITEM}<description><p>a<b>c</p></b></description></item>")),
    ("space before the declaration", "\n <?xml version='1.0'?>" + RSS.format(ns="", items=f"<item>{ITEM}</item>")),
    ("text before the declaration", "Warning: x\n<?xml version='1.0'?>" + RSS.format(ns="", items=f"<item>{ITEM}</item>")),
    ("doctype", "<!DOCTYPE rss PUBLIC '-//Netscape Communications//DTD RSS 0.91//EN' 'http://my.netscape.com/publish/formats/rss-0.91.dtd'>" + RSS.format(ns="", items=f"<item>{ITEM}</item>")),
    ("comments", RSS.format(ns="", items=f"<!-- <item><title>No</title></item> --><item>{ITEM}<!-- x --></item>")),
    ("processing instructions", "<?xml version='1.0'?><?xml-stylesheet href='x.xsl'?>" + RSS.format(ns="", items=f"<item>{ITEM}</item>")),
    ("attributes without quotation marks", RSS.format(ns="", items=f"<item>{ITEM}<enclosure url=http://x.example/1.mp3 length=1 type=audio/mpeg /></item>")),
    ("control character", RSS.format(ns="", items="<item><title>A\x0bB</title><link>http://x.example/1</link></item>")),
    ("items outside of the channel", "<rss version='2.0'><channel><title>T</title></channel>" + f"<item>{ITEM}</item></rss>"),
    ("empty", RSS.format(ns="", items="")),
    ("empty items", RSS.format(ns="", items="<item/><item></item>")),
):  # fmt: skip
    case(f"broken: {name}", text)

# Encodings.
words = {"iso-8859-1": "Café", "windows-1252": "“Café” €", "iso-8859-15": "Café €", "utf-8": "Café 日本", "utf-16": "Café 日本", "shift_jis": "日本語", "euc-jp": "日本語", "gb2312": "你好", "gbk": "你好", "big5": "你好", "euc-kr": "안녕", "koi8-r": "Привет", "windows-1251": "Привет", "iso-8859-2": "Příliš", "windows-1250": "Příliš", "iso-8859-7": "Καλημέρα"}  # fmt: skip
for charset, word in words.items():
    text = RSS.format(ns="", items=f"<item><title>{word}</title><description>{word}</description></item>")
    case(f"{charset}, declared", f"<?xml version='1.0' encoding='{charset}'?>{text}", "application/xml", charset)
    case(f"{charset}, in the header", text, f"application/xml; charset={charset}", charset)
text = RSS.format(ns="", items="<item><title>Café 日本</title></item>")
for name, charset, bom in (("utf-16-le", "utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", "utf-16-be", codecs.BOM_UTF16_BE), ("utf-8", "utf-8", codecs.BOM_UTF8), ("utf-32-le", "utf-32-le", codecs.BOM_UTF32_LE), ("utf-32-be", "utf-32-be", codecs.BOM_UTF32_BE)):  # fmt: skip
    case(f"{name} with a mark", bom + text.encode(charset))
    case(f"{name} without a mark", f"<?xml version='1.0'?>{text}".encode(charset))
case("a wrong declaration", f"<?xml version='1.0' encoding='iso-8859-1'?>{text}", "application/xml; charset=utf-8")
case("utf-8 that was encoded twice", text.replace("日本", "").encode().decode("latin-1"), "application/xml; charset=utf-8")
case("windows-1252 called iso-8859-1", "<?xml version='1.0' encoding='iso-8859-1'?>" + RSS.format(ns="", items="<item><title>It&#146;s</title></item>"))


def plain(value: str | None, kind: str = "text/html") -> str:
    """The words of a text that may be HTML."""
    if kind == "text/plain":
        return " ".join((value or "").split())
    text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", value or "")
    return " ".join(html.unescape(text).split())


def time(parsed: tuple | None) -> str | None:
    if parsed is None:
        return None
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=calendar.timegm(parsed))
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def expected(media: str, body: bytes) -> list[dict[str, object]]:
    feed = feedparser.parse(io.BytesIO(body), response_headers={"content-type": media, "content-location": BASE}, sanitize_html=False)
    entries = []
    for entry in feed.entries:
        contents = [one.value for one in entry.get("content", [])] or [entry.get("summary", "")]
        entries.append(
            {
                "title": plain(entry.get("title"), entry.get("title_detail", {}).get("type", "text/html")),
                # feedparser takes every ID that is not declared otherwise for a link.
                "link": entry.get("link") if str(entry.get("link")).startswith("http") else None,
                "dates": [date for date in map(time, (entry.get("published_parsed"), entry.get("updated_parsed"))) if date],
                "author": plain(entry.get("author")),
                "categories": [tag.term for tag in entry.get("tags", []) if tag.term],
                "enclosures": [one.href for one in entry.get("enclosures", [])]
                + [one["url"] for one in entry.get("media_content", []) if "url" in one],
                "words": [re.findall(r"\w+", plain(content)) for content in contents],
            }
        )
    return entries


def main() -> None:
    directory = Path(sys.argv[1])
    printed = []
    for number, (name, media, body) in enumerate(cases):
        (directory / f"{number}.feed").write_bytes(media.encode() + b"\n" + body)
        printed.append({"name": name, "reference": f"feed/{number}.feed", "expected": expected(media, body)})
    json.dump(printed, sys.stdout)


main()
