//! Resources that are read in parts. All contents are computed, so no read holds more than its answer:
//!
//! | reference | is |
//! |---|---|
//! | `small.txt` | three lines that always fit |
//! | `lines/N` | N lines of 64 bytes; line 5 begins with `line 000000005 `. Also in bytes |
//! | `stream/N` | the same, but the total is not known |
//! | `blob/N` | N bytes, each its position modulo 251; refuses lines |
//! | `rows/N` | N rows of JSON; refuses bytes |
//! | `long-line` | a line of 9 MiB between two short ones |
//! | `echo/...` | what the provider was asked: the reference, the range and `most` |
//! | `pair/` | two contents, which have no part |
//! | `empty.txt` | nothing |
//! | `lies/...` | parts that break the rules of the interface: see `lies.rs` |
//!
//! The list below `""` has the files of the list of resources, and the directories `dir/`, `crowd/`, `lies/` and `pair/`.
//! `dir/` has 2,500 files and two directories. `crowd/` has 1,000,000 files. A page has 1,000 entries.

mod below;
mod computed;
mod lies;
#[cfg(test)]
mod tests;

use belljar_guest::{
    Contents, Error, Info, Page, PartialReading, Parts, Provider, Range, Reading, Resource, Result, Template,
};

/// The provider.
#[derive(Debug)]
pub struct PartsGuest;

impl Provider for PartsGuest {
    fn open() -> Result<Self> {
        Ok(PartsGuest)
    }

    fn describe() -> Info {
        Info::new("Parts")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        Ok(Page::of(below::files(), cursor, below::PAGE))
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(vec![Template::new("{+path}{?lines,bytes}").name("part")])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let PartialReading { contents, fresh_for, .. } = self.read_part(reference, None, u64::MAX)?;
        let reading = Reading::new(contents);
        Ok(match fresh_for {
            Some(time) => reading.fresh_for(time),
            None => reading,
        })
    }
}

impl Parts for PartsGuest {
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let (kind, argument) = reference.split_once('/').unwrap_or((reference, ""));
        let count = || argument.parse::<u64>().map_err(|_| Error::NotFound);
        match kind {
            "small.txt" => PartialReading::cut(text(reference, "one\ntwo\nthree\n"), range, most),
            "empty.txt" => PartialReading::cut(text(reference, ""), range, most),
            "lines" => computed::lines(reference, count()?, range, most, true),
            "stream" => computed::lines(reference, count()?, range, most, false),
            "blob" => computed::blob(reference, count()?, range, most),
            "rows" => computed::rows(reference, count()?, range, most),
            "long-line" => {
                let long = format!("short\n{}\nshort\n", "x".repeat(9 << 20));
                PartialReading::cut(text(reference, long), range, most)
            }
            "echo" => Ok(text(reference, format!("{reference}\n{range:?}\n{most}\n")).into()),
            "pair" if reference == "pair/" && range.is_none() => {
                let both = [text("pair/a", "a\n"), text("pair/b", "b\n")];
                Ok(PartialReading::whole(Reading::new(both)))
            }
            "pair" if reference == "pair/" => {
                Err(Error::invalid("pair/ has two contents and no part; read \"pair/\" whole"))
            }
            "lies" => lies::part(reference, argument, range, most),
            _ => Err(Error::NotFound),
        }
    }

    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        match reference.trim_end_matches('/').split_once('/') {
            Some(("lies", lie)) => lies::below(lie, cursor),
            _ => below::list(reference, cursor),
        }
    }
}

/// A content of text.
fn text(reference: &str, text: impl Into<String>) -> Contents {
    Contents::text(reference, text).mime_type("text/plain")
}

/// An entry for a directory.
fn directory(reference: impl Into<String>) -> Resource {
    Resource::new(reference).mime_type("inode/directory")
}

belljar_guest::export!(PartsGuest: Parts);
