//! The state of the machine as resources: load, memory, disks, processes, services, sensors, network and containers.
//!
//! This module implements the provider. The host collects the facts and gives them as JSON files below `/system`, one for each
//! granted part. `part` names the parts and reads their files, `query` parses references, `processes` selects processes,
//! `tables` and `markdown` write tables for people, and `overview` summarises everything that is granted.

mod markdown;
mod overview;
mod part;
mod processes;
mod query;
mod tables;

use std::path::PathBuf;
use std::time::Duration;

use belljar_guest::{
    Argument, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Suggestions, Template,
    reference,
};

use part::Part;
use query::{Format, Query, Sort};

/// The provider.
#[derive(Debug)]
pub struct System {
    /// The directory with the files of the host.
    facts: PathBuf,
}

/// The directory that the host makes.
const FACTS: &str = "/system";

/// How long the host keeps its facts. So long, it may serve an answer again.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// Entries per page of the list: more than there are.
const PAGE: usize = 100;

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

const PART: &str = "{part}{?format}";
const PROCESSES: &str = "processes{?sort,limit,name,format}";

impl Provider for System {
    fn open() -> Result<Self> {
        Ok(System { facts: FACTS.into() })
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "System".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description(
                "The state of the machine: load, memory, disks, processes, services, sensors, network, containers",
            )
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let overview = Resource::new("")
            .name("overview")
            .title("Overview of the machine")
            .description("The most important figures of the granted parts")
            .mime_type(MARKDOWN);
        let granted = part::granted(&self.facts)?.into_iter().map(|part| {
            Resource::new(part.word()).name(part.word()).title(part.title()).description(part.about()).mime_type(JSON)
        });
        Ok(Page::of(std::iter::once(overview).chain(granted), cursor, PAGE))
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(vec![
            Template::new(PART).name("part").title("A part of the machine's state").mime_type(JSON).description(
                "{part} is load, memory, disks, processes, services, sensors, network or containers; {format} is json, or \
                 table for people",
            ),
            Template::new(PROCESSES).name("processes").title("Processes").mime_type(JSON).description(format!(
                "Processes in the order {{sort}}: memory (largest first, unless you say otherwise), cpu (most first) or name; \
                 at most {{limit}} of them ({} unless you say otherwise, {} at most); {{name}} selects those whose name \
                 contains it; {{format}} is json, or table for people",
                query::DEFAULT_LIMIT,
                query::MAX_LIMIT
            )),
        ])
    }

    fn read(&self, asked: &str) -> Result<Reading> {
        let (path, text) = reference::split(asked);
        let path = reference::decode(path)?;
        if path.is_empty() {
            if !text.is_empty() {
                return Err(Error::invalid("the overview has no parameters: leave out the query"));
            }
            let text = overview::text(&self.facts)?;
            return Ok(Reading::from(Contents::text(asked, text).mime_type(MARKDOWN)).fresh_for(FRESH_FOR));
        }
        let part = Part::parse(&path).ok_or(Error::NotFound)?;
        let query = Query::parse(part, text)?;
        let mut facts = part.read(&self.facts)?;
        if part == Part::Processes {
            processes::select(&mut facts, &query);
        }
        let contents = match query.format {
            Format::Json => {
                let text = serde_json::to_string_pretty(&facts).map_err(Error::failed)?;
                Contents::text(asked, text + "\n").mime_type(JSON)
            }
            Format::Table => Contents::text(asked, tables::text(part, &facts)).mime_type(MARKDOWN),
        };
        Ok(Reading::from(contents).fresh_for(FRESH_FOR))
    }
}

impl Completion for System {
    fn complete(&self, template: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        let value = &argument.value;
        match (template, argument.name.as_str()) {
            (PART, "part") => {
                Ok(Suggestions::starting_with(value, part::granted(&self.facts)?.into_iter().map(Part::word)))
            }
            (PART | PROCESSES, "format") => Ok(Suggestions::starting_with(value, Format::WORDS)),
            (PROCESSES, "sort") => Ok(Suggestions::starting_with(value, Sort::WORDS)),
            (PROCESSES, "limit") => Ok(Suggestions::starting_with(value, ["10", "100", "1000"])),
            (PROCESSES, "name") => {
                let names = processes::names(&Part::Processes.read(&self.facts)?);
                Ok(Suggestions::starting_with(value, names.iter().map(String::as_str)))
            }
            _ => Err(Error::invalid(format_args!("no variable \"{}\" in \"{template}\"", argument.name))),
        }
    }
}

belljar_guest::export!(System: Completion);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
