//! Tests of connections through the broker: a guest sees what it would see without a front, and a worker that was taken
//! over gets no further.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;

use super::super::connection_frames::ConnectRefusal;
use super::super::mount_state::SocketsMountState;
use super::*;
use crate::grants::broker::tests::{TestCall, ambient, scope, serve};
use crate::grants::front::FrontRequest;
use crate::grants::grant::Grant as _;
use crate::grants::tcp::Tcp;
use crate::grants::{Ambient, DedicatedThread};
use crate::model::Limits;
use crate::model::error::LimitKind;

/// A call with a grant of `port`: its state in the worker, and its state in a process of its own.
fn call(port: u16, limits: Limits) -> (TestCall, SocketsCallState, SocketsCallState) {
    let grant = json!([
        { "at": format!("127.0.0.1:{port}"), "networks": ["127.0.0.1"] },
        { "at": format!("db.localhost:{port}"), "networks": ["127.0.0.1"] },
    ]);
    let call = TestCall::new(&[("tcp", &grant)], limits);
    let thread = DedicatedThread::default();
    let worker = Arc::new(SocketsMountState::of_worker(&call.handover));
    let worker = SocketsCallState::open(&worker, &scope(&call.mount, &call.limits, &call.worker, &thread));
    let endpoints = Tcp::configure(&serde_json::from_value(grant).unwrap(), &ambient()).unwrap();
    let local = Arc::new(SocketsMountState::new(endpoints, &Ambient::default()));
    let local = SocketsCallState::open(&local, &scope(&call.mount, &call.limits, &call.local, &thread));
    (call, worker, local)
}

fn at(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// A server that sends all bytes back when the client has ended its half.
async fn echoing() -> u16 {
    serve(|mut stream| async move {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
    })
    .await
}

#[tokio::test]
async fn bytes_come_back_after_the_guest_has_ended_its_half() {
    let port = echoing().await;
    let (call, worker, local) = call(port, Limits::default());
    let sent = vec![7; 500_000];
    for (state, has_slot) in [(&worker, false), (&local, true)] {
        let (connecting, host_memory) = state.connect(at(port)).unwrap();
        let (stream, slot) = connecting.await.unwrap();
        assert_eq!((host_memory, slot.is_some()), (0, has_slot));
        let (mut input, mut output) = tokio::io::split(stream);
        output.write_all(&sent).await.unwrap();
        output.shutdown().await.unwrap();
        assert!(output.write_all(b"x").await.is_err());
        let mut received = Vec::new();
        input.read_to_end(&mut received).await.unwrap();
        assert!(received == sent);
    }
    assert!(call.front.next_end().await.is_ok());
    let [front, own] = call.decisions();
    assert_eq!(front, own);
    assert_eq!(front.len(), 1);
    assert_eq!(call.reached_limits(), [None; 3]);
}

#[tokio::test]
async fn names_lead_to_the_same_addresses_and_refusals() {
    let port = echoing().await;
    let (call, worker, local) = call(port, Limits::default());
    assert_eq!(worker.resolve("db.localhost").unwrap(), local.resolve("db.localhost").unwrap());
    for state in [&worker, &local] {
        let address = state.resolve("DB.localhost").unwrap();
        assert!(state.connect((address, port).into()).unwrap().0.await.is_ok());
        assert!(matches!(state.resolve("other.test"), Err(ErrorCode::AccessDenied)));
        assert!(matches!(state.resolve("a b"), Err(ErrorCode::InvalidArgument)));
        assert!(matches!(state.connect((address, 1).into()), Err(ErrorCode::AccessDenied)));
        assert!(matches!(state.connect(at(1)), Err(ErrorCode::AccessDenied)));
    }
    let [front, own] = call.decisions();
    assert_eq!(front, own);
    assert_eq!(front.iter().filter(|decision| decision.cure.is_some()).count(), 4, "{front:?}");
}

#[tokio::test]
async fn an_unreachable_server_gives_the_same_error_and_decision() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (call, worker, local) = call(port, Limits::default());
    for state in [&worker, &local] {
        let connecting = state.connect(at(port)).unwrap().0;
        assert!(matches!(connecting.await, Err(ErrorCode::RemoteUnreachable)));
    }
    let [front, own] = call.decisions();
    assert_eq!(front, own);
    assert_eq!(front.len(), 2);
}

