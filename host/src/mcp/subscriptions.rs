//! Subscriptions on the wire, in both eras: `subscriptions/listen` (2026-07-28), a request that stays open and is told of
//! what it asked for; and `resources/subscribe` (older), after which a session is told, and of changes of the list in any
//! case.
//!
//! rmcp acknowledges a `listen` before its handler runs. What is watched has to be looked at before the client hears of
//! that, or a change right after it could be missed. On stdio, requests come in through a [`Door`] that looks first; over
//! HTTP, where rmcp has no such place, the transport holds the response back until the handler says [`Ready`].

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::request::Parts;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, ProtocolVersion, ResourceUpdatedNotificationParam, ServerConfig,
    ServerResult, SubscriptionFilter,
};

use rmcp::service::{NotificationContext, Peer, RequestContext, Service, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::{Handler, fault};
use crate::gateway::watching::{Change, NotWatched, Subscriber, URIS};
use crate::model::{Fault, ReadError};

/// Where requests come in on stdio: rmcp's way, with a step before it for those that subscribe.
pub struct Door(Handler);

/// Says that what a `listen` watches has been looked at. The transport puts it into the extensions of an HTTP request.
#[derive(Clone, Default)]
pub struct Ready(CancellationToken);

impl Ready {
    /// Waits until it is said, or will not be said any more.
    pub async fn said(&self) {
        let _ = tokio::time::timeout(PATIENCE, self.0.cancelled()).await;
    }
}

/// How long an acknowledgement is held back. No first look takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a `listen` watches, on its way from the door to the handler.
#[derive(Clone)]
struct Listening(Arc<Subscriber>);

/// What a session of an older client watches.
#[derive(Clone)]
pub(super) struct Session {
    id: u64,
    forwarding: Arc<Mutex<Option<Forwarding>>>,
}

impl Default for Session {
    fn default() -> Self {
        Self { id: next_peer(), forwarding: Arc::default() }
    }
}

impl Session {
    /// By which its client is told apart from others.
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

/// A number for a connection or session that no other has.
pub fn next_peer() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A watcher, and the task that tells its client.
struct Forwarding {
    subscriber: Arc<Subscriber>,
    task: AbortHandle,
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Door {
    /// A door to `handler`.
    pub fn new(handler: Handler) -> Self {
        Self(handler)
    }
}

impl Service<RoleServer> for Door {
    async fn handle_request(
        &self,
        request: ClientRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if let ClientRequest::SubscriptionsListenRequest(listen) = &request
            && super::is_modern(&context)
        {
            let listening = self.0.run(&context, Box::pin(self.0.prepare(&listen.params.notifications))).await?;
            context.extensions.insert(listening);
        }
        self.0.handle_request(request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.0)
    }
}

fn refusal(why: NotWatched, uri: Option<String>) -> ErrorData {
    let error = match why {
        NotWatched::NoMount => ReadError::NotFound,
        NotWatched::TooMany(most) => ReadError::Busy(format!(
            "too much is watched: at most {most} at once; end another subscription first, or open one for a part"
        )),
    };
    fault::to_error(Fault { error, mount: None, uri })
}

impl Handler {
    /// The same handler for another session.
    pub fn for_session(&self) -> Self {
        Self { session: Session::default(), ..self.clone() }
    }

    /// Waits until the mounts of the start are there.
    pub async fn loaded_soon(&self) {
        self.gateway.settled().await;
    }

    /// Looks at what a `listen` wants to watch.
    async fn prepare(&self, wanted: &SubscriptionFilter) -> Result<Listening, ErrorData> {
        let uris = wanted.resource_subscriptions.as_deref().unwrap_or_default();
        if uris.len() > URIS {
            return Err(refusal(NotWatched::TooMany(URIS), None));
        }
        let wants_lists = wanted.resources_list_changed == Some(true);
        let subscriber = self.gateway.subscriber(wants_lists).map_err(|why| refusal(why, None))?;
        self.loaded_soon().await;
        let uris = uris.iter().filter(|uri| self.gateway.can_watch(uri)).cloned().collect();
        self.gateway.watch(&subscriber, uris).await.map_err(|why| refusal(why, None))?;
        Ok(Listening(Arc::new(subscriber)))
    }

    /// What of `requested` can be had: lists, and resources that some mount has.
    pub(super) fn accepts(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = SubscriptionFilter::new();
        accepted.resources_list_changed = requested.resources_list_changed;
        // rmcp compares each of the one list with each of the other; too many are refused before anything is told.
        let few = requested.resource_subscriptions.as_ref().filter(|uris| uris.len() <= URIS);
        let can_watch = |uris: &Vec<String>| uris.iter().filter(|uri| self.gateway.can_watch(uri)).cloned().collect();
        accepted.resource_subscriptions = few.map(can_watch);
        accepted
    }

    /// Tells a `listen` of changes, until it is withdrawn or belljar ends.
    pub(super) async fn tell(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let extensions = &context.request_context().extensions;
        let Listening(subscriber) = match extensions.get::<Listening>() {
            Some(listening) => listening.clone(),
            None => {
                let ready = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Ready>()).cloned();
                // However that ends, and also when it is withdrawn.
                let _said = ready.map(|Ready(said)| said.drop_guard());
                self.run(context.request_context(), Box::pin(self.prepare(context.requested()))).await?
            }
        };
        let sink = context.sink();
        loop {
            let changes = tokio::select! {
                biased;
                () = context.cancelled() => return Ok(()),
                () = subscriber.watching().closed() => return Ok(()),
                changes = subscriber.next() => changes,
            };
            for change in changes {
                let told = match change {
                    Change::Updated(uri) => sink.notify_resource_updated(uri.as_ref()).await,
                    Change::List => sink.notify_resource_list_changed().await,
                };
                if let Err(error) = told {
                    tracing::debug!("a subscription ended: {error}");
                    return Ok(());
                }
            }
        }
    }

    /// Tells a session of an older client of changes, from its greeting on.
    ///
    /// # Errors
    /// When there are too many watchers.
    pub(super) fn forward(&self, peer: &Peer<RoleServer>) -> Result<Arc<Subscriber>, NotWatched> {
        let mut session = self.session.forwarding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(forwarding) = session.as_ref() {
            return Ok(Arc::clone(&forwarding.subscriber));
        }
        let subscriber = Arc::new(self.gateway.subscriber(true)?);
        let (own, peer) = (Arc::clone(&subscriber), peer.clone());
        let task = tokio::spawn(async move {
            loop {
                for change in own.next().await {
                    let told = match change {
                        Change::Updated(uri) => {
                            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri.as_ref())).await
                        }
                        Change::List => peer.notify_resource_list_changed().await,
                    };
                    if told.is_err() {
                        return;
                    }
                }
            }
        });
        let forwarding = Forwarding { subscriber: Arc::clone(&subscriber), task: task.abort_handle() };
        *session = Some(forwarding);
        Ok(subscriber)
    }

    /// `resources/subscribe` of an older client.
    pub(super) async fn subscribe_to(&self, uri: String, peer: &Peer<RoleServer>) -> Result<(), ErrorData> {
        let refused = |why| refusal(why, Some(uri.clone()));
        let subscriber = self.forward(peer).map_err(refused)?;
        self.gateway.watch(&subscriber, vec![uri.clone()]).await.map_err(refused)
    }

    /// `resources/unsubscribe` of an older client.
    pub(super) fn unsubscribe_from(&self, uri: &str) {
        let session = self.session.forwarding.lock().unwrap_or_else(PoisonError::into_inner);
        session.iter().for_each(|forwarding| forwarding.subscriber.unwatch(uri));
    }
}
