//! Feeds of every kind, read as a digest and item by item.

use super::*;

const RSS2: &str = include_str!("../../fixtures/rss2.xml");
const ATOM: &str = include_str!("../../fixtures/atom.xml");
const JSON: &str = include_str!("../../fixtures/feed.json");

fn web(content_type: &str, body: impl Into<Vec<u8>>) -> Web {
    Recording::new().with("https://f.example/feed", content_type, body).web("news = \"https://f.example/feed\"")
}

/// The references of the items that a digest links to, as a client resolves them.
fn items(digest: &str) -> Vec<String> {
    digest.split("[text](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

#[test]
fn rss_2_is_a_digest() {
    let web = web("application/rss+xml", RSS2);
    let digest = markdown(&web, "news");
    has(
        &digest,
        &[
            "# Harbour & Tide\n\nNews for people with small boats\n\n<https://harbour.example/>\n",
            "## New buoys at the north pier\n\n2026-07-28 09:30:00Z · Marit Olsen · \
             [source](https://f.example/2026/buoys?utm=feed&x=1) · [text](news/items/",
            "\nThree green buoys & one red.\n",
            "## Storm warning: 5 \\< wind \\< 9\n\n2026-07-27 20:15:00Z · [source](https://harbour.example/2026/storm)",
            "\nWind “up to” 9 Bft. Stay in port — please.\n",
            "## An untitled note, in plain text, with neither link nor date.\n\n[text](news/items/",
        ],
    );
    assert_eq!(items(&digest).len(), 3);
}

#[test]
fn an_item_is_markdown_without_scripts() {
    let web = web("text/xml; charset=utf-8", RSS2);
    let item = markdown(&web, &items(&markdown(&web, "news"))[0]);
    has(
        &item,
        &[
            "# New buoys at the north pier\n\n- date: 2026-07-28T09:30:00Z\n- by: Marit Olsen\n- source: \
             <https://f.example/2026/buoys?utm=feed&x=1>\n- about: Navigation, Safety\n- attached: \
             <https://harbour.example/audio/buoys.mp3>\n\nThree *green* buoys & one red were laid out.\n",
            "- north pier\n  - green\n- channel\n",
            "[the map](https://f.example/2026/map.html)",
        ],
    );
    has_not(&item, &["never", "javascript", "<p>"]);
}

#[test]
fn atom_with_bases_and_all_kinds_of_text() {
    let web = web("application/atom+xml", ATOM);
    let digest = markdown(&web, "news");
    has(
        &digest,
        &[
            "# Forest notes\n\nTrees, moss & more\n\n<https://forest.example/blog/>\n",
            "## Moss grows slowly\n\n2026-07-20 10:00:00Z",
            "[source](https://forest.example/blog/moss)",
            "\nOnly a millimetre a year.\n",
            "## Vec\\<T\\> and trees \\[draft\\]\n",
            "\nPlain text: two lines \\<not a tag\\>.\n",
        ],
    );
    let items = items(&digest);
    // By when they were published: what was changed later stays where it was.
    let moss = markdown(&web, &items[1]);
    has(
        &moss,
        &[
            "# Moss grows slowly\n\n- date: 2026-07-20T10:00:00Z\n",
            "- attached: <https://forest.example/blog/moss.jpg>\n",
            "## Slow\n\nA **millimetre** a year, says [the study](https://forest.example/study).\n",
        ],
    );
    has(&markdown(&web, &items[0]), &["Plain text:\ntwo lines <not a tag>.\n"]);
}

#[test]
fn rss_1_in_its_own_encoding_whatever_the_label() {
    let body = include_str!("../../fixtures/rss1.xml").replace("CAFE_TITLE", "Caf\u{e9} Cr\u{e8}me");
    let latin: Vec<u8> = body.chars().map(|c| u8::try_from(c as u32).unwrap()).collect();
    for label in ["application/xml", "text/xml; charset=utf-8", "application/rdf+xml; charset=\"ISO-8859-1\""] {
        let digest = markdown(&web(label, latin.clone()), "news");
        has(
            &digest,
            &["# New in the library\n", "## Café Crème\n\n2026-07-21 00:00:00Z · B. Durand", "On cafés of the"],
        );
    }
    // A declaration that has become wrong on the way.
    has(&markdown(&web("text/xml", body), "news"), &["## Café Crème\n"]);
}

#[test]
fn json_feed_is_told_from_other_json() {
    for media in ["application/feed+json", "application/json"] {
        let web = web(media, JSON);
        let digest = markdown(&web, "news");
        has(
            &digest,
            &[
                "# Kitchen log\n\n<https://kitchen.example/>\n",
                "## Bread\n\n2026-07-25 05:00:00Z · Jo · [source](https://kitchen.example/bread)",
                "## Soup, the short way.\n\n2026-07-24 07:00:00Z · [source](https://f.example/soup)",
            ],
        );
        has(&markdown(&web, &items(&digest)[0]), &["500 g of **rye**.\n"]);
    }
    let (text, media) = text(&web("application/json", include_str!("../../fixtures/api.json")), "news");
    assert_eq!(media, "application/json");
    has(&text, &["9007199254740993", "1.10", "-3e+2"]);
}

#[test]
fn an_item_keeps_its_reference_when_others_come_and_go() {
    let before = items(&markdown(&web("text/xml", RSS2), "news"));
    let added = "<item><title>Later</title><guid>later</guid><pubDate>Wed, 29 Jul 2026 09:30:00 GMT</pubDate></item>";
    let more = RSS2.replacen("<item>", &format!("{added}<item>"), 1);
    let after = items(&markdown(&web("text/xml", more), "news"));
    assert_eq!(after.len(), before.len() + 1);
    assert!(before.iter().all(|item| after.contains(item)), "{before:?} {after:?}");
    // Natively and in a sandbox alike.
    assert_eq!(before[0], format!("news/items/{:016x}", feed::hash(&["tag:harbour.example,2026:buoys"])));
}

#[test]
fn one_id_for_two_items_does_not_hide_one() {
    let item = |title: &str| format!("<item><title>{title}</title><guid>same</guid></item>");
    let text =
        format!("<rss version='2.0'><channel><title>T</title>{}{}{}</channel></rss>", item("A"), item("B"), item("B"));
    let web = web("text/xml", text);
    let digest = markdown(&web, "news");
    let items = items(&digest);
    // What is the same in everything is one.
    assert_eq!(items.len(), 2, "{digest}");
    assert_eq!(markdown(&web, &items[0]), "# A\n");
    assert_eq!(markdown(&web, &items[1]), "# B\n");
}

#[test]
fn an_item_that_is_gone_is_not_found() {
    let web = web("text/xml", RSS2);
    for id in ["0123456789abcdef", "x", "%2e", "0123456789abcdef/more"] {
        assert_eq!(web.read(&format!("news/items/{id}")), Err(Error::NotFound), "{id}");
    }
    let page = self::web("text/html", "<p>no feed");
    assert_eq!(page.read("news/items/0123456789abcdef"), Err(Error::NotFound));
}

#[test]
fn a_huge_feed_is_cut_and_says_so() {
    let item = |n: usize| format!("<item><title>N{n}</title><guid>{n}</guid><description>d{n}</description></item>");
    let all: String = (0..20_000).map(item).collect();
    let web =
        web("application/rss+xml", format!("<rss version=\"2.0\"><channel><title>T</title>{all}</channel></rss>"));
    let digest = markdown(&web, "news");
    has(&digest, &["## N0\n", "## N99\n", "\n19900 older items are not shown.\n"]);
    has_not(&digest, &["## N100\n"]);
    // What the digest does not show is there all the same.
    let last = format!("news/items/{:016x}", feed::hash(&["19999"]));
    assert_eq!(markdown(&web, &last), "# N19999\n\nd19999\n");
}

#[test]
fn strange_dates_and_empty_feeds_do_no_harm() {
    let item = |date: &str| format!("<item><title>D{}</title><pubDate>{date}</pubDate></item>", date.len());
    let dates = ["never", "", "Thu, 32 Feb 2026 99:99:99 GMT", "0000-00-00", "9999999-01-01T00:00:00Z", "1950-01-01"];
    let all: String = dates.iter().map(|date| item(date)).collect();
    let digest = markdown(&web("text/xml", format!("<rss version=\"2.0\"><channel>{all}</channel></rss>")), "news");
    assert_eq!(items(&digest).len(), dates.len(), "{digest}");
    has(&digest, &["# Feed\n"]);
    let empty = "<rss version=\"2.0\"><channel><title>Quiet</title></channel></rss>";
    assert_eq!(markdown(&web("text/xml", empty), "news"), "# Quiet\n\nThe feed has no items.\n");
}

#[test]
fn what_is_no_feed_fails_and_says_what_was_expected() {
    let settings = "[news]\nurl = \"https://f.example/feed\"\nkind = \"feed\"";
    let deep = format!("<rss version=\"2.0\"><channel>{}", "<a>".repeat(100_000));
    for body in
        ["", "plain", "<html></html>", "<rss version=\"2.0\"><channel><item>", "{\"version\": 1}", "<?xml", &deep]
    {
        let web = Recording::new().with("https://f.example/feed", "text/xml", body).web(settings);
        match web.read("news") {
            Err(Error::Failed(why)) => has(&why, &["not a feed", "RSS, Atom or JSON Feed"]),
            other => panic!("{}: {other:?}", &body[..body.len().min(40)]),
        }
    }
}

#[test]
fn a_feed_may_say_how_long_it_keeps() {
    let fresh = |web: Web| web.read("news").unwrap().fresh_for;
    assert_eq!(fresh(web("text/xml", RSS2)), Some(Duration::from_secs(1800)));
    assert_eq!(fresh(web("text/xml", ATOM)), None);
    let stated = |value| {
        let headers = [("content-type", "text/xml"), ("cache-control", value)];
        Recording::new().answer("https://f.example/feed", 200, &headers, RSS2).web("news = \"https://f.example/feed\"")
    };
    assert_eq!(fresh(stated("max-age=60")), Some(Duration::from_secs(60)));
    assert_eq!(fresh(stated("no-store")), None);
}

#[test]
fn items_of_a_template_and_its_query() {
    let settings = "[news]\nurl = \"https://f.example/{topic}/feed{?lang}\"\nkind = \"feed\"";
    let web = Recording::new().with("https://f.example/sea/feed?lang=de", "text/xml", RSS2).web(settings);
    let digest = markdown(&web, "news/sea?lang=de");
    let id = format!("{:016x}", feed::hash(&["tag:harbour.example,2026:buoys"]));
    // Relative to `news/sea`, as clients resolve it.
    has(&digest, &[&format!("[text](sea/items/{id}?lang=de)")]);
    has(&markdown(&web, &format!("news/sea/items/{id}?lang=de")), &["# New buoys"]);
}