/// Asks for a connection as a worker that was taken over.
async fn forge(call: &TestCall, host: &str, port: u16) -> (ConnectAnswer, SharedStream) {
    let stream = SharedStream::new(call.front.connect(FrontRequest::Connect(host.to_owned(), port)));
    (FrameReader::new(&stream).expect().await.unwrap(), stream)
}

#[tokio::test]
async fn a_worker_that_was_taken_over_reaches_only_what_is_granted() {
    let port = echoing().await;
    let (call, ..) = call(port, Limits::default());
    assert!(matches!(forge(&call, "127.0.0.1", port).await.0, ConnectAnswer::Connected));
    assert!(matches!(forge(&call, "[::ffff:127.0.0.1]", port).await.0, ConnectAnswer::Connected));
    call.decisions();
    let long = "a".repeat(100_000);
    for (host, port) in [
        ("127.0.0.1", 1),
        ("127.0.0.1", 0),
        ("localhost", port),
        ("169.254.169.254", 80),
        ("", port),
        ("127.0.0.1:80", port),
        ("user@127.0.0.1", port),
        ("a\0b\n", port),
        (&long, port),
    ] {
        let (answer, _) = forge(&call, host, port).await;
        assert!(matches!(answer, ConnectAnswer::Refused(ConnectRefusal::Denied, None)), "{host}: {answer:?}");
    }
    let [front, _] = call.decisions();
    assert_eq!(front.len(), 9, "{front:?}");
}

#[tokio::test]
async fn limits_hold_in_the_front_and_in_the_worker() {
    let port = serve(|mut stream| async move {
        let _ = stream.write_all(&[7; 1000]).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let traffic = |traffic| Limits { traffic, ..Limits::default() };
    let standard = Limits::default().traffic;
    let (call, worker, _) = self::call(port, traffic(Traffic { download: 10, requests: 1, ..standard }));
    let mut stream = worker.connect(at(port)).unwrap().0.await.unwrap().0;
    let mut received = Vec::new();
    // The bytes over the limit come too, so that the guest's own stream counts them; then the connection ends.
    assert!(stream.read_to_end(&mut received).await.is_err());
    assert!(received.len() > 10 && received.len() <= 1000);
    assert_eq!(call.reached_limits()[0].unwrap().kind, LimitKind::Download);
    let refused = worker.connect(at(port)).unwrap().0.await;
    assert!(matches!(refused, Err(ErrorCode::NewSocketLimit)));
    assert_eq!(call.reached_limits()[1].unwrap().kind, LimitKind::Download);

    let (call, ..) = self::call(port, traffic(Traffic { upload: 10, ..standard }));
    let (_, stream) = forge(&call, "127.0.0.1", port).await;
    let mut writer = FrameWriter::new(&stream);
    writer.send(&ConnectionFrame::Data(BytePiece(Bytes::from_static(b"0123456789a")))).await.unwrap();
    assert!(call.front.next_end().await.is_ok());
    assert_eq!(call.reached_limits()[0].unwrap().kind, LimitKind::Upload);
    let (_, stream) = forge(&call, "127.0.0.1", port).await;
    FrameWriter::new(&stream).send(&9_u64).await.unwrap();
    assert!(call.front.next_end().await.is_err_and(|error| error.is_violation()));
}

#[tokio::test]
async fn a_dropped_connection_ends_after_its_last_bytes() {
    let (received, mut is_received) = mpsc::channel(1);
    let port = serve(move |mut stream| {
        let received = received.clone();
        async move {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes).await;
            received.send(bytes.len()).await.unwrap();
        }
    })
    .await;
    let (_call, worker, _) = call(port, Limits::default());
    let mut stream = worker.connect(at(port)).unwrap().0.await.unwrap().0;
    stream.write_all(&[7; 100_000]).await.unwrap();
    stream.flush().await.unwrap();
    drop(stream);
    let received = tokio::time::timeout(Duration::from_secs(5), is_received.recv()).await.unwrap();
    assert_eq!(received, Some(100_000));
}
