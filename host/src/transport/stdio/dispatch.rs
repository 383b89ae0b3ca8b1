//! Answers the requests of the fast path, and passes other messages on to rmcp.
//!
//! The task that reads the lines also answers a single request: nothing else waits, and a new task would wake another
//! thread. Requests that arrive together have one task each. `cargo xtask bench --only floor` measures a single read,
//! and the cost of a session.

use std::future::pending as never;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use rmcp::RoleServer;
use rmcp::service::{Peer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

use super::line_transport::{LineTransport, NextInput, write_answer};
use super::pending::RequestHandle;
use crate::mcp::Handler;
use crate::mcp::direct::DirectRequest;

/// A transport for rmcp that answers the requests of the fast path itself.
pub(super) struct Dispatcher<R, W> {
    lines: LineTransport<R, W>,
    handler: Handler,
    /// The client. Empty until rmcp has processed its first message; until then each message is passed on to rmcp.
    peer: Arc<OnceLock<Peer<RoleServer>>>,
    /// The answer that the reading task works on.
    inline_answer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// The answers that have tasks of their own.
    answer_tasks: JoinSet<()>,
    /// True after the end of the input.
    has_ended: bool,
}

impl<R, W> Dispatcher<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// `peer` is empty; the caller sets it when rmcp knows the client.
    pub(super) fn new(lines: LineTransport<R, W>, handler: Handler, peer: Arc<OnceLock<Peer<RoleServer>>>) -> Self {
        Self { lines, handler, peer, inline_answer: None, answer_tasks: JoinSet::new(), has_ended: false }
    }

    /// Begins to answer a request of the fast path.
    fn begin(&mut self, request: DirectRequest, handle: RequestHandle) {
        let Some(peer) = self.peer.get().cloned() else { return };
        let RequestHandle { cancellation, exchange } = handle;
        let (output, outbox) = (Arc::clone(&self.lines.output), Arc::clone(&self.lines.outbox));
        let (pending, handler) = (Arc::clone(&self.lines.pending), self.handler.clone());
        let is_alone = self.inline_answer.is_none() && self.lines.is_buffer_empty();
        // Boxed, because tokio copies the future of a task several times.
        let work = Box::pin(async move {
            let id = request.id().clone();
            let line = handler.answer(request, &peer, &exchange, &cancellation).await.message;
            // A cancelled request is not answered, and another one may have its id by now.
            if !cancellation.is_cancelled() {
                let _writing = pending.begin_writing(&id);
                if let Err(error) = write_answer(&output, &outbox, line, is_alone).await {
                    tracing::debug!("standard output: {error}");
                }
            }
        });
        if is_alone {
            self.inline_answer = Some(work);
        } else {
            self.answer_tasks.spawn(work);
        }
    }
}

impl<R, W> Transport<RoleServer> for Dispatcher<R, W>
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

    /// The next message for rmcp. Cancel-safe: rmcp drops this future whenever it does something else.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // rmcp does not call `receive` after the end, so this waits for the answers.
            if self.has_ended && self.inline_answer.is_none() && self.answer_tasks.is_empty() {
                return None;
            }
            let Self { lines, peer, inline_answer, answer_tasks, has_ended, .. } = self;
            let answered = async {
                match inline_answer {
                    Some(work) => work.await,
                    None => never().await,
                }
            };
            let next = tokio::select! {
                biased;
                () = answered => {
                    self.inline_answer = None;
                    continue;
                }
                Some(_) = answer_tasks.join_next() => continue,
                next = lines.next(peer.get()), if !*has_ended => next,
            };
            match next {
                NextInput::Message(message) => return Some(*message),
                NextInput::Direct(request, handle) => self.begin(request, handle),
                NextInput::End => self.has_ended = true,
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.lines.close()
    }
}
