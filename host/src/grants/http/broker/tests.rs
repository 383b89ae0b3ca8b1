//! Tests of exchanges through the broker: a guest sees what it would see without a front, and a worker that was taken over
//! gets no further.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body_util::{Empty, Full, StreamBody};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::super::exchange_frames::HeaderFields;
use super::*;
use crate::grants::DedicatedThread;
use crate::grants::broker::tests::{TOKEN, TestCall, ambient, scope, serve};
use crate::grants::front::FrontRequest;
use crate::grants::grant::Grant as _;
use crate::grants::http::{Http, HttpMountState};
use crate::model::Limits;
use crate::model::error::LimitKind;
use crate::model::limits::Traffic;

/// The grant of the origin at `port`.
fn grant(port: u16) -> serde_json::Value {
    json!([{
        "origin": format!("http://127.0.0.1:{port}"),
        "methods": ["GET", "POST"],
        "networks": ["127.0.0.1"],
        "headers": { "x-key": "${secret:token}" },
    }])
}

fn limits(traffic: Traffic) -> Limits {
    Limits { traffic, ..Limits::default() }
}

/// A call with a grant of `port`: its state in the worker, and its state in a process of its own.
fn call(port: u16, traffic: Traffic) -> (TestCall, HttpCallState, HttpCallState) {
    let grant = grant(port);
    let call = TestCall::new(&[("http", &grant)], limits(traffic));
    let thread = DedicatedThread::default();
    let worker = Arc::new(HttpMountState::of_worker(&call.handover));
    let worker = HttpCallState::new(&worker, &scope(&call.mount, &call.limits, &call.worker, &thread));
    let config = serde_json::from_value(grant).unwrap();
    let local = Http::configure(&config, &ambient()).unwrap();
    let local = HttpCallState::new(&local, &scope(&call.mount, &call.limits, &call.local, &thread));
    (call, worker, local)
}

fn request(
    method: Method,
    uri: String,
    body: impl Body<Data = Bytes, Error = Error> + Send + 'static,
) -> Request<WasiBody> {
    Request::builder().method(method).uri(uri).body(body.boxed_unsync()).unwrap()
}

fn empty() -> WasiBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

fn full(bytes: impl Into<Bytes>) -> WasiBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Sends a request, and drives its connection in a task.
async fn send(call: &mut HttpCallState, request: Request<WasiBody>) -> Result<Response<WasiBody>, Error> {
    let (response, driver) = Pin::from(call.send_request(request, None, Box::new(std::future::ready(Ok(()))))).await?;
    tokio::spawn(async move { Pin::from(driver).await.unwrap() });
    Ok(response)
}

/// The status, the body and the trailers, or the error of the body.
async fn read(response: Response<WasiBody>) -> Result<(u16, Bytes, Option<HeaderMap>), Error> {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?;
    let trailers = body.trailers().cloned();
    Ok((status, body.to_bytes(), trailers))
}

/// Both results as text, which have to be equal.
fn same<T: std::fmt::Debug>([one, other]: [Result<T, Error>; 2]) -> String {
    let (one, other) = (format!("{one:?}"), format!("{other:?}"));
    assert_eq!(one, other, "the worker, and the call in a process of its own");
    one
}

/// A server that answers every request with these bytes, and closes the connection.
async fn answering(bytes: &'static [u8]) -> u16 {
    serve(move |mut stream| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
    })
    .await
}

/// A server that sends each body back while it arrives, with the value of the added header as the header `seen`.
async fn echoing() -> u16 {
    serve(|stream| async move {
        let echo = |request: Request<hyper::body::Incoming>| async move {
            let seen = request.headers()["x-key"].clone();
            assert_eq!(request.headers().get_all("host").iter().count(), 1);
            Response::builder().header("seen", seen).body(request.into_body())
        };
        let _ =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(echo)).await;
    })
    .await
}

