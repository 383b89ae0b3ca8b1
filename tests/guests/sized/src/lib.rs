//! Answers with the number of bytes that the reference names: `text/1024`, `blob/1048576`. Benchmarks measure the cost that
//! the host adds to such a read. `log/1024` is a text of lines of 64 bytes. `lines/1000` computes 1,000 lines of text, as a
//! provider does that writes figures as text. `sum/1000` computes the checksum of 1,000 numbers in one loop.
//!
//! The list has three of these references. If `SIZED_COUNT` is set, the list has that number of other references instead:
//! `n/000001`, `n/000002`, and so on. No resource ever changes, so all revisions are constant.

use belljar_guest::{Contents, Error, Page, Provider, Reading, Resource, Result, Revisions, Template};

/// A line of `log`: 64 bytes, with quotes as programs write them.
const LINE: &str = "2026-11-29T12:00:00Z INFO \"GET /index.html\" 200 1024 bytes sent\n";

/// Entries on a page.
const PAGE: u64 = 1000;

/// The provider.
struct Measured {
    /// The value of `SIZED_COUNT`: the number of references `n/NUMBER`. `None`: the list has the three default references.
    count: Option<u64>,
}

impl Provider for Measured {
    fn open() -> Result<Self> {
        let Ok(count) = std::env::var("SIZED_COUNT") else {
            return Ok(Measured { count: None });
        };
        let wrong = |_| Error::invalid(format_args!("SIZED_COUNT is \"{count}\": expected a number"));
        Ok(Measured { count: Some(count.parse().map_err(wrong)?) })
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let Some(count) = self.count else {
            return Ok(Page::of(["blob/1048576", "text/1024", "text/1048576"].map(Resource::new), cursor, 1000));
        };
        let before = match cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| Error::invalid("the cursor is not one of this provider's"))?,
        };
        let last = count.min(before + PAGE);
        let page = Page::new((before + 1..=last).map(|n| Resource::new(format!("n/{n:06}"))));
        Ok(if last < count { page.next_cursor(last.to_string()) } else { page })
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let template = if self.count.is_some() { "n/{number}" } else { "{kind}/{bytes}" };
        Ok(vec![Template::new(template)])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (kind, number) = reference.split_once('/').ok_or(Error::NotFound)?;
        let number: usize = number.parse().map_err(|_| Error::NotFound)?;
        Ok(match kind {
            "text" => Contents::text(reference, "x".repeat(number)).mime_type("text/plain"),
            "log" => Contents::text(reference, LINE.repeat(number / LINE.len())).mime_type("text/plain"),
            "blob" => Contents::blob(reference, vec![0xA5; number]).mime_type("application/octet-stream"),
            "lines" => Contents::text(reference, lines(number)).mime_type("text/plain"),
            "sum" => Contents::text(reference, format!("{:x}", sum(number))).mime_type("text/plain"),
            "n" if self.lists(number) => Contents::text(reference, number.to_string()).mime_type("text/plain"),
            _ => return Err(Error::NotFound),
        }
        .into())
    }
}

fn lines(number: usize) -> String {
    (1..=number).map(|n| format!("{n}: {} {:#x}\n", n * n, n * 31)).collect()
}

/// The FNV-1a checksum of the numbers below `number`.
fn sum(number: usize) -> u64 {
    (0..number as u64).fold(0xcbf2_9ce4_8422_2325, |hash, n| (hash ^ (n & 0xff)).wrapping_mul(0x100_0000_01b3))
}

impl Measured {
    fn lists(&self, number: usize) -> bool {
        self.count.is_some_and(|count| (1..=count).contains(&(number as u64)))
    }
}

impl Revisions for Measured {
    fn catalog_revision(&self) -> Result<String> {
        Ok(self.count.map_or("three".to_owned(), |count| count.to_string()))
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        let (kind, number) = reference.split_once('/').ok_or(Error::NotFound)?;
        let number: usize = number.parse().map_err(|_| Error::NotFound)?;
        let known = matches!(kind, "text" | "blob") || kind == "n" && self.lists(number);
        if known { Ok("1".to_owned()) } else { Err(Error::NotFound) }
    }
}

belljar_guest::export!(Measured: Revisions);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_returns_the_requested_contents() {
        let three = Measured { count: None };
        let reading = three.read("text/10").unwrap();
        assert!(matches!(&reading.contents[0].body, belljar_guest::Body::Text(text) if text.len() == 10));
        let reading = three.read("lines/2").unwrap();
        let lines = "1: 1 0x1f\n2: 4 0x3e\n";
        assert!(matches!(&reading.contents[0].body, belljar_guest::Body::Text(text) if text == lines));
        let reading = three.read("sum/1").unwrap();
        assert!(matches!(&reading.contents[0].body, belljar_guest::Body::Text(text) if text == "af63bd4c8601b7df"));
        assert!(three.read("text/x").is_err() && three.read("n/000001").is_err());
        assert_eq!(three.list_resources(None).unwrap().resources.len(), 3);
    }

    #[test]
    fn the_list_has_the_configured_number_of_resources() {
        for count in [0, 10, 1000, 1001, 2500] {
            let many = Measured { count: Some(count) };
            let (mut all, mut cursor) = (Vec::new(), None);
            loop {
                let page = many.list_resources(cursor.as_deref()).unwrap();
                all.extend(page.resources.into_iter().map(|resource| resource.reference));
                cursor = page.next_cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(all.len() as u64, count);
            assert!(all.iter().all(|one| many.read(one).is_ok() && many.resource_revision(one).is_ok()));
            assert!(all.is_sorted());
            let beyond = format!("n/{:06}", count + 1);
            assert_eq!(many.resource_revision(&beyond), Err(Error::NotFound));
            assert!(many.read(&beyond).is_err());
        }
    }
}
