//! Lines on which plain requests go the short way: they are answered where they are read, by the task that reads.
//!
//! rmcp has a task for each request and one for each answer, with channels between them. While one client waits for one
//! answer, all of that is handing over. A request that comes while another one is worked on has a task of its own here too.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::RoleServer;
use rmcp::model::JsonRpcError;
use rmcp::service::{Peer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::pending::{Begun, GAVE_WAY};
use super::{Came, Lines, say};
use crate::mcp::plain::Plain;
use crate::mcp::{Handler, fault};

/// See the module.
pub(super) struct Short<R, W> {
    lines: Lines<R, W>,
    handler: Handler,
    /// Who is on the other side, once rmcp has heard its greeting: until then nothing goes the short way.
    peer: Arc<OnceLock<Peer<RoleServer>>>,
    /// Answers that are worked on here.
    here: FuturesUnordered<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Those that are worked on in tasks of their own.
    elsewhere: JoinSet<()>,
}

impl<R, W> Short<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// `peer`: where who is on the other side will stand.
    pub(super) fn new(lines: Lines<R, W>, handler: Handler, peer: Arc<OnceLock<Peer<RoleServer>>>) -> Self {
        Self { lines, handler, peer, here: FuturesUnordered::new(), elsewhere: JoinSet::new() }
    }

    /// Begins to answer a plain request.
    fn begin(&mut self, plain: Plain, Begun { withdrawn, turn }: Begun) {
        let Some(peer) = self.peer.get().cloned() else { return };
        let (output, outbox) = (Arc::clone(&self.lines.output), Arc::clone(&self.lines.outbox));
        let (pending, handler) = (Arc::clone(&self.lines.pending), self.handler.clone());
        let answer = async move {
            let id = plain.id().clone();
            let line = handler.answer(plain, peer, withdrawn.clone(), &turn).await.message;
            if turn.gave_way() {
                // It is not among those that are pending any more.
                let busy = JsonRpcError::new(Some(id), fault::busy(GAVE_WAY));
                let line = serde_json::to_vec(&busy).unwrap_or_default();
                if let Err(error) = say(&output, &outbox, line).await {
                    tracing::debug!("standard output: {error}");
                }
            } else if !withdrawn.is_cancelled() {
                // A request that was withdrawn is not answered, and another may have its id by now.
                if let Err(error) = say(&output, &outbox, line).await {
                    tracing::debug!("standard output: {error}");
                }
                pending.remove(&id);
            }
        };
        if self.here.is_empty() && self.lines.input.buffer().is_empty() {
            self.here.push(Box::pin(answer));
        } else {
            self.elsewhere.spawn(answer);
        }
    }
}

impl<R, W> Transport<RoleServer> for Short<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.lines.send(message)
    }

    /// The next message for rmcp; what is worked on here goes on meanwhile.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let came = tokio::select! {
                biased;
                Some(()) = self.here.next() => continue,
                Some(_) = self.elsewhere.join_next() => continue,
                came = self.lines.next(self.peer.get()) => came,
            };
            match came {
                Came::Message(message) => return Some(*message),
                Came::Plain(plain, begun) => self.begin(plain, begun),
                Came::End => {
                    // rmcp does not come back.
                    while self.here.next().await.is_some() || self.elsewhere.join_next().await.is_some() {}
                    return None;
                }
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.lines.close()
    }
}
