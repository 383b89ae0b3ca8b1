//! Lines on which plain requests go the short way: they are answered where they are read, by the task that reads.
//!
//! rmcp has a task for each request and one for each answer, with channels between them. While one client waits for one
//! answer, all of that is handing over. A request that comes while another one is worked on has a task of its own here too.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::RoleServer;
use rmcp::service::{Peer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Came, Lines, say};
use crate::mcp::Handler;
use crate::mcp::plain::Plain;

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
    fn begin(&mut self, plain: Plain, withdrawn: CancellationToken) {
        let Some(peer) = self.peer.get().cloned() else { return };
        let (output, outbox) = (Arc::clone(&self.lines.output), Arc::clone(&self.lines.outbox));
        let (pending, handler) = (Arc::clone(&self.lines.pending), self.handler.clone());
        let answer = async move {
            let id = plain.id().clone();
            let line = handler.answer(plain, peer, withdrawn.clone()).await.message;
            // A request that was withdrawn is not answered, and another may have its id by now.
            if !withdrawn.is_cancelled() {
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
                Came::Plain(plain, withdrawn) => self.begin(plain, withdrawn),
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
