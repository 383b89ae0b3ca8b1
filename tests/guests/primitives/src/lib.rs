//! The tools, prompts and skills that the MCP conformance suites ask for, by the names and with the words of the suites.
//!
//! Tests mount this provider without a prefix of its tools, at `uri = "test://"`. Like every provider, this one sees only the
//! names below its mount.

mod prompts;
mod questions;
mod tools;

use belljar_guest::{Contents, Error, Info, Page, Provider, Reading, Resource, Result, Skill, SkillPage, Skills};

/// The provider.
#[derive(Debug)]
pub struct Primitives;

/// A picture of one pixel.
const PIXEL: &[u8] = include_bytes!("../../fixture/src/pixel.png");

/// A sound of one millisecond.
const TONE: &[u8] = include_bytes!("tone.wav");

/// The page of the tool with a view.
const VIEW: &str = "view.html";

/// The directory of the skill.
const SKILL: &str = "skills/greeting";

/// All resources in ascending order: reference, name, description, media type, text.
const RESOURCES: [(&str, &str, &str, &str, &str); 4] = [
    (
        "embedded-resource",
        "embedded-resource",
        "The resource that tools embed",
        "text/plain",
        "This is an embedded resource content.",
    ),
    (
        "skills/greeting/SKILL.md",
        "greeting",
        "How to greet a person. Use it when a conversation begins.",
        "text/markdown",
        include_str!("../skills/greeting/SKILL.md"),
    ),
    (
        "skills/greeting/words/english.md",
        "english.md",
        "English words for a greeting",
        "text/markdown",
        include_str!("../skills/greeting/words/english.md"),
    ),
    (
        VIEW,
        VIEW,
        "The page that shows the results of test_view",
        "text/html;profile=mcp-app",
        include_str!("view.html"),
    ),
];

impl Provider for Primitives {
    fn open() -> Result<Self> {
        Ok(Primitives)
    }

    fn describe() -> Info {
        Info::new("Conformance primitives").version(env!("CARGO_PKG_VERSION"))
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let entries = RESOURCES.map(|(reference, name, description, mime_type, text)| {
            Resource::new(reference).name(name).description(description).mime_type(mime_type).size(text.len() as u64)
        });
        Ok(Page::of(entries, cursor, 1000))
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        Ok(contents(reference)?.into())
    }
}

impl Skills for Primitives {
    fn list_skills(&self, _cursor: Option<&str>) -> Result<SkillPage> {
        Ok(SkillPage::new([Skill::new(SKILL).file("SKILL.md").file("words/english.md")]))
    }
}

/// The contents of a resource. `sized` is a text of 1 KiB, which is not listed.
fn contents(reference: &str) -> Result<Contents> {
    if reference == "sized" {
        return Ok(Contents::text(reference, "x".repeat(1024)).mime_type("text/plain"));
    }
    let found = RESOURCES.iter().find(|(known, ..)| *known == reference);
    let (.., mime_type, text) = found.ok_or(Error::NotFound)?;
    Ok(Contents::text(reference, *text).mime_type(*mime_type))
}

belljar_guest::export!(Primitives: Tools, Prompts, Skills);

#[cfg(test)]
mod tests;
