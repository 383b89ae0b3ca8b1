//! Sends the spans of traced requests to a receiver of OTLP over HTTP.
//!
//! No request waits for the receiver: spans wait in a bounded queue, and what finds no place is dropped and counted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use tokio::time::Instant;

use crate::config::TraceConfig;
use crate::grants::http::service_client::{ServiceClient, ServiceRequest};
use crate::grants::network::Network;
use crate::telemetry::trace::{Tracer, text};

/// The time between two batches.
const INTERVAL: Duration = Duration::from_secs(1);

/// The most spans of a batch: a batch is far smaller than what receivers take.
const MAX_BATCH: usize = 512;

/// The time for one batch.
const SEND_TIME: Duration = Duration::from_secs(10);

/// Pause between two log messages of a failing receiver.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// The media type of the spans (OTLP/HTTP, binary).
const PROTOBUF: &str = "application/x-protobuf";

/// Sends the spans of a tracer.
pub(crate) struct TraceExporter {
    config: TraceConfig,
    client: ServiceClient,
    tracer: Arc<Tracer>,
}

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    /// There was no response.
    #[error(transparent)]
    Service(#[from] crate::grants::http::service_client::ServiceError),
    /// The receiver refused the batch.
    #[error("the receiver answered with the status {0}")]
    Status(u16),
}

impl TraceExporter {
    /// An exporter for the receiver of `config`.
    pub(crate) fn new(config: TraceConfig, network: Arc<Network>) -> Self {
        let tracer = Arc::new(Tracer::new(config.per_mille));
        Self { config, client: ServiceClient::new(network), tracer }
    }

    /// The tracer whose spans are sent.
    pub(crate) fn tracer(&self) -> Arc<Tracer> {
        Arc::clone(&self.tracer)
    }

    /// Sends the spans from time to time, for ever.
    pub(crate) async fn run(&self) {
        let mut last_logged: Option<Instant> = None;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let lost = self.flush(SEND_TIME).await;
            if let Some(why) = lost.filter(|_| last_logged.is_none_or(|at| at.elapsed() >= LOG_PAUSE)) {
                last_logged = Some(Instant::now());
                tracing::warn!("{why}");
            }
        }
    }

    /// Sends all spans that wait. Returns why some are lost, if any are.
    pub(crate) async fn flush(&self, within: Duration) -> Option<String> {
        let (mut spans, dropped) = self.tracer.take();
        let deadline = Instant::now() + within;
        let mut lost = (dropped > 0).then(|| {
            format!("{dropped} spans of traces are lost: \"{}\" does not take them fast enough", self.config.url)
        });
        while !spans.is_empty() {
            let rest = spans.split_off(spans.len().min(MAX_BATCH));
            let count = spans.len();
            if let Err(error) = self.send(std::mem::replace(&mut spans, rest), deadline).await {
                lost = Some(format!("cannot send {count} spans of traces to \"{}\": {error}", self.config.url));
            }
        }
        lost
    }

    async fn send(&self, spans: Vec<Span>, deadline: Instant) -> Result<(), ExportError> {
        let scope = InstrumentationScope {
            name: "belljar".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let attributes = vec![text("service.name", "belljar"), text("service.version", env!("CARGO_PKG_VERSION"))];
        let resource = Some(Resource { attributes, ..Resource::default() });
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
        let resource_spans = vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }];
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let request = ServiceRequest {
            url: &self.config.url,
            networks: &self.config.networks,
            body: Some((Bytes::from(body), PROTOBUF)),
            authorization: None,
            deadline,
        };
        let response = self.client.send(request).await?;
        match response.status.is_success() {
            true => Ok(()),
            false => Err(ExportError::Status(response.status.as_u16())),
        }
    }
}
