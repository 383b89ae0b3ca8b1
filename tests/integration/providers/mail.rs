//! `plugins/mail`, written in Python, in the real server: a mailbox of more than 100 MB within the default limits, a Maildir,
//! and broken messages.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use base64::Engine as _;
use belljar_tests::{Client, Era, Site, Stdio};
use serde_json::Value;

use crate::providers::support::{lacks_build_tools, shared};
use crate::support::patient;

/// The line that begins a message in a mailbox file.
const FROM: &str = "From anna@example.org Fri Nov 20 10:00:00 2026\n";

/// A site whose mailboxes are in the directory `mail`. The time limit is long, for busy machines. Fuel and memory have their
/// default limits. `None` if this machine lacks the tools that build the provider.
fn site() -> Option<Site> {
    if lacks_build_tools() {
        return None;
    }
    let mut site = Site::new();
    site.mount("mail");
    std::fs::create_dir_all(site.path("mail")).unwrap();
    site.config(&patient("[mounts.mail]\nfs = { \"/mail\" = \"mail\" }\n[mounts.bare]\ncomponent = \"mail.wasm\"\n"));
    site.share(shared("mail"));
    Some(site)
}

fn message(number: usize, body: &str) -> String {
    format!(
        "Message-ID: <n{number}@example.org>\nFrom: Anna Berg <anna@example.org>\nTo: Ben <ben@example.org>\n\
         Subject: Number {number}\nDate: Fri, 20 Nov 2026 10:00:00 +0000\n\n{body}\n"
    )
}

fn json(client: &mut Client<Stdio>, reference: &str) -> Value {
    serde_json::from_str(&client.text(&format!("belljar://mail/{reference}"))).unwrap()
}

