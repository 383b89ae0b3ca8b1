//! A request with an access token: which requests may be repeated with another token.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Empty};
use wasmtime_wasi_http::{Error, WasiBody};

/// A request that can be sent again if its body turns out to be empty. GET and HEAD change nothing on a server.
pub(in crate::grants::http) struct RepeatableRequest {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    is_empty: Arc<AtomicBool>,
}

impl RepeatableRequest {
    /// Keeps what `request` needs to be sent again. `None` if it must not be repeated. Returns the request to send.
    pub(in crate::grants::http) fn of(request: Request<WasiBody>) -> (Option<Self>, Request<WasiBody>) {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return (None, request);
        }
        let is_empty = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let kept = Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            is_empty: Arc::clone(&is_empty),
        };
        let watched = request.map(|body| WatchedBody { body, has_data: false, is_empty }.boxed_unsync());
        (Some(kept), watched)
    }

    /// The request once more. `None` if it had a body, or its body has not ended.
    pub(in crate::grants::http) fn again(self) -> Option<Request<WasiBody>> {
        if !self.is_empty.load(Ordering::Acquire) {
            return None;
        }
        let mut request = Request::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (self.method, self.uri, self.headers);
        Some(request)
    }
}

/// A body that tells whether it ended without data.
struct WatchedBody {
    body: WasiBody,
    has_data: bool,
    is_empty: Arc<AtomicBool>,
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            None if !self.has_data => self.is_empty.store(true, Ordering::Release),
            None => {}
            Some(_) => self.has_data = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    fn request(method: Method, body: &'static str) -> Request<WasiBody> {
        let body = Full::from(body).map_err(|never| match never {}).boxed_unsync();
        Request::builder().method(method).uri("https://a.example/x").header("accept", "text/plain").body(body).unwrap()
    }

    #[tokio::test]
    async fn only_reading_requests_without_a_body_are_repeated() {
        let (kept, sent) = RepeatableRequest::of(request(Method::GET, ""));
        drop(sent);
        let again = kept.unwrap().again().unwrap();
        assert_eq!((again.method(), again.uri().path(), again.headers().len()), (&Method::GET, "/x", 1));
        assert!(again.body().is_end_stream());
        let (kept, sent) = RepeatableRequest::of(request(Method::HEAD, "body"));
        assert_eq!(sent.into_body().collect().await.unwrap().to_bytes(), "body");
        assert!(kept.unwrap().again().is_none(), "it had a body");
        let (kept, _sent) = RepeatableRequest::of(request(Method::GET, "body"));
        assert!(kept.unwrap().again().is_none(), "its body has not ended");
        assert!(RepeatableRequest::of(request(Method::POST, "")).0.is_none());
    }
}
