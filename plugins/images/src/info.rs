//! The facts of a picture as JSON.

use belljar_guest::{Contents, Result};
use belljar_tree::{Tree, name};
use serde_json::{Map, Value, json};

use crate::exif::{self, Camera};
use crate::facts::Facts;
use crate::query::Picture;
use crate::{Settings, orient, read};

/// What stands for a position that is not shown.
const HIDDEN: &str = "hidden: the operator can show positions with  env = { GPS = \"show\" }";

pub(crate) fn read(tree: &Tree, reference: &str, picture: &Picture, settings: Settings) -> Result<Contents> {
    let facts = read::facts(tree, picture)?;
    let text = format!("{:#}\n", Value::Object(json(picture, &facts, settings)));
    Ok(Contents::text(reference, text).mime_type("application/json"))
}

fn json(picture: &Picture, facts: &Facts, settings: Settings) -> Map<String, Value> {
    let mut info = Map::new();
    let mut add = |key: &str, value: Value| {
        if !value.is_null() {
            info.insert(key.to_owned(), value);
        }
    };
    let camera = facts.exif.as_deref().and_then(exif::read);
    let orientation = camera.as_ref().map_or(1, |camera| camera.orientation);
    add("name", json!(name(&picture.path)));
    add("format", json!(facts.format.name()));
    add("mime_type", json!(facts.format.mime_type()));
    add("bytes", json!(picture.meta.size));
    add("last_modified", json!(picture.meta.last_modified()));
    if let Some((width, height)) = facts.size {
        add("width", json!(width));
        add("height", json!(height));
        add("orientation", json!(orientation));
        if orient::is_turned(orientation) {
            add("upright", json!({ "width": height, "height": width }));
        }
    }
    add("colour", json!(facts.colour));
    add("bits", json!(facts.bits));
    add("progressive", if facts.is_progressive { json!(true) } else { Value::Null });
    add("interlaced", if facts.is_interlaced { json!(true) } else { Value::Null });
    if let Some(animation) = facts.animation {
        add(
            "animation",
            json!({
                "frames": animation.frames, "duration_ms": animation.duration,
                "plays": match animation.plays { Some(0) => json!("for ever"), Some(plays) => json!(plays), None => json!(1) },
            }),
        );
    }
    add("not_decoded", json!(facts.format.undecoded()));
    add("damage", json!(facts.damage));
    if let Some(Camera { fields, position, .. }) = camera {
        add("exif", if fields.is_empty() { Value::Null } else { Value::Object(fields) });
        add(
            "gps",
            position.map_or(Value::Null, |gps| if settings.shows_gps { Value::Object(gps) } else { json!(HIDDEN) }),
        );
    }
    info
}
