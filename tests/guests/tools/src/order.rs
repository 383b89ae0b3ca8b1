//! What a call does, from JSON: `do` is a list of steps, `ask` are questions, `content` is the result. `times` repeats the
//! content.

use std::hint::black_box;
use std::time::Duration;

use serde_json::Value;

use crate::generated::belljar::provider::call_types::{Ask, Block, BlockBody, Context, Link, Media, Message, Question};
use crate::generated::belljar::provider::progress::report;
use crate::generated::belljar::provider::types::{Body, Contents, ProviderError, Role};
use crate::{meta, text, upstream};

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap_or(0)).unwrap_or(0)
}

/// A number of a report. JSON has no "nan" and "inf", so they are texts.
fn amount(value: &Value) -> f64 {
    match value.as_str() {
        Some(text) => text.parse().unwrap_or(f64::NAN),
        None => value.as_f64().unwrap_or(f64::NAN),
    }
}

/// Takes the steps. Each is an object with one key.
pub(crate) fn run(how: &Value) -> Result<(), ProviderError> {
    for (verb, with) in how["do"].as_array().into_iter().flatten().filter_map(Value::as_object).flatten() {
        match verb.as_str() {
            "spin" => loop {
                black_box(());
            },
            "sleep" => std::thread::sleep(Duration::from_millis(number(with) as u64)),
            "grow" => grow(number(with)),
            "trap" => std::process::abort(),
            "exit" => std::process::exit(i32::try_from(number(with)).unwrap_or(0)),
            "fail" => return Err(ProviderError::Failed(with.as_str().unwrap_or_default().to_owned())),
            "read" => drop(std::fs::read(with.as_str().unwrap_or_default()).map_err(denied)?),
            "not-found" => return Err(ProviderError::NotFound),
            "report" => {
                let total = (!with[1].is_null()).then(|| amount(&with[1]));
                let note = with[2].as_str().map(|note| note.repeat(number(&with[3]).max(1)));
                report(amount(&with[0]), total, note.as_deref());
            }
            "reports" => (0..number(with)).for_each(|n| report(n as f64, None, None)),
            method => upstream::send(method, with.as_str().unwrap_or_default())
                .map_err(|why| ProviderError::Failed(format!("{method}: {why}")))?,
        }
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn denied(error: std::io::Error) -> ProviderError {
    ProviderError::Denied(error.to_string())
}

/// Takes `mib` MiB of memory, and writes to each page.
fn grow(mib: usize) {
    let blocks: Vec<Vec<u8>> = (0..mib).map(|_| vec![1; 1 << 20]).collect();
    black_box(blocks);
}

/// The questions, if there are any. With `again`, also when they have been answered.
pub(crate) fn ask(how: &Value, context: &Context) -> Option<Ask> {
    let ask = how.get("ask")?;
    if !context.answers.is_empty() && ask["again"] != true {
        return None;
    }
    let question = |one: &Value| Question {
        key: text(one, "key"),
        message: text(one, "message") + &"x".repeat(number(&one["pad"])),
        form: one["form"].as_str().map_or_else(|| one["form"].to_string(), str::to_owned),
    };
    let questions = ask["questions"].as_array().into_iter().flatten().map(question).collect();
    let state = ask["state"].as_str().map(|state| state.repeat(number(&ask["repeat"]).max(1)));
    Some(Ask { questions, state })
}

/// The bytes of a text whose characters are bytes.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

fn block(one: &Value) -> Block {
    let media = || Media { mime_type: text(one, "mime"), data: bytes(&text(one, "data")) };
    let body = match one["is"].as_str().unwrap_or_default() {
        "image" => BlockBody::Image(media()),
        "audio" => BlockBody::Audio(media()),
        "link" => BlockBody::Link(Link {
            reference: text(one, "to"),
            name: text(one, "name"),
            title: None,
            description: None,
            mime_type: None,
            size: None,
        }),
        "embedded" => BlockBody::Embedded(Contents {
            reference: text(one, "to"),
            mime_type: None,
            body: Body::Text("embedded".to_owned()),
            meta: meta(&one["meta"]),
        }),
        _ => BlockBody::Text(text(one, "text").repeat(number(&one["repeat"]).max(1))),
    };
    Block { body, annotations: None }
}

/// The content of a result. Without `content`, what the call saw.
pub(crate) fn blocks(how: &Value, seen: &str) -> Vec<Block> {
    let Some(content) = how["content"].as_array() else {
        return vec![Block { body: BlockBody::Text(seen.to_owned()), annotations: None }];
    };
    let times = how["times"].as_u64().unwrap_or(1);
    (0..times).flat_map(|_| content.iter().map(block)).collect()
}

/// The messages of a prompt, of a person and of a model in turn.
pub(crate) fn messages(how: &Value, seen: &str) -> Vec<Message> {
    let role = |at: usize| if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
    blocks(how, seen).into_iter().enumerate().map(|(at, block)| Message { role: role(at), block }).collect()
}
