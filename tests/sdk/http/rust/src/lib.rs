//! Reads from the server that the setting UPSTREAM names. The tests of belljar mount it in all languages.

use std::io::{self, Write as _};
use std::time::Duration;

use belljar_guest::http::{Request, Response};
use belljar_guest::{Contents, Error, Provider, Reading, Result};

struct Relay;

impl Provider for Relay {
    fn open() -> Result<Self> {
        Ok(Relay)
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (order, path) = reference.split_once('/').ok_or(Error::NotFound)?;
        let url = format!("{}/{path}", std::env::var("UPSTREAM").map_err(Error::failed)?);
        let mut response = match order {
            "send" => send(&url)?,
            "post" => Request::post(url, "one two three").header("x-own", "mine").send()?,
            "soon" => Request::get(url).timeout(Duration::from_millis(100)).send()?,
            _ => Request::get(url).header("x-own", "mine").send()?,
        };
        let status = response.status();
        let text = match order {
            "count" => io::copy(&mut response, &mut io::sink())?.to_string(),
            _ => response.text()?,
        };
        Ok(Contents::text(reference, format!("{status} {text}")).into())
    }
}

fn send(url: &str) -> Result<Response> {
    let mut upload = Request::new("POST", url).header("x-own", "mine").start()?;
    for piece in ["one ", "two ", "three"] {
        upload.write_all(piece.as_bytes())?;
    }
    upload.finish()
}

belljar_guest::export!(Relay);
