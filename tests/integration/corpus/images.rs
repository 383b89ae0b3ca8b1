//! Pictures compared with Pillow: dimensions, types, frames, orientation, positions, and the colours of thumbnails.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_tests::{Client, Stdio, places};
use serde_json::{Value, json};

use crate::corpus::Case;
use crate::providers::support;

/// The size of the thumbnails that are compared; also in `images.py`.
const SIZE: u32 = 24;

#[test]
fn images_are_what_pillow_sees() {
    let thumbnails = support::empty_directory("images-thumbnails");
    let site = support::over_data("images", "");
    let Some(cases) = super::cases("images", &site.path("data")) else { return };
    let mut client = site.stdio(belljar_tests::Era::Stateless);
    super::judge_all("images", &cases, |case| {
        if case.expected["broken"] == true {
            return answers(case, &mut client);
        }
        check(case, &mut client)?;
        if case.expected["undecoded"] != true {
            let read = client.read(&uri(case, &format!("?size={SIZE}&format=png"))).map_err(|error| error.message)?;
            std::fs::write(thumbnails.join(&case.reference), blob(&read)).map_err(|error| error.to_string())?;
        }
        Ok(())
    });
    let mut program = std::process::Command::new(places::native_python().expect("the program that wrote the pictures"));
    program.arg("-P").arg(places::repository().join("tests/corpus/images.py"));
    program.arg(site.path("data")).arg(&thumbnails);
    let wrong = String::from_utf8_lossy(&support::run(program, b"")).into_owned();
    assert_eq!(wrong.trim(), "[]", "thumbnails that are not as Pillow's");
    assert!(client.close().status.success());
}

/// The facts and the bytes of a whole picture.
fn check(case: &Case, client: &mut Client<Stdio>) -> Result<(), String> {
    let expected = &case.expected;
    let read = client.read(&uri(case, "")).map_err(|error| error.message)?;
    let contents = &read["contents"][0];
    let info = client.read(&uri(case, "/info")).map_err(|error| error.message)?;
    let info: Value =
        serde_json::from_str(info["contents"][0]["text"].as_str().unwrap_or_default()).map_err(|e| e.to_string())?;
    let animation = &info["animation"];
    for (what, found, expected) in [
        ("type", &contents["mimeType"], &expected["mime"]),
        ("type in info", &info["mime_type"], &expected["mime"]),
        ("size", &json!([info["width"], info["height"]]), &expected["size"]),
        ("frames", &json!(animation["frames"].as_u64().unwrap_or(1)), &expected["frames"]),
        ("duration", &animation["duration_ms"], &expected["duration"]),
        ("plays", &animation["plays"], &expected["plays"]),
        (
            "orientation",
            &json!(info["orientation"].as_u64().unwrap_or(1)),
            &json!(expected["orientation"].as_u64().unwrap_or(1)),
        ),
        ("damage", &info["damage"], &Value::Null),
    ] {
        // A length of time only counts where the case has one.
        if found != expected && !(expected.is_null() && matches!(what, "duration" | "plays")) {
            return Err(format!("{what}: {found}, expected {expected}"));
        }
    }
    if expected["gps"] == true && info["gps"].as_str().is_none_or(|gps| !gps.starts_with("hidden")) {
        return Err(format!("the position in info: {}", info["gps"]));
    }
    let bytes = String::from_utf8_lossy(&blob(&read)).to_lowercase();
    match ["gps", "2,21.1w", "48,51.4n"].iter().find(|words| bytes.contains(**words)) {
        Some(words) => Err(format!("the bytes have {words:?}")),
        None => Ok(()),
    }
}

/// A damaged picture must be answered: with a picture, or with an error of the provider in words.
fn answers(case: &Case, client: &mut Client<Stdio>) -> Result<(), String> {
    for query in ["", "/info", "?size=24"] {
        let read = client.read(&uri(case, query));
        if let Err(error) = &read
            && !error.message.contains("the provider says")
        {
            return Err(format!("{query}: {}", error.message));
        }
        let refused = case.expected["refused"].as_str().filter(|_| query == "?size=24");
        if let Some(words) = refused
            && !read.as_ref().is_err_and(|error| error.message.contains(words))
        {
            return Err(format!("expected {words:?}: {read:?}"));
        }
    }
    Ok(())
}

fn uri(case: &Case, query: &str) -> String {
    format!("belljar://images/{}{query}", case.reference.replace(' ', "%20"))
}

fn blob(read: &Value) -> Vec<u8> {
    STANDARD.decode(read["contents"][0]["blob"].as_str().unwrap_or_default()).unwrap_or_default()
}
