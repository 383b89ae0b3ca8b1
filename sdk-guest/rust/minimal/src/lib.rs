//! The provider: its list, and the contents of each reference.

use belljar_guest::{Contents, Error, Info, Page, Provider, Reading, Resource, Result};

struct MyProvider;

impl Provider for MyProvider {
    fn open() -> Result<Self> {
        Ok(MyProvider)
    }

    fn describe() -> Info {
        Info::new("my-provider").version(env!("CARGO_PKG_VERSION")).description("A greeting.")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        Page::at_offset([Resource::new("hello.txt").mime_type("text/plain")], cursor, 100)
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        match reference {
            "hello.txt" => Ok(Contents::text(reference, "Hello from my-provider.\n").mime_type("text/plain").into()),
            _ => Err(Error::NotFound),
        }
    }
}

belljar_guest::export!(MyProvider);
