//! The stream of finished requests (Server-Sent Events).

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use http_body::{Body as HttpBody, Frame};
use serde_json::json;
use tokio::sync::broadcast;
use tokio_util::sync::ReusableBoxFuture;

use crate::telemetry::activity::{Activity, Viewer};

/// The time between two messages.
const INTERVAL: Duration = Duration::from_millis(250);

/// A comment keeps a silent stream open, after this many intervals.
const KEEP_ALIVE: u32 = 60;

/// Messages that a slow viewer may lag behind. It then misses some, and learns how many.
const MAX_LAG: usize = 16;

/// Sends the finished requests to all viewers.
pub(super) struct LiveRequests {
    activity: Arc<Activity>,
    messages: broadcast::Sender<Bytes>,
}

impl LiveRequests {
    /// The requests of `activity`.
    pub(super) fn new(activity: Arc<Activity>) -> Self {
        Self { activity, messages: broadcast::channel(MAX_LAG).0 }
    }

    /// Sends a message to the viewers from time to time, for ever.
    pub(super) async fn run(&self) {
        let mut silent = 0;
        loop {
            tokio::time::sleep(INTERVAL).await;
            if self.messages.receiver_count() == 0 {
                continue;
            }
            let (requests, skipped) = self.activity.take_live();
            silent += 1;
            if !requests.is_empty() {
                self.send(&json!(requests));
                silent = 0;
            }
            if skipped > 0 {
                self.send(&json!({ "skipped": skipped }));
            }
            if silent >= KEEP_ALIVE {
                let _ = self.messages.send(Bytes::from_static(b":\n\n"));
                silent = 0;
            }
        }
    }

    fn send(&self, data: &serde_json::Value) {
        // JSON has no line break.
        let _ = self.messages.send(format!("data: {data}\n\n").into());
    }

    /// The body of a viewer's response.
    pub(super) fn stream(&self) -> LiveStream {
        let next = ReusableBoxFuture::new(receive(self.messages.subscribe()));
        LiveStream { next, begun: false, _viewer: self.activity.viewer() }
    }
}

type Received = (Result<Bytes, broadcast::error::RecvError>, broadcast::Receiver<Bytes>);

async fn receive(mut messages: broadcast::Receiver<Bytes>) -> Received {
    (messages.recv().await, messages)
}

/// The body of a viewer's response. It ends with the connection.
pub(super) struct LiveStream {
    next: ReusableBoxFuture<'static, Received>,
    begun: bool,
    _viewer: Viewer,
}

impl HttpBody for LiveStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !std::mem::replace(&mut self.begun, true) {
            // The browser knows at once that it is connected, and connects again soon after a connection has ended.
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"retry: 500\n\n")))));
        }
        let (received, messages) = std::task::ready!(self.next.poll(context));
        self.next.set(receive(messages));
        let data = match received {
            Ok(data) => data,
            Err(broadcast::error::RecvError::Lagged(_)) => Bytes::from_static(b":\n\n"),
            Err(broadcast::error::RecvError::Closed) => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}