#[tokio::test]
async fn a_get_has_headers_body_and_trailers_and_no_secret() {
    let port = answering(b"HTTP/1.1 201 Created\r\nx-own: 1\r\nx-key: a SecRet-Tok3n-abcdefghij\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n18\r\n SecRet-Tok3n-abcdefghij\r\n0\r\nx-sum: 7\r\n\r\n").await;
    let (call, mut worker, mut local) = call(port, Limits::default().traffic);
    let uri = format!("http://127.0.0.1:{port}/a?b=c");
    let mut results = Vec::new();
    for state in [&mut worker, &mut local] {
        let response = send(state, request(Method::GET, uri.clone(), empty())).await.unwrap();
        assert_eq!(response.headers()["x-own"], "1");
        results.push(read(response).await);
    }
    let [one, other] = <[_; 2]>::try_from(results).unwrap();
    let text = same([one, other]);
    assert!(text.contains("(201, b\"hello ***") && text.contains("\"x-sum\": \"7\""), "{text}");
    assert!(!text.contains("Tok3n"), "{text}");
    let [front, own] = call.decisions();
    assert_eq!(front, own);
    assert_eq!(front.len(), 1);
    assert_eq!(call.reached_limits(), [None; 3]);
}

#[tokio::test]
async fn both_bodies_of_a_post_are_streamed() {
    let port = echoing().await;
    let (_call, mut worker, _) = call(port, Limits::default().traffic);
    let (pieces, mut next) = mpsc::channel::<Bytes>(1);
    let stream = futures_util::stream::poll_fn(move |cx| next.poll_recv(cx).map(|piece| Some(Ok(Frame::data(piece?)))));
    // Longer than the secret, because the redactor keeps bytes that could begin one.
    pieces.send(vec![1; 2000].into()).await.unwrap();
    let uri = format!("http://127.0.0.1:{port}/");
    let mut response = send(&mut worker, request(Method::POST, uri.clone(), StreamBody::new(stream))).await.unwrap();
    assert_eq!(response.headers()["seen"], "***********************", "{TOKEN} was added, and is masked");
    // The first piece comes back before the second one is sent.
    let mut echoed = response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap().to_vec();
    assert!(!echoed.is_empty());
    pieces.send(vec![2; 2000].into()).await.unwrap();
    drop(pieces);
    while let Some(frame) = response.body_mut().frame().await {
        echoed.extend_from_slice(frame.unwrap().data_ref().unwrap());
    }
    assert!(echoed == [[1; 2000], [2; 2000]].concat());
    // A long body is cut into frames, and stays whole.
    let long = vec![7; 700_000];
    let response = send(&mut worker, request(Method::POST, uri, full(long.clone()))).await.unwrap();
    assert!(read(response).await.unwrap().1 == long);
}

#[tokio::test]
async fn a_denied_origin_has_the_same_error_decision_and_consent() {
    let (call, mut worker, mut local) = call(1, Limits::default().traffic);
    for (method, uri) in [
        (Method::GET, "https://example.com/x"),
        (Method::DELETE, "http://127.0.0.1:1/x"),
        (Method::GET, "http://u:p@127.0.0.1:1/"),
        (Method::TRACE, "http://127.0.0.1:1/"),
    ] {
        let worker = send(&mut worker, request(method.clone(), uri.to_owned(), empty())).await.map(|_| ());
        let local = send(&mut local, request(method, uri.to_owned(), empty())).await.map(|_| ());
        assert!(same([worker, local]).starts_with("Err(HttpRequest"), "{uri}");
    }
    let [front, own] = call.decisions();
    assert_eq!(front, own);
    assert!(front.len() >= 3 && front.iter().all(|decision| decision.cure.is_some()), "{front:?}");
}

#[tokio::test]
async fn limits_stop_the_request_and_are_known_in_the_worker() {
    let port = echoing().await;
    let uri = || format!("http://127.0.0.1:{port}/");
    for (traffic, kind, error) in [
        (Traffic { upload: 10, ..Limits::default().traffic }, LimitKind::Upload, "Err(HttpRequestBodySize(Some(10)))"),
        (
            Traffic { download: 10, ..Limits::default().traffic },
            LimitKind::Download,
            "Err(HttpResponseBodySize(Some(10)))",
        ),
    ] {
        let (call, mut worker, mut local) = call(port, traffic);
        let mut results = Vec::new();
        for state in [&mut worker, &mut local] {
            results.push(match send(state, request(Method::POST, uri(), full(vec![7; 20]))).await {
                Ok(response) => read(response).await.map(|_| ()),
                Err(error) => Err(error),
            });
        }
        let [one, other] = <[_; 2]>::try_from(results).unwrap();
        assert_eq!(same([one, other]), error);
        let [front, worker, local] = call.reached_limits();
        assert_eq!((front, worker.unwrap().kind), (local, kind));
        assert_eq!(worker, local);
    }
    let (call, mut worker, mut local) = call(port, Traffic { requests: 1, ..Limits::default().traffic });
    for state in [&mut worker, &mut local] {
        send(state, request(Method::POST, uri(), full("x"))).await.unwrap();
        let error = send(state, request(Method::POST, uri(), full("x"))).await.unwrap_err();
        assert!(matches!(error, Error::ConnectionLimitReached), "{error:?}");
    }
    let [front, worker, local] = call.reached_limits();
    assert_eq!([front, worker], [local; 2]);
    assert_eq!(local.unwrap().kind, LimitKind::Requests);
}

