//! Reports of progress on the wire: notifications that belong to a request, sent until its response.

use rmcp::model::{ProgressNotificationParam, ProgressToken};

use super::context::RequestContext;
use crate::limits::progress::{ProgressReport, ProgressSender, channel};

/// Runs `work`, and sends the reports that it makes meanwhile, if the request has a token for them.
pub(super) async fn with_progress<T>(
    context: &RequestContext<'_>,
    work: impl AsyncFnOnce(Option<ProgressSender>) -> T,
) -> T {
    let Some(token) = &context.meta.progress_token else { return work(None).await };
    let (sender, mut reports) = channel();
    let work = work(Some(sender));
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            Some(report) = reports.recv() => send(context, token, report).await,
            done = &mut work => {
                while let Ok(report) = reports.try_recv() {
                    send(context, token, report).await;
                }
                return done;
            }
        }
    }
}

async fn send(context: &RequestContext<'_>, token: &ProgressToken, report: ProgressReport) {
    let ProgressReport { done, total, note } = report;
    let mut params = ProgressNotificationParam::new(token.clone(), done);
    (params.total, params.message) = (total, note);
    if let Err(error) = context.peer.notify_progress(params).await {
        tracing::debug!("a report of progress was not sent: {error}");
    }
}
