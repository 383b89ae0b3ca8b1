//! Keys files as belljar and people write them, right and wrong, and their edits.

use std::time::{Duration, SystemTime};

use super::*;
use crate::auth::api_key::{ApiKey, KeyHash};
use crate::auth::key_entry::KeyTime;
use crate::policy::KeyIdentity;

const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn name(text: &str) -> KeyName {
    KeyName::new(text).unwrap()
}

fn entry(name: &str) -> KeyEntry {
    let time = |seconds| KeyTime::new(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    KeyEntry {
        identity: KeyIdentity {
            name: name.to_owned(),
            groups: vec!["oncall".to_owned(), "\"é\"".to_owned()],
            scopes: vec!["notes:read".to_owned()],
        },
        hash: KeyHash::of(name),
        created: Some(time(1_795_478_400)),
        expires: Some(time(1_801_396_800)),
    }
}

#[test]
fn an_added_key_is_read_back() {
    let one = add("", &entry("ci")).unwrap();
    assert_eq!(
        one,
        format!(
            "{HEADING}[[key]]\nname = \"ci\"\nsha256 = \"{}\"\nscopes = [\"notes:read\"]\ngroups = [\"oncall\", '\"é\"']\ncreated = \"2026-11-24T00:00:00Z\"\nexpires = \"2027-01-31T12:00:00Z\"\n",
            KeyHash::of("ci")
        )
    );
    assert_eq!(parse(&one).unwrap(), [entry("ci")]);
    let bare = KeyEntry { created: None, expires: None, identity: KeyIdentity::default(), ..entry("x") };
    let bare = KeyEntry { identity: KeyIdentity { name: "bare".to_owned(), ..bare.identity }, ..bare };
    let two = add(&one, &bare).unwrap();
    assert!(two.starts_with(&one) && two.contains("\n\n[[key]]\nname = \"bare\"\n"), "{two}");
    assert_eq!(parse(&two).unwrap(), [entry("ci"), bare]);
    assert_eq!(remove(&two, &name("bare")).unwrap(), one);
}

#[test]
fn comments_and_other_keys_stay() {
    let one = add("", &entry("ci")).unwrap();
    let two = add(&one, &entry("ana")).unwrap();
    let mine = two.replace("name = \"ana\"", "name = \"ana\" # her laptop") + "# the end\n";
    // The heading of the file stays, also when its first key goes, and when its last one does.
    let without = remove(&mine, &name("ci")).unwrap();
    assert!(without.starts_with(&format!("{HEADING}[[key]]\nname = \"ana\" # her laptop\n")), "{without}");
    assert!(without.ends_with("# the end\n"), "{without}");
    let empty = remove(&without, &name("ana")).unwrap();
    assert_eq!(empty, format!("{HEADING}# the end\n"));
    let again = add(&empty, &entry("ci")).unwrap();
    assert!(again.starts_with(&format!("{HEADING}# the end\n[[key]]\nname = \"ci\"")), "{again}");
    // A comment directly above a key goes with it.
    let above = mine.replace("\n[[key]]\nname = \"ana\"", "\n# Ana\n[[key]]\nname = \"ana\"");
    assert_ne!(above, mine);
    assert_eq!(remove(&above, &name("ana")).unwrap(), format!("{one}# the end\n"));
    // Line ends and the byte order mark stay.
    let windows = format!("\u{feff}{}", one.replace('\n', "\r\n"));
    let added = add(&windows, &entry("ana")).unwrap();
    assert_eq!(added, format!("\u{feff}{}", two.replace('\n', "\r\n")));
    assert_eq!(remove(&added, &name("ana")).unwrap(), windows);
    // An empty array is no obstacle.
    assert_eq!(parse(&add("key = []\n", &entry("ci")).unwrap()).unwrap(), [entry("ci")]);
}

#[test]
fn impossible_edits_say_why() {
    let one = add("", &entry("ci")).unwrap();
    let text = add(&one, &entry("ci")).unwrap_err().to_string();
    assert_eq!(text, "there is already a key \"ci\"; choose another name, or revoke that key first");
    let text = remove(&one, &name("cd")).unwrap_err().to_string();
    assert_eq!(text, "there is no key \"cd\"; the keys are ci");
    assert!(remove("", &name("cd")).unwrap_err().to_string().ends_with("; there are no keys"));
    let inline = format!("key = [{{ name = 'ci', sha256 = '{HASH}' }}]");
    assert_eq!(add(&inline, &entry("ana")), Err(KeysEditError::Inline));
    assert_eq!(remove(&inline, &name("ci")), Err(KeysEditError::Inline));
    assert!(matches!(add("kez = 1", &entry("ci")), Err(KeysEditError::Wrong(_))));
    // A key with the hash of another one would have two names.
    let same = KeyEntry { hash: KeyHash::of("ci"), ..entry("ana") };
    assert!(matches!(add(&one, &same), Err(KeysEditError::Wrong(_))));
}

#[test]
fn errors_name_the_line_and_the_cure() {
    let key = |rest: &str| format!("[[key]]\nname = 'ci'\nsha256 = '{HASH}'\n{rest}");
    for (text, expected) in [
        ("keys = []".to_owned(), "line 1, column 1: unknown key \"keys\"; did you mean \"key\"?"),
        (key("scope = []"), "line 4, column 1: unknown key \"key.scope\"; did you mean \"scopes\"?"),
        (key("secret = 'x'"), "line 4, column 1: unknown key \"key.secret\"; the keys here are created, expires"),
        (key("scopes = 'a'"), "line 4, column 1: key.scopes = \"a\": expected an array"),
        (key("scopes = ['a b']"), "line 4, column 1: key.scopes: \"a b\" is not a scope"),
        (key("scopes = [3]"), "line 4, column 11: key.scopes = 3: expected text in quotation marks"),
        (key("groups = ['']"), "line 4, column 1: key.groups: \"\" is not a group"),
        (key("expires = '2027-01-31'"), "line 4, column 1: key.expires = \"2027-01-31\": expected a time such as"),
        (key("expires = 2027-01-31T12:00:00Z"), "line 4, column 1: key.expires = 2027-01-31T12:00:00Z: expected text"),
        (key("[[key]]\nname = 'a b'"), "line 5, column 1: key.name = \"a b\": \"a b\" is not the name of a key"),
        (key(&key("")), "line 4, column 1: key: there are two keys \"ci\"; rename or remove one"),
        (
            key(&key("").replace("ci", "cd")),
            "line 4, column 1: key: the key \"cd\" has the same \"sha256\" as a key above",
        ),
        ("[[key]]\nname = 'ci'".to_owned(), "line 1, column 1: key: the key \"sha256\" is missing"),
        (format!("[[key]]\nsha256 = '{HASH}'"), "line 1, column 1: key: the key \"name\" is missing"),
        ("[[key]]\nsha256 = 'abc'".to_owned(), "line 2, column 1: key.sha256 = \"abc\": expected the SHA-256 of a key"),
        ("[key]\nname = 'ci'".to_owned(), "line 1, column 2: key: expected tables, each with the heading [[key]]"),
        ("key = ['ci']".to_owned(), "line 1, column 8: key"),
        ("[[key]]\nname = ci".to_owned(), "put quotation marks around the text"),
        ("[[key".to_owned(), "line 1"),
    ] {
        let error = parse(&text).err().unwrap_or_else(|| panic!("accepted: {text}")).to_string();
        assert!(error.contains(expected), "{text}:\n{error}");
    }
}

#[test]
fn no_message_shows_a_key_that_was_pasted_into_the_file() {
    let key = ApiKey::generate().unwrap();
    let key = key.reveal();
    for text in [
        format!("[[key]]\nsha256 = '{key}'"),
        format!("[[key]]\nsha256 = {key}"),
        format!("[[key]]\nname = '{key} '"),
        format!("{key} = 1"),
        key.to_string(),
        format!("[[key]]\nscopes = ['a {key}']"),
        format!("[[key]]\nexpires = '{key}'"),
        format!("[[{key}]]\n[[{key}"),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(!error.contains(&key[3..12]) && error.contains("[API key]"), "{text}: {error}");
    }
}

#[test]
fn the_number_of_keys_is_bounded() {
    let table = |n: usize| format!("[[key]]\nname = 'k{n}'\nsha256 = '{n:064x}'\n");
    let most: String = (0..MAX_KEYS).map(table).collect();
    assert_eq!(parse(&most).unwrap().len(), MAX_KEYS);
    assert_eq!(add(&most, &entry("ci")), Err(KeysEditError::Full));
    let more = format!("{most}{}", table(MAX_KEYS));
    assert!(parse(&more).unwrap_err().to_string().contains("there are more than 10000 keys"));
}
