//! A credential that was accepted, checked again while a stream or a session of its principal is open.
//!
//! Each request has its credential checked. A stream is one request that lasts for hours: without further checks, a
//! revoked key or an expired token would be served until the client goes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::body::{Body as HttpBody, Frame};
use rmcp::model::RequestId;
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use crate::auth::{AuthError, Credentials};
use crate::mcp::{encode, fault};
use crate::policy::Principal;

/// The time between two checks. A check costs a few microseconds: keys are in memory, and verified tokens are remembered.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// How long a credential counts as valid that cannot be checked because its issuer is down.
const MAX_UNCHECKED: Duration = Duration::from_secs(60);

/// Why the stream ends.
const REFUSED: &str = "the key or token of this stream is no longer valid; connect again with a valid one";

/// A credential that was accepted. Has no `Debug`: it contains the credential.
#[derive(Clone)]
pub(super) struct AcceptedCredential {
    checks: Arc<dyn Credentials>,
    credential: Arc<Zeroizing<String>>,
    principal: Principal,
}

impl AcceptedCredential {
    /// `credential`, which `checks` accepted as that of `principal`.
    pub(super) fn new(checks: &Arc<dyn Credentials>, credential: &str, principal: &Principal) -> Self {
        let credential = Arc::new(Zeroizing::new(credential.to_owned()));
        Self { checks: Arc::clone(checks), credential, principal: principal.clone() }
    }

    /// The principal that it proved.
    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// True if it still proves the same principal, with the same groups and scopes. `None` if it cannot be checked now.
    pub(super) async fn is_valid(&self) -> Option<bool> {
        match self.checks.check(&self.credential, SystemTime::now()).await {
            Ok(principal) => Some(principal == self.principal),
            Err(AuthError::Invalid(_) | AuthError::Lapsed(_)) => Some(false),
            Err(AuthError::Unavailable) => None,
        }
    }

    /// Waits until it no longer proves the same principal.
    async fn refused(self) {
        let mut checked = Instant::now();
        loop {
            sleep(CHECK_INTERVAL).await;
            match self.is_valid().await {
                Some(true) => checked = Instant::now(),
                Some(false) => return,
                None if checked.elapsed() > MAX_UNCHECKED => return,
                None => {}
            }
        }
    }

    /// `stream` until the credential is refused. Then the request `id`, if it has one, is answered with an error, and the
    /// stream ends.
    pub(super) fn limit(self, stream: Body, id: Option<RequestId>) -> Body {
        Body::new(CredentialStream { stream, id, refused: Some(Box::pin(self.refused())) })
    }
}

/// See [`AcceptedCredential::limit`].
struct CredentialStream {
    stream: Body,
    id: Option<RequestId>,
    /// `None` once it is ready.
    refused: Option<BoxFuture<'static, ()>>,
}

impl HttpBody for CredentialStream {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(refused) = &mut self.refused
            && refused.as_mut().poll(context).is_ready()
        {
            self.refused = None;
            // Dropping the stream ends its subscriptions.
            self.stream = Body::empty();
            if let Some(id) = self.id.take() {
                let message = encode::refusal(Some(id), fault::unauthenticated(REFUSED.to_owned()));
                let event = [b"data: ".as_slice(), &message, b"\n\n"].concat();
                return Poll::Ready(Some(Ok(Frame::data(event.into()))));
            }
        }
        Pin::new(&mut self.stream).poll_frame(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Mutex;
    use std::sync::PoisonError;

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::policy::{Evidence, KeyIdentity, authenticate};

    /// Answers every check with the current value.
    struct Answer(Mutex<Result<Principal, AuthError>>);

    impl Answer {
        fn set(&self, answer: Result<Principal, AuthError>) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        }
    }

    impl Credentials for Answer {
        fn find_known(&self, _: &str, _: SystemTime) -> Option<Principal> {
            None
        }

        fn check<'a>(&'a self, _: &'a str, _: SystemTime) -> BoxFuture<'a, Result<Principal, AuthError>> {
            let answer = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Box::pin(async { answer })
        }
    }

    fn principal(groups: &[&str]) -> Principal {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        authenticate(Evidence::Key(KeyIdentity { name: "ci".to_owned(), groups, scopes: Vec::new() }))
    }

    /// A stream that never ends by itself.
    struct Endless;

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            Poll::Pending
        }
    }

    /// The time until a stream ends after each check has this answer, and its last bytes. `None` if it goes on.
    async fn end(answer: Result<Principal, AuthError>) -> Option<(Duration, String)> {
        let answers = Arc::new(Answer(Mutex::new(Ok(principal(&[])))));
        let checks: Arc<dyn Credentials> = Arc::<Answer>::clone(&answers);
        let credential = AcceptedCredential::new(&checks, "secret", &principal(&[]));
        let mut body = credential.limit(Body::new(Endless), Some(RequestId::Number(7)));
        let hour = tokio::time::timeout(Duration::from_secs(3600), body.frame()).await;
        assert!(hour.is_err(), "a valid credential keeps its stream");
        answers.set(answer);
        let began = Instant::now();
        let collected = tokio::time::timeout(Duration::from_secs(3600), body.collect()).await.ok()?;
        let text = String::from_utf8(collected.unwrap().to_bytes().to_vec()).unwrap();
        Some((began.elapsed(), text))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_with_its_credential() {
        for answer in [Err(AuthError::Invalid("revoked")), Ok(principal(&["other"]))] {
            let (time, text) = end(answer.clone()).await.unwrap();
            assert!(time <= CHECK_INTERVAL, "{time:?} {answer:?}");
            assert!(text.starts_with("data: {") && text.ends_with("}\n\n"), "{text}");
            assert!(
                text.contains("\"id\":7") && text.contains("unauthenticated") && !text.contains("secret"),
                "{text}"
            );
        }
        assert_eq!(end(Ok(principal(&[]))).await, None);
        // While the issuer is down, the credential counts for a minute.
        let (time, _) = end(Err(AuthError::Unavailable)).await.unwrap();
        assert!((MAX_UNCHECKED..MAX_UNCHECKED + 3 * CHECK_INTERVAL).contains(&time), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_ends_by_itself_is_not_changed() {
        let checks: Arc<dyn Credentials> = Arc::new(Answer(Mutex::new(Ok(principal(&[])))));
        let credential = AcceptedCredential::new(&checks, "secret", &principal(&[]));
        let body = credential.limit(Body::from("data: x\n\n"), Some(RequestId::Number(7)));
        let collect = async { body.collect().await.unwrap().to_bytes() };
        tokio::select! {
            bytes = collect => assert_eq!(bytes, "data: x\n\n"),
            () = pending() => {}
        }
    }
}