#[tokio::test]
async fn an_error_within_the_body_shows_after_the_bytes_before_it() {
    let port = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello").await;
    let (_call, mut worker, mut local) = call(port, Limits::default().traffic);
    let mut errors = Vec::new();
    for state in [&mut worker, &mut local] {
        let uri = format!("http://127.0.0.1:{port}/");
        let mut response = send(state, request(Method::GET, uri, empty())).await.unwrap();
        let mut bytes = Vec::new();
        errors.push(loop {
            match response.body_mut().frame().await.unwrap() {
                Ok(frame) => bytes.extend_from_slice(frame.data_ref().unwrap()),
                Err(error) => break Err::<(), _>(error),
            }
        });
        // Without a front the redactor may keep bytes for a secret that could begin with them.
        assert!(b"hello".starts_with(&bytes));
    }
    let [one, other] = <[_; 2]>::try_from(errors).unwrap();
    same([one, other]);
}

#[tokio::test]
async fn dropping_the_response_ends_the_connection() {
    let (ended, mut is_ended) = mpsc::channel(1);
    let port = serve(move |mut stream| {
        let ended = ended.clone();
        async move {
            let mut room = [0; 4096];
            assert!(stream.read(&mut room).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello").await.unwrap();
            while !matches!(stream.read(&mut room).await, Ok(0) | Err(_)) {}
            ended.send(()).await.unwrap();
        }
    })
    .await;
    let (call, mut worker, _) = call(port, Traffic { connections: 1, ..Limits::default().traffic });
    for _ in 0..3 {
        let request = request(Method::GET, format!("http://127.0.0.1:{port}/"), empty());
        let fut: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(std::future::ready(Ok(())));
        let (mut response, driver) = Pin::from(worker.send_request(request, None, fut)).await.unwrap();
        // The driver of a request without a body is over soon.
        tokio::time::timeout(Duration::from_secs(5), Pin::from(driver)).await.unwrap().unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(20), response.body_mut().frame()).await;
        assert!(is_ended.try_recv().is_err(), "the connection lasts as long as the response");
        drop(response);
        tokio::time::timeout(Duration::from_secs(5), is_ended.recv()).await.unwrap().unwrap();
        assert!(call.front.next_end().await.is_ok());
    }
}

/// Sends frames as a worker that was taken over. Returns the answer.
async fn forge(call: &TestCall, head: RequestHead, body: &[BodyFrame]) -> Result<ExchangeAnswer, FrameError> {
    let stream = SharedStream::new(call.front.connect(FrontRequest::Exchange));
    let mut writer = FrameWriter::new(&stream);
    writer.send(&head).await.unwrap();
    for frame in body {
        let _ = writer.send(frame).await;
    }
    FrameReader::new(&stream).expect().await
}

fn head(port: u16, name: &'static str, value: &'static str) -> RequestHead {
    let mut headers = HeaderMap::new();
    headers.insert(name, value.parse().unwrap());
    RequestHead {
        method: "POST".to_owned(),
        uri: format!("http://127.0.0.1:{port}/"),
        fields: HeaderFields::of(&headers),
        length: None,
        connect_timeout: None,
        first_byte_timeout: None,
        between_bytes_timeout: None,
    }
}

