//! Answers with as many bytes as the reference says: `text/1024`, `blob/1048576`. For measuring what the host adds.

use belljar_guest::{Contents, Error, Page, Provider, Reading, Resource, Result};

struct Measured;

impl Provider for Measured {
    fn open() -> Result<Self> {
        Ok(Self)
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        Ok(Page::of(["blob/1048576", "text/1024", "text/1048576"].map(Resource::new), cursor, 1000))
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (kind, bytes) = reference.split_once('/').ok_or(Error::NotFound)?;
        let bytes: usize = bytes.parse().map_err(|_| Error::NotFound)?;
        Ok(match kind {
            "text" => Contents::text(reference, "x".repeat(bytes)).mime_type("text/plain"),
            "blob" => Contents::blob(reference, vec![0xA5; bytes]).mime_type("application/octet-stream"),
            _ => return Err(Error::NotFound),
        }
        .into())
    }
}

belljar_guest::export!(Measured);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_what_was_asked_for() {
        let reading = Measured.read("text/10").unwrap();
        assert!(matches!(&reading.contents[0].body, belljar_guest::Body::Text(text) if text.len() == 10));
        assert!(Measured.read("text/x").is_err());
    }
}
