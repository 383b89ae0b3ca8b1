//! Tests of one connection, in both eras.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

use super::serve::serve_with_outbox;
use crate::mcp::Handler;
use crate::mcp::tests::handler;
use crate::model::bounds::MAX_PENDING;
use crate::transport::error::ServeError;

/// A client of a handler without mounts.
struct Client {
    requests: WriteHalf<DuplexStream>,
    answers: Lines<BufReader<ReadHalf<DuplexStream>>>,
    handler: Handler,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Client {
    fn connect() -> Self {
        let (own, other) = duplex(1 << 20);
        let ((answers, requests), handler) = (split(own), handler("stdio"));
        let served =
            tokio::spawn(serve_with_outbox(handler.clone(), Arc::default(), split(other), std::future::pending()));
        Self { requests, answers: BufReader::new(answers).lines(), handler, served }
    }

    async fn send(&mut self, message: Value) {
        self.requests.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(60), self.answers.next_line()).await;
        serde_json::from_str(&line.expect("an answer").unwrap().expect("a line")).unwrap()
    }
}

fn read(id: usize, meta: &Value) -> Value {
    let params = json!({ "uri": "belljar://none/x", "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params })
}

/// The `_meta` of a request of 2026-07-28.
fn stateless() -> Value {
    json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} })
}

/// A connection of either era, and the `_meta` of its requests.
async fn connected(is_stateless: bool) -> (Client, Value) {
    let mut client = Client::connect();
    if is_stateless {
        client.send(read(0, &stateless())).await;
    } else {
        let about = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        client.send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about })).await;
    }
    assert_eq!(client.answer().await["id"], 0);
    (client, if is_stateless { stateless() } else { json!({}) })
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_in_either_era() {
    for is_stateless in [true, false] {
        let (mut client, meta) = connected(is_stateless).await;
        for id in 1..4 {
            client.send(read(id, &meta)).await;
            let answer = client.answer().await;
            assert_eq!(
                (&answer["id"], &answer["error"]["data"]["kind"]),
                (&json!(id), &json!("not-found")),
                "{answer}"
            );
        }
        client.requests.shutdown().await.unwrap();
        assert!(client.answers.next_line().await.unwrap().is_none(), "there are no other messages");
        client.served.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_after_the_end_of_the_input_in_either_era() {
    for is_stateless in [true, false] {
        let (mut client, meta) = connected(is_stateless).await;
        // The handler begins no request while its outbox is full.
        client.handler.outbox().put(1 << 30);
        client.send(read(1, &meta)).await;
        tokio::task::yield_now().await;
        // rmcp answers this one. Its loop goes on meanwhile, and drops what waits for the next message.
        client.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "none", "params": { "_meta": meta } })).await;
        client.requests.shutdown().await.unwrap();
        assert_eq!(client.answer().await["id"], 2);
        client.handler.outbox().take(1 << 30);
        assert_eq!(client.answer().await["id"], 1, "{is_stateless}");
        client.served.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_waiting_read_is_evicted_in_either_era() {
    for is_stateless in [true, false] {
        let (mut client, meta) = connected(is_stateless).await;
        // The handler begins no request while its outbox is full.
        client.handler.outbox().put(1 << 30);
        for id in 1..=MAX_PENDING.get() {
            client.send(read(id, &meta)).await;
            // The paused clock advances when the server waits: it has read this request before it reads the next.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
        client.send(read(MAX_PENDING.get() + 1, &meta)).await;
        let answer = client.answer().await;
        assert_eq!((&answer["id"], &answer["error"]["data"]["kind"]), (&json!(1), &json!("busy")), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("waited for longest"), "{answer}");
        client.handler.outbox().take(1 << 30);
        for _ in 0..MAX_PENDING.get() {
            assert_eq!(client.answer().await["error"]["data"]["kind"], "not-found");
        }
    }
}
