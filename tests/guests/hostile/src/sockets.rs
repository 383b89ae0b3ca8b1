//! Conversations over TCP: any bytes, and PostgreSQL's protocol, honest or not.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use belljar_guest::Error;

/// The most rows of one answer that are shown.
const SHOWN_ROWS: usize = 20;

/// `HOST:PORT/TEXT`: sends the text, and returns what arrives until the server ends the connection.
pub(crate) fn talk(argument: &str) -> String {
    let said = exchange(argument);
    said.map_or_else(|error| format!("refused: {:?}: {error}", error.kind()), |(text, _)| format!("reached: {text}"))
}

/// As [`talk`], and fails as an honest provider does.
pub(crate) fn dial(argument: &str) -> Result<String, Error> {
    let (said, error) = exchange(argument)?;
    error.map_or(Ok(said), |error| Err(error.into()))
}

/// What arrives, and the error that ends it.
fn exchange(argument: &str) -> std::io::Result<(String, Option<std::io::Error>)> {
    let (address, text) = argument.split_once('/').unwrap_or((argument, ""));
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut all = Vec::new();
    // A server may end TLS without saying so.
    let ended = stream.read_to_end(&mut all);
    Ok((String::from_utf8_lossy(&all).into_owned(), ended.err()))
}

/// `HOST:PORT/COUNT/BYTES`: opens connections and keeps them, and sends as many bytes on each.
pub(crate) fn connections(argument: &str) -> Result<String, Error> {
    let mut parts = argument.split('/');
    let address = parts.next().unwrap_or_default();
    let mut number = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0usize);
    let (count, bytes) = (number(), number());
    let mut kept = Vec::new();
    for n in 0..count {
        let opened = TcpStream::connect(address).and_then(|mut stream| {
            stream.write_all(&vec![b'x'; bytes])?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => kept.push(stream),
            Err(error) => return Err(Error::failed(format_args!("{n} connections, then {:?}: {error}", error.kind()))),
        }
    }
    Ok(format!("{count} connections"))
}

/// `HOST:PORT/PARAMETERS|STEP|STEP...`: a session of PostgreSQL's protocol (version 3). `PARAMETERS` are names and values
/// with `=` and `&` between; `~` stands for `=` in a value. A step is a letter, a space and a text:
///
/// - `q SQL`: a simple query, until the server is ready.
/// - `p SQL`: Parse of the unnamed statement. `e`: Bind, Describe and Execute. `x SQL`: both.
/// - `s`: Sync, until the server is ready.
/// - `r HEX`: these bytes. `w`: waits until the server is ready.
pub(crate) fn postgres(argument: &str) -> String {
    let mut steps = argument.split('|');
    let (address, parameters) = steps.next().unwrap_or_default().split_once('/').unwrap_or_default();
    let mut seen = Vec::new();
    let run = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        let mut body = vec![0, 3, 0, 0];
        for part in parameters.split(['=', '&']) {
            body.extend_from_slice(part.replace('~', "=").as_bytes());
            body.push(0);
        }
        body.push(0);
        stream.write_all(&length(&body))?;
        stream.write_all(&body)?;
        until_ready(&mut stream, &mut seen)?;
        for step in steps {
            let (verb, text) = step.split_once(' ').unwrap_or((step, ""));
            match verb {
                "q" => send(&mut stream, b'Q', &[text.as_bytes(), b"\0"])?,
                "p" => send(&mut stream, b'P', &[b"\0", text.as_bytes(), b"\0\0\0"])?,
                "e" => execute(&mut stream)?,
                "x" => {
                    send(&mut stream, b'P', &[b"\0", text.as_bytes(), b"\0\0\0"])?;
                    execute(&mut stream)?;
                }
                "s" => send(&mut stream, b'S', &[])?,
                "r" => stream.write_all(&unhex(text))?,
                _ => {}
            }
            if matches!(verb, "q" | "s" | "w") {
                until_ready(&mut stream, &mut seen)?;
            }
        }
        Ok(())
    };
    if let Err(error) = run() {
        seen.push(format!("refused: {:?}: {error}", error.kind()));
    }
    seen.join("; ")
}

fn length(body: &[u8]) -> [u8; 4] {
    u32::try_from(body.len() + 4).unwrap_or(u32::MAX).to_be_bytes()
}

fn send(stream: &mut TcpStream, tag: u8, parts: &[&[u8]]) -> std::io::Result<()> {
    let body = parts.concat();
    stream.write_all(&[&[tag][..], &length(&body), &body].concat())
}

fn execute(stream: &mut TcpStream) -> std::io::Result<()> {
    send(stream, b'B', &[&[0; 8]])?;
    send(stream, b'D', &[b"P\0"])?;
    send(stream, b'E', &[&[0; 5]])
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

/// Reads messages until the server is ready, and adds what they say to `seen`.
fn until_ready(stream: &mut TcpStream, seen: &mut Vec<String>) -> std::io::Result<()> {
    let (mut rows, mut bytes) = (0usize, 0usize);
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header)?;
        let [tag, a, b, c, d] = header;
        let mut body = vec![0; (u32::from_be_bytes([a, b, c, d]) as usize).saturating_sub(4)];
        stream.read_exact(&mut body)?;
        match tag {
            b'D' => {
                (rows, bytes) = (rows + 1, bytes + body.len());
                if rows <= SHOWN_ROWS {
                    seen.push(format!("row {}", row(&body)));
                }
            }
            b'E' => seen.push(format!("error {}", fields(&body))),
            b'C' => {
                let text = String::from_utf8_lossy(&body).trim_end_matches('\0').to_owned();
                seen.push(if rows > SHOWN_ROWS { format!("{text} {bytes} bytes") } else { text });
            }
            b'S' => {
                let text = String::from_utf8_lossy(&body).replace('\0', " ");
                if text.starts_with("default_transaction_read_only") {
                    seen.push(text.trim_end().to_owned());
                }
            }
            b'Z' => {
                seen.push(format!("ready {}", body.iter().map(|b| char::from(*b)).collect::<String>()));
                return Ok(());
            }
            b'R' | b'K' | b'T' | b't' | b'1' | b'2' | b'3' | b'n' | b'N' | b'v' => {}
            other => seen.push(format!("message {:?}", char::from(other))),
        }
    }
}

/// The values of a row, with commas between.
fn row(body: &[u8]) -> String {
    let mut rest = body.get(2..).unwrap_or_default();
    let mut values = Vec::new();
    while let Some((size, after)) = rest.split_first_chunk::<4>() {
        let size = i32::from_be_bytes(*size);
        let size = usize::try_from(size).unwrap_or(0);
        let (value, after) = after.split_at_checked(size).unwrap_or((after, &[]));
        values.push(String::from_utf8_lossy(value).chars().take(60).collect::<String>());
        rest = after;
    }
    values.join(",")
}

/// Code and text of an error.
fn fields(body: &[u8]) -> String {
    let fields = body.split(|byte| *byte == 0).filter_map(|field| {
        let (kind, text) = field.split_first()?;
        matches!(kind, b'C' | b'M').then(|| String::from_utf8_lossy(text).into_owned())
    });
    fields.collect::<Vec<_>>().join(" ")
}