#[tokio::test]
async fn a_worker_that_was_taken_over_cannot_set_hidden_headers() {
    let port = echoing().await;
    let (call, ..) = call(port, Limits::default().traffic);
    assert!(matches!(
        forge(&call, head(port, "x-fine", "1"), &[BodyFrame::End]).await,
        Ok(ExchangeAnswer::Response(200, _))
    ));
    call.decisions();
    for name in ["x-key", "x_key", "authorization", "host", "transfer-encoding", "x-forwarded-for", "te", "connection"]
    {
        let answer = forge(&call, head(port, name, "x"), &[BodyFrame::End]).await;
        let Ok(ExchangeAnswer::Failed(failed)) = answer else { panic!("{name}: {answer:?}") };
        assert!(matches!(Error::from(failed.error), Error::HttpRequestDenied), "{name}");
    }
    let [front, _] = call.decisions();
    assert_eq!((front.len(), front[0].times), (1, 8), "{front:?}");
    let malformed = RequestHead { method: "GET /".to_owned(), ..head(port, "a", "b") };
    assert!(forge(&call, malformed, &[]).await.is_err());
}

#[tokio::test]
async fn requests_are_decided_on_in_the_order_of_their_streams() {
    let port = echoing().await;
    let (call, mut worker, _) = call(port, Traffic { requests: 1, ..Limits::default().traffic });
    let mut start = || {
        let request = request(Method::POST, format!("http://127.0.0.1:{port}/"), full("x"));
        Pin::from(worker.send_request(request, None, Box::new(std::future::ready(Ok(())))))
    };
    let (first, second) = (start(), start());
    let second = tokio::spawn(second);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(first.await.is_ok());
    assert!(matches!(second.await.unwrap(), Err(Error::ConnectionLimitReached)));
    drop(call);
}

#[tokio::test]
async fn the_upload_limit_holds_for_a_worker_that_does_not_count() {
    let port = echoing().await;
    let (call, ..) = call(port, Traffic { upload: 10, ..Limits::default().traffic });
    let data = || BodyFrame::Data(crate::grants::frames::BytePiece(Bytes::from_static(b"12345678")));
    let _ = forge(&call, head(port, "a", "b"), &[data(), data(), BodyFrame::End]).await;
    let [front, worker, _] = call.reached_limits();
    assert_eq!((front.unwrap().kind, worker), (LimitKind::Upload, None));
}

#[tokio::test]
async fn a_body_is_as_long_as_its_request_declares() {
    let (received, mut is_received) = mpsc::channel(1);
    let port = serve(move |mut stream| {
        let received = received.clone();
        async move {
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes).await;
            received.send(String::from_utf8(bytes).unwrap()).await.unwrap();
        }
    })
    .await;
    let (call, ..) = call(port, Limits::default().traffic);
    let data = |bytes: &'static [u8]| BodyFrame::Data(crate::grants::frames::BytePiece(Bytes::from_static(bytes)));
    for body in [
        vec![data(b"a"), data(b"bGET /smuggled HTTP/1.1"), BodyFrame::End],
        vec![data(b"abGET /smuggled HTTP/1.1"), BodyFrame::End],
        vec![data(b"a"), BodyFrame::End],
    ] {
        let answer = forge(&call, head(port, "content-length", "2"), &body).await;
        assert!(matches!(answer, Ok(ExchangeAnswer::Failed(_))), "{answer:?}");
        let received = tokio::time::timeout(Duration::from_secs(5), is_received.recv()).await.unwrap().unwrap();
        assert!(!received.contains("smuggled"), "{received}");
        assert!(!received.ends_with("\r\n\r\nab"), "the request is not whole: {received}");
    }
}

#[tokio::test]
async fn trailers_of_a_request_are_refused_as_without_a_front() {
    let port = echoing().await;
    let (_call, mut worker, mut local) = call(port, Limits::default().traffic);
    let mut results = Vec::new();
    for state in [&mut worker, &mut local] {
        let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), "7".parse().unwrap())]);
        let frames = [Ok(Frame::data(Bytes::from_static(b"hello"))), Ok(Frame::trailers(trailers))];
        let body = StreamBody::new(futures_util::stream::iter(frames));
        let response = send(state, request(Method::POST, format!("http://127.0.0.1:{port}/"), body)).await;
        results.push(match response {
            Ok(response) => read(response).await.map(|_| ()),
            Err(error) => Err(error),
        });
    }
    let [one, other] = <[_; 2]>::try_from(results).unwrap();
    assert!(same([one, other]).starts_with("Err("));
}