/// The references of the messages of an answer.
fn references(answer: &Value) -> Vec<String> {
    answer["messages"].as_array().unwrap().iter().map(|row| row["reference"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_mailbox_of_100_megabytes_is_read_within_the_default_limits() {
    let Some(site) = site() else { return };
    let attachment: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let file = File::create(site.path("mail/big")).unwrap();
    let mut out = BufWriter::new(file);
    let (mut written, mut count) = (0, 0);
    while written < 100 << 20 {
        let one = format!("{FROM}{}\n", message(count, &format!("A line of the body, number {count}.\n").repeat(100)));
        written += one.len();
        out.write_all(one.as_bytes()).unwrap();
        count += 1;
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(&attachment);
    let lines: Vec<&str> = encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    write!(
        out,
        "{FROM}Message-ID: <photo@example.org>\nReferences: <n5@example.org>\nSubject: Photo\nMIME-Version: 1.0\n\
         Content-Type: multipart/mixed; boundary=\"x\"\n\n--x\nContent-Type: text/plain\n\nHere it is.\n--x\n\
         Content-Type: image/png; name=\"a.png\"\nContent-Transfer-Encoding: base64\n\n{}\n--x--\n",
        lines.join("\n")
    )
    .unwrap();
    out.into_inner().unwrap();

    let mut client = site.stdio(Era::Stateless);
    let newest = json(&mut client, "folders/big");
    let first = references(&newest);
    assert_eq!((first.len(), &newest["messages"][0]["subject"]), (50, &Value::from("Photo")));
    let text = client.text(&format!("belljar://mail/{}", first[0]));
    assert!(text.contains("Attachment: a.png (image/png), ") && text.ends_with("\n\nHere it is.\n"), "{text}");
    assert_eq!(client.blob(&format!("belljar://mail/{}?part=2", first[0])), attachment);
    // The newest message refers to message 5, which is 100 MB earlier in the file.
    let thread = references(&json(&mut client, &first[0].replacen("messages/", "threads/", 1)));
    assert_eq!(thread.len(), 2);
    assert!(thread.contains(&first[0]), "{thread:?}");
    let fifth = thread.iter().find(|reference| **reference != first[0]).unwrap();
    assert!(client.text(&format!("belljar://mail/{fifth}")).starts_with("Subject: Number 5\n"));
    let next = json(&mut client, newest["next"].as_str().unwrap());
    assert_eq!(next["messages"][0]["subject"], format!("Number {}", count - 50));
    // On a busy machine a search stops early, and names the reference that continues the search.
    let mut answer = json(&mut client, &format!("search/big?subject=number%20{}", count - 70));
    while let ([], Some(next)) = (references(&answer).as_slice(), answer["next"].as_str()) {
        answer = json(&mut client, next);
    }
    let found = references(&answer);
    assert_eq!(found.len(), 1, "{found:?}");
    client.close();
}

#[test]
fn a_maildir_is_listed_and_read() {
    let Some(site) = site() else { return };
    for (file, number) in [("Home/cur/1763600001.a.host:2,S", 1), ("Home/new/1763600002.b.host", 2)] {
        site.write(format!("mail/{file}"), message(number, "Hello."));
    }
    site.write("mail/Home/tmp/1763600003.c.host", message(3, "Not there yet."));
    let mut client = site.stdio(Era::Stateless);
    let uris: Vec<String> = client.uris().into_iter().filter(|uri| uri.starts_with("belljar://mail/")).collect();
    assert_eq!(
        uris,
        [
            "belljar://mail/folders/Home",
            "belljar://mail/messages/Home/1763600002.b.host",
            "belljar://mail/messages/Home/1763600001.a.host"
        ]
    );
    assert!(client.text(&uris[1]).starts_with("Subject: Number 2\nFrom: Anna Berg <anna@example.org>\n"));
    // A mail program renames the file of a message when the user reads it. The URI must stay valid.
    std::fs::rename(site.path("mail/Home/new/1763600002.b.host"), site.path("mail/Home/cur/1763600002.b.host:2,S"))
        .unwrap();
    assert!(client.text(&uris[1]).starts_with("Subject: Number 2\n"));
    client.close();
}

/// Python imports the code of a charset at its first use. The component cannot import code at run time, so it was built with
/// all charsets.
#[test]
fn charsets_and_broken_messages_are_read() {
    let Some(site) = site() else { return };
    let encoded = |subject: &str, charset: &str, body: &[u8]| {
        let head =
            format!("{FROM}From: x@example.org\nSubject: {subject}\nContent-Type: text/plain; charset={charset}\n\n");
        [head.as_bytes(), body, b"\n\n"].concat()
    };
    let all = [
        encoded("=?iso-2022-jp?B?GyRCRnxLXDhsGyhC?=", "shift_jis", b"\x93\xfa\x96\x7b"),
        encoded("=?koi8-r?B?8NLJ18XU?=", "koi8-r", b"\xf0\xd2\xc9\xd7\xc5\xd4"),
        encoded("=?gb18030?B?xOO6ww==?=", "gb18030", b"\xc4\xe3\xba\xc3"),
        encoded("=?x-nonsense?Q?caf=E9?=", "x-nonsense", b"na\xefve \xff"),
        encoded("\u{fc}ber", "utf-8", b"\xff\xfe"),
    ];
    site.write("mail/all", all.concat());
    let mut client = site.stdio(Era::Stateless);
    let answer = json(&mut client, "folders/all");
    let mut subjects = Vec::new();
    for (row, body) in answer["messages"].as_array().unwrap().iter().rev().zip([
        "日本",
        "Привет",
        "你好",
        "naïve ÿ",
        "\u{fffd}\u{fffd}",
    ]) {
        subjects.push(row["subject"].as_str().unwrap().to_owned());
        let text = client.text(&format!("belljar://mail/{}", row["reference"].as_str().unwrap()));
        assert!(text.ends_with(&format!("\n\n{body}\n")), "{text:?} ends with {body:?}");
    }
    assert_eq!(subjects, ["日本語", "Привет", "你好", "café", "über"]);
    client.close();
}

#[test]
fn errors_have_the_right_kind() {
    let Some(site) = site() else { return };
    site.write("mail/inbox", format!("{FROM}{}", message(1, "Hello.")));
    site.write("mail/notes.txt", "From here to there\n");
    let mut client = site.stdio(Era::Stateless);
    for (uri, kind, words) in [
        ("mail/nothing", "not-found", ""),
        ("mail/folders/notes.txt", "not-found", ""),
        ("mail/messages/inbox/0-000000000000", "not-found", ""),
        ("mail/search/inbox?since=soon", "invalid", "expected a day"),
        ("bare/folders/inbox", "denied", "the directory \"/mail\" was not granted"),
    ] {
        let error = client.read(&format!("belljar://{uri}")).expect_err(uri);
        assert_eq!(error.data["kind"], kind, "{uri}: {error}");
        let text = error.data["said"].as_str().unwrap_or_default();
        assert!(error.message.contains(words) || text.contains(words), "{uri}: {error}");
    }
    client.close();
}
