//! A small HTTP server on loopback. A test decides about every byte of its answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One request, as the server read it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// The path and the query.
    pub(crate) path: String,
    /// The header fields, with names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    /// A header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The `Content-Length`, if it is not that of the body.
    pub(crate) claims: Option<u64>,
    pub(crate) then: Then,
}

/// What the server does after the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It waits for the next request.
    Next,
    /// It closes the connection.
    Close,
    /// It sends nothing more, and keeps the connection.
    Silence,
    /// It sends one byte after another, for ever.
    Drip,
    /// It sends body after body, for ever.
    Flood,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), claims: None, then: Then::Next }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn claiming(mut self, length: u64) -> Self {
        self.claims = Some(length);
        self
    }

    pub(crate) fn then(mut self, then: Then) -> Self {
        self.then = then;
        self
    }
}

/// A running server. Its threads end with the test process.
pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Starts a server that answers with `answer`.
    pub(crate) fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, answer)
    }

    /// Starts a server that speaks TLS, if there is a configuration for it.
    pub(crate) fn start_with(
        tls: Option<Arc<rustls::ServerConfig>>,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, log, tls) = (Arc::clone(&answer), Arc::clone(&log), tls.clone());
                std::thread::spawn(move || match tls {
                    None => serve(stream, answer.as_ref(), &log),
                    Some(tls) => {
                        let connection = rustls::ServerConnection::new(tls).unwrap();
                        serve(rustls::StreamOwned::new(connection, stream), answer.as_ref(), &log)
                    }
                });
            }
        });
        Self { port, asked }
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(
    stream: impl Read + Write,
    answer: &(dyn Fn(&Asked) -> Reply + Send + Sync),
    log: &Mutex<Vec<Asked>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let asked = read(&mut reader)?;
        let stream = reader.get_mut();
        log.lock().unwrap().push(asked.clone());
        let reply = answer(&asked);
        let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
        for (name, value) in &reply.headers {
            head += &format!("{name}: {value}\r\n");
        }
        match (reply.claims, reply.then) {
            (None, Then::Drip | Then::Flood) => head += "Transfer-Encoding: chunked\r\n",
            (claims, _) => head += &format!("Content-Length: {}\r\n", claims.unwrap_or(reply.body.len() as u64)),
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
        let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        match reply.then {
            Then::Drip => {
                // After the body, if the length is known.
                if reply.claims.is_some() {
                    stream.write_all(&reply.body).ok()?;
                }
                loop {
                    stream.write_all(&if reply.claims.is_some() { b" ".to_vec() } else { chunk(b" ") }).ok()?;
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
            Then::Flood => loop {
                stream.write_all(&chunk(&reply.body)).ok()?;
            },
            then => {
                if asked.method != "HEAD" {
                    stream.write_all(&reply.body).ok()?;
                }
                match then {
                    Then::Close => return None,
                    Then::Silence => std::thread::sleep(Duration::from_secs(60)),
                    _ => {}
                }
            }
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Asked> {
    let mut line = String::new();
    let mut next = || {
        line.clear();
        reader.by_ref().read_line(&mut line).ok().filter(|count| *count > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = next()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let field = next()?;
        let Some((name, value)) = field.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, path, headers, body: String::from_utf8_lossy(&body).into_owned() })
}

/// Starts a DNS server on loopback that gives this IPv4 address to every name. Returns its address.
pub(crate) fn names(address: [u8; 4]) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            // RFC 1035, 4.1: 12 bytes of header, the labels of the name with a final zero, its type and its class.
            let query = &buffer[..length];
            let end = 12 + query[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
            let is_v4 = query[end - 4..end - 2] == [0, 1];
            let mut answer =
                [&query[..2], &[0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0], &query[12..end]].concat();
            if is_v4 {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
                answer.extend(address);
            }
            socket.send_to(&answer, from).unwrap();
        }
    });
    own
}
