//! The HTTP client of rmcp. Records each exchange: of OAuth, and of MCP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use serde_json::{Value, json};
use sse_stream::{Error as SseError, Sse};

/// The HTTP client. Clones share the record.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    http: reqwest::Client,
    exchanges: Arc<Mutex<Vec<Value>>>,
}

impl Recorder {
    /// The exchanges so far.
    pub(crate) fn exchanges(&self) -> Vec<Value> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record(&self, method: &str, url: &str, status: u16, challenge: Option<&str>) {
        let url = url.split('?').next().unwrap_or_default();
        let exchange = json!({ "method": method, "url": url, "status": status, "challenge": challenge });
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }

    /// Records an exchange of MCP. rmcp tells the status of a refusal by the error: 401 and 403 have one each.
    fn record_message(
        &self,
        url: &str,
        answer: &Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>>,
    ) {
        let challenge = answer.as_ref().err().and_then(StreamableHttpError::auth_challenge);
        let status = match answer {
            Ok(StreamableHttpPostResponse::Accepted) => 202,
            Ok(_) => 200,
            Err(StreamableHttpError::AuthRequired(_)) => 401,
            Err(StreamableHttpError::InsufficientScope(_)) => 403,
            Err(StreamableHttpError::HttpStatus(error)) => error.status,
            Err(_) => 0,
        };
        self.record("POST", url, status, challenge);
    }
}

impl OAuthHttpClient for Recorder {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let (method, url) = (request.request.method().to_string(), request.request.uri().to_string());
            let response = self.http.execute(request.request.try_into()?).await?;
            self.record(&method, &url, response.status().as_u16(), None);
            let mut answer = http::Response::builder().status(response.status());
            if let Some(headers) = answer.headers_mut() {
                headers.clone_from(response.headers());
            }
            Ok(answer.body(response.bytes().await?.to_vec())?)
        })
    }
}

impl StreamableHttpClient for Recorder {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>> {
        let answer = self.http.post_message(Arc::clone(&uri), message, session, token, headers).await;
        self.record_message(&uri, &answer);
        answer
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<reqwest::Error>> {
        let sent =
            self.http.post_message_with_response_limits(Arc::clone(&uri), message, session, token, headers, limits);
        let answer = sent.await;
        self.record_message(&uri, &answer);
        answer
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<reqwest::Error>> {
        self.http.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<reqwest::Error>> {
        self.http.get_stream(uri, session, last_event, token, headers).await
    }
}
