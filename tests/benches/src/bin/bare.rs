//! The least that a server can do, which the benches compare with belljar: it parses a request, and writes the same answer. It
//! has no framework, no sandbox, no limits and no record.
//!
//! `bare` serves stdio in one loop. `bare --http` serves HTTP with hyper alone on a free port of loopback, and prints the
//! address to standard error. With `--engine FILE`, each read runs the component FILE in an instance of its own, on wasmtime
//! without belljar: the least that a server with a fresh sandbox for each read can do.
#![expect(clippy::expect_used, clippy::print_stderr, reason = "a bench ends at the first error, and prints its port")]

use std::convert::Infallible;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use belljar_benches::bare_engine::{BareEngine, Settings};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The parts of a request that the answer needs.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    uri: Option<String>,
}

/// Makes the texts.
#[derive(Clone)]
struct Texts(Option<Arc<BareEngine>>);

impl Texts {
    fn new() -> Self {
        let file = std::env::args_os().skip_while(|argument| argument != "--engine").nth(1).map(PathBuf::from);
        let engine = |file| BareEngine::new(&std::fs::read(file).expect("a component"), Settings::Tuned);
        Self(file.map(|file| Arc::new(engine(file))))
    }

    /// The text with the size that `uri` names.
    async fn read(&self, uri: &str) -> String {
        let reference = uri.trim_start_matches("belljar://sized/").to_owned();
        match &self.0 {
            Some(engine) => engine.read(&reference).await,
            None => "x".repeat(reference.trim_start_matches("text/").parse().expect("a number of bytes")),
        }
    }

    /// The answer to a message, with as many bytes as belljar's.
    async fn answer(&self, message: &[u8]) -> Vec<u8> {
        let Message { id, params } = serde_json::from_slice(message).expect("a request");
        let mut answer = Vec::with_capacity(2048);
        let to = &mut answer;
        write!(
            to,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","ttlMs":0,"cacheScope":"private""#
        )
        .expect("memory");
        if let Some(uri) = params.uri {
            to.extend_from_slice(br#","contents":[{"uri":"#);
            serde_json::to_writer(&mut *to, &uri).expect("memory");
            to.extend_from_slice(br#","mimeType":"text/plain","text":"#);
            serde_json::to_writer(&mut *to, &self.read(&uri).await).expect("memory");
            to.extend_from_slice(b"}]");
        }
        to.extend_from_slice(
            br#","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","title":"as long as belljar's","version":"0.1.0"}}}}"#,
        );
        answer
    }
}

/// Answers each line. Writes the answers when no further line has arrived.
fn serve_stdio(texts: &Texts) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (mut input, mut output) = (std::io::BufReader::new(std::io::stdin()), std::io::stdout());
    let (mut line, mut answers) = (Vec::new(), Vec::new());
    while input.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        answers.extend(runtime.block_on(texts.answer(&line)));
        answers.push(b'\n');
        line.clear();
        if input.buffer().is_empty() {
            output.write_all(&answers).and_then(|()| output.flush()).expect("a client that reads");
            answers.clear();
        }
    }
}

async fn serve_http(texts: Texts) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    eprintln!("listening on http://{}/mcp", listener.local_addr().expect("an address"));
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let texts = texts.clone();
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let texts = texts.clone();
                async move {
                    let message = request.into_body().collect().await.expect("a body").to_bytes();
                    let mut response = Response::new(Full::<Bytes>::from(texts.answer(&message).await));
                    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                    Ok::<_, Infallible>(response)
                }
            });
            // A client that disconnects is no error.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn main() {
    let texts = Texts::new();
    if std::env::args().any(|argument| argument == "--http") {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        runtime.block_on(serve_http(texts));
    } else {
        serve_stdio(&texts);
    }
}
