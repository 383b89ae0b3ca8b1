//! Somebody on loopback who answers HTTP as a test says, well or badly, and remembers what was asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request as it came.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    /// Path and query.
    pub(super) target: String,
    headers: Vec<(String, String)>,
}

/// What to answer.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// How long it takes before the first byte.
    delay: Duration,
    /// How many bytes of the body are kept back, though the header counts them.
    missing: usize,
    /// How often the body is sent, without saying how long it is.
    times: Option<usize>,
}

/// Who answers.
#[derive(Debug)]
pub(super) struct Upstream {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let field = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    /// All of them, one a line.
    pub(super) fn all_headers(&self) -> String {
        self.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }
}

impl Reply {
    pub(super) fn of(content_type: &str, body: impl Into<Vec<u8>>) -> Reply {
        Reply::status(200, body).header("content-type", content_type)
    }

    pub(super) fn status(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        Reply { status, headers: Vec::new(), body: body.into(), delay: Duration::ZERO, missing: 0, times: None }
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Reply {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn delayed(self, delay: Duration) -> Reply {
        Reply { delay, ..self }
    }

    pub(super) fn truncated(self, missing: usize) -> Reply {
        Reply { missing, ..self }
    }

    pub(super) fn repeated(self, times: usize) -> Reply {
        Reply { times: Some(times), ..self }
    }

    fn write(&self, to: &mut TcpStream, is_head: bool) -> std::io::Result<()> {
        thread::sleep(self.delay);
        let mut head = format!("HTTP/1.1 {} Whatever\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.times.is_none() {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        to.write_all(format!("{head}\r\n").as_bytes())?;
        if !is_head {
            for _ in 0..self.times.unwrap_or(1) {
                to.write_all(&self.body[..self.body.len() - self.missing])?;
            }
        }
        to.flush()
    }
}

impl Upstream {
    /// Answers on a port that was free, until the test ends.
    pub(super) fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                // A peer that goes away is no failure of this one.
                thread::spawn(move || serve(stream, &log, answer.as_ref()).ok());
            }
        });
        Upstream { port, asked }
    }

    pub(super) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    answer: &(dyn Fn(&Asked) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut words = first.split(' ').map(str::to_owned);
    let mut asked = Asked {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        headers: Vec::new(),
    };
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        asked.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    log.lock().unwrap().push(asked.clone());
    answer(&asked).write(&mut stream, asked.method == "HEAD")
}
