//! Tests of feeds of all formats, as overviews and as items.

use super::*;

const RSS2: &str = include_str!("../../fixtures/rss2.xml");
const ATOM: &str = include_str!("../../fixtures/atom.xml");
const JSON: &str = include_str!("../../fixtures/feed.json");

fn web(content_type: &str, body: impl Into<Vec<u8>>) -> Web {
    Recording::new().with("https://f.example/feed", content_type, body).web("news = \"https://f.example/feed\"")
}

/// The references of the items that an overview links to, as a client resolves them.
fn items(overview: &str) -> Vec<String> {
    overview.split("[text](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

#[test]
fn rss_2_reads_as_an_overview() {
    let web = web("application/rss+xml", RSS2);
    let overview = markdown(&web, "news");
    has(
        &overview,
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
    assert_eq!(items(&overview).len(), 3);
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
fn atom_with_bases_and_all_kinds_of_text_is_read() {
    let web = web("application/atom+xml", ATOM);
    let overview = markdown(&web, "news");
    has(
        &overview,
        &[
            "# Forest notes\n\nTrees, moss & more\n\n<https://forest.example/blog/>\n",
            "## Moss grows slowly\n\n2026-07-20 10:00:00Z",
            "[source](https://forest.example/blog/moss)",
            "\nOnly a millimetre a year.\n",
            "## Vec\\<T\\> and trees \\[draft\\]\n",
            "\nPlain text: two lines \\<not a tag\\>.\n",
        ],
    );
    let items = items(&overview);
    // Sorted by publication date, not by the date of the last change.
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
fn rss_1_is_decoded_as_its_xml_declaration_says() {
    let body = include_str!("../../fixtures/rss1.xml").replace("CAFE_TITLE", "Caf\u{e9} Cr\u{e8}me");
    let latin: Vec<u8> = body.chars().map(|c| u8::try_from(c as u32).unwrap()).collect();
    for label in ["application/xml", "text/xml; charset=utf-8", "application/rdf+xml; charset=\"ISO-8859-1\""] {
        let overview = markdown(&web(label, latin.clone()), "news");
        has(
            &overview,
            &["# New in the library\n", "## Café Crème\n\n2026-07-21 00:00:00Z · B. Durand", "On cafés of the"],
        );
    }
    // A wrong declaration: the body was converted to UTF-8 on the way.
    has(&markdown(&web("text/xml", body), "news"), &["## Café Crème\n"]);
}

#[test]
fn json_feed_is_distinguished_from_other_json() {
    for media in ["application/feed+json", "application/json"] {
        let web = web(media, JSON);
        let overview = markdown(&web, "news");
        has(
            &overview,
            &[
                "# Kitchen log\n\n<https://kitchen.example/>\n",
                "## Bread\n\n2026-07-25 05:00:00Z · Jo · [source](https://kitchen.example/bread)",
                "## Soup, the short way.\n\n2026-07-24 07:00:00Z · [source](https://f.example/soup)",
            ],
        );
        has(&markdown(&web, &items(&overview)[0]), &["500 g of **rye**.\n"]);
    }
    let (text, media) = text(&web("application/json", include_str!("../../fixtures/api.json")), "news");
    assert_eq!(media, "application/json");
    has(&text, &["9007199254740993", "1.10", "-3e2"]);
}

#[test]
fn an_item_keeps_its_reference_when_others_come_and_go() {
    let before = items(&markdown(&web("text/xml", RSS2), "news"));
    let added = "<item><title>Later</title><guid>later</guid><pubDate>Wed, 29 Jul 2026 09:30:00 GMT</pubDate></item>";
    let more = RSS2.replacen("<item>", &format!("{added}<item>"), 1);
    let after = items(&markdown(&web("text/xml", more), "news"));
    assert_eq!(after.len(), before.len() + 1);
    assert!(before.iter().all(|item| after.contains(item)), "{before:?} {after:?}");
    // The ID is the same natively and in a sandbox.
    assert_eq!(before[0], format!("news/items/{:016x}", feed::hash(&["tag:harbour.example,2026:buoys"])));
}

#[test]
fn two_items_with_the_same_id_are_both_shown() {
    let item = |title: &str| format!("<item><title>{title}</title><guid>same</guid></item>");
    let text =
        format!("<rss version='2.0'><channel><title>T</title>{}{}{}</channel></rss>", item("A"), item("B"), item("B"));
    let web = web("text/xml", text);
    let overview = markdown(&web, "news");
    let items = items(&overview);
    assert_eq!(items.len(), 3, "{overview}");
    assert_eq!(markdown(&web, &items[0]), "# A\n");
    assert_eq!(markdown(&web, &items[1]), "# B\n");
    assert_eq!(markdown(&web, &items[2]), "# B\n");
    assert!(items[0] != items[1] && items[1] != items[2] && items[0] != items[2]);
}

#[test]
fn an_item_that_left_the_feed_is_not_found() {
    let web = web("text/xml", RSS2);
    for id in ["0123456789abcdef", "x", "%2e", "0123456789abcdef/more"] {
        assert_eq!(web.read(&format!("news/items/{id}")), Err(Error::NotFound), "{id}");
    }
    let page = self::web("text/html", "<p>no feed");
    assert_eq!(page.read("news/items/0123456789abcdef"), Err(Error::NotFound));
}

#[test]
fn a_huge_feed_is_cut_with_a_note() {
    let item = |n: usize| format!("<item><title>N{n}</title><guid>{n}</guid><description>d{n}</description></item>");
    let all: String = (0..20_000).map(item).collect();
    let web =
        web("application/rss+xml", format!("<rss version=\"2.0\"><channel><title>T</title>{all}</channel></rss>"));
    let overview = markdown(&web, "news");
    has(&overview, &["## N0\n", "## N99\n", "\n19900 older items are not shown.\n"]);
    has_not(&overview, &["## N100\n"]);
    // Items that the overview leaves out can be read.
    let last = format!("news/items/{:016x}", feed::hash(&["19999"]));
    assert_eq!(markdown(&web, &last), "# N19999\n\nd19999\n");
}

#[test]
fn malformed_dates_and_empty_feeds_are_accepted() {
    let item = |date: &str| format!("<item><title>D{}</title><pubDate>{date}</pubDate></item>", date.len());
    let dates = ["never", "", "Thu, 32 Feb 2026 99:99:99 GMT", "0000-00-00", "9999999-01-01T00:00:00Z", "1950-01-01"];
    let all: String = dates.iter().map(|date| item(date)).collect();
    let overview = markdown(&web("text/xml", format!("<rss version=\"2.0\"><channel>{all}</channel></rss>")), "news");
    assert_eq!(items(&overview).len(), dates.len(), "{overview}");
    has(&overview, &["# Feed\n"]);
    let empty = "<rss version=\"2.0\"><channel><title>Quiet</title></channel></rss>";
    assert_eq!(markdown(&web("text/xml", empty), "news"), "# Quiet\n\nThe feed has no items.\n");
}

#[test]
fn other_contents_fail_with_the_expected_formats() {
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
fn a_feed_may_state_its_lifetime() {
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
fn items_of_a_template_keep_its_values_and_query() {
    let settings = "[news]\nurl = \"https://f.example/{topic}/feed{?lang}\"\nkind = \"feed\"";
    let web = Recording::new().with("https://f.example/sea/feed?lang=de", "text/xml", RSS2).web(settings);
    let overview = markdown(&web, "news/sea?lang=de");
    let id = format!("{:016x}", feed::hash(&["tag:harbour.example,2026:buoys"]));
    // The link is relative to `news/sea`.
    has(&overview, &[&format!("[text](sea/items/{id}?lang=de)")]);
    has(&markdown(&web, &format!("news/sea/items/{id}?lang=de")), &["# New buoys"]);
}

/// The work must not grow with the square of their number: 3,000 items are few for a fast machine, and many for a square.
#[test]
fn items_that_are_equal_in_all_fields_have_ids_of_their_own() {
    let item = "<item><title>A</title><description>x</description></item>";
    let feed = format!("<rss version=\"2.0\"><channel>{}</channel></rss>", item.repeat(3_000));
    let web = web("application/rss+xml", feed);
    let mut ids = items(&markdown(&web, "news"));
    assert_eq!(ids.len(), 100);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}
