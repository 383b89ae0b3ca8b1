//! Subscriptions of both eras. `subscriptions/listen` (2026-07-28) is a request that stays open and receives the
//! notifications that it asked for. `resources/subscribe` (older) makes the session receive them. Such a session
//! receives changes of the list without asking.
//!
//! rmcp acknowledges a `listen` before its handler runs. The first poll of the watched resources must come before the
//! acknowledgement: a change between the two would be missed. On stdio, a [`SubscribeGate`] polls before rmcp sees the
//! request. rmcp has no such hook over HTTP: there, the transport holds the response back until the
//! [`SubscribedSignal`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, ProtocolVersion, ResourceUpdatedNotificationParam, ServerConfig,
    ServerResult, SubscriptionFilter,
};

use rmcp::service::{NotificationContext, Peer, RequestContext as RmcpContext, Service, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::CancellationToken;

use super::era::Era;
use super::fault;
use super::handler::Handler;
use super::session::NotificationTask;
use crate::gateway::subscriptions::{ChangeNotification, ListKind, SubscribeError, Subscriber, WantedLists};
use crate::model::bounds::MAX_WATCHED_URIS;
use crate::model::{Fault, ReadError};
use crate::policy::Principal;

/// The service in front of rmcp's dispatch on stdio. It prepares a `listen` before rmcp acknowledges it.
pub struct SubscribeGate {
    handler: Handler,
}

/// Signals that the first poll for a `listen` is done. The transport puts it into the extensions of an HTTP request.
#[derive(Clone, Default)]
pub struct SubscribedSignal(CancellationToken);

impl SubscribedSignal {
    /// Waits until the poll is done, the request has ended, or 30 s have passed.
    pub async fn wait(&self) {
        let _ = tokio::time::timeout(MAX_HOLD, self.0.cancelled()).await;
    }
}

/// The method. Its record says how the subscription began, and is written then.
const LISTEN: &str = "subscriptions/listen";

/// The transport holds an acknowledgement back for at most this time. A first poll takes less.
const MAX_HOLD: Duration = Duration::from_secs(30);

/// The subscriber of a `listen`, which the gate puts into the request's extensions for the handler.
#[derive(Clone)]
struct PreparedListen(Arc<Subscriber>);

impl SubscribeGate {
    /// A gate in front of `handler`.
    pub fn new(handler: Handler) -> Self {
        Self { handler }
    }
}

impl Service<RoleServer> for SubscribeGate {
    async fn handle_request(
        &self,
        request: ClientRequest,
        mut context: RmcpContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let handler = &self.handler;
        if let ClientRequest::SubscriptionsListenRequest(listen) = &request
            && Era::of_request(&context).is_stateless()
        {
            let own = handler.context_of(&context, LISTEN);
            let prepared = Box::pin(handler.prepare(&own.caller.principal, &listen.params.notifications));
            let listening = own.end(handler.run(&own, prepared).await)?;
            drop(own);
            context.extensions.insert(listening);
        }
        handler.handle_request(request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.handler.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.handler)
    }
}

fn refusal(why: SubscribeError, uri: Option<String>) -> ErrorData {
    let error = match why {
        SubscribeError::UnknownUri => ReadError::NotFound,
        SubscribeError::InsufficientScope(scopes) => ReadError::InsufficientScope { scopes },
        SubscribeError::PerPrincipal => ReadError::Unavailable(
            "changes of this mount cannot be watched, because each caller gets other answers; read again instead"
                .to_owned(),
        ),
        SubscribeError::Busy(error) => error,
        SubscribeError::TooMany(most) => ReadError::busy(format!(
            "too many resources are watched; at most {most} at once: end another subscription first, or watch fewer resources"
        )),
    };
    fault::to_error(Fault { error, mount: None, uri })
}

impl Handler {
    /// Subscribes a `listen`, and polls the resources that it watches for the first time.
    async fn prepare(&self, principal: &Principal, wanted: &SubscriptionFilter) -> Result<PreparedListen, ErrorData> {
        let uris = wanted.resource_subscriptions.as_deref().unwrap_or_default();
        if uris.len() > MAX_WATCHED_URIS.get() {
            return Err(refusal(SubscribeError::TooMany(MAX_WATCHED_URIS.get()), None));
        }
        let is_wanted = |filter: Option<bool>| filter == Some(true);
        let lists = WantedLists {
            resources: is_wanted(wanted.resources_list_changed),
            tools: is_wanted(wanted.tools_list_changed),
            prompts: is_wanted(wanted.prompts_list_changed),
        };
        let subscriber = self.gateway.subscriber(principal, lists).map_err(|why| refusal(why, None))?;
        self.wait_until_loaded().await;
        let uris = uris.iter().filter(|uri| self.gateway.can_watch(principal, uri)).cloned().collect();
        self.gateway.watch(&subscriber, uris).await.map_err(|why| refusal(why, None))?;
        Ok(PreparedListen(Arc::new(subscriber)))
    }

    /// The part of `requested` that belljar grants: changes of the list, and resources that belong to a mount and that
    /// the handler's principal may watch.
    pub(super) fn accepted_filter(&self, requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = SubscriptionFilter::new();
        accepted.resources_list_changed = requested.resources_list_changed;
        accepted.tools_list_changed = requested.tools_list_changed;
        accepted.prompts_list_changed = requested.prompts_list_changed;
        // rmcp compares each accepted URI with each requested one, which is quadratic. Too many URIs are refused later.
        let few = requested.resource_subscriptions.as_ref().filter(|uris| uris.len() <= MAX_WATCHED_URIS.get());
        let can_watch = |uri: &&String| self.gateway.can_watch(self.principal(), uri);
        let can_watch = |uris: &Vec<String>| uris.iter().filter(can_watch).cloned().collect();
        accepted.resource_subscriptions = few.map(can_watch);
        accepted
    }

    /// Sends changes to a `listen`, until the client cancels it or belljar ends.
    pub(super) async fn send_changes(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let extensions = &context.request_context().extensions;
        let PreparedListen(subscriber) = match extensions.get::<PreparedListen>() {
            Some(listening) => listening.clone(),
            None => {
                let signal =
                    extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<SubscribedSignal>()).cloned();
                // The guard signals on each way out, and also when this future is dropped.
                let _signal = signal.map(|SubscribedSignal(token)| token.drop_guard());
                let own = self.context_of(context.request_context(), LISTEN);
                let prepared = self.prepare(&own.caller.principal, context.requested());
                own.end(self.run(&own, Box::pin(prepared)).await)?
            }
        };
        let sink = context.sink();
        loop {
            let changes = tokio::select! {
                biased;
                () = context.cancelled() => return Ok(()),
                () = subscriber.subscriptions().closed() => return Ok(()),
                () = self.session.ended() => return Ok(()),
                changes = self.gateway.next_changes(&subscriber) => changes,
            };
            for change in changes {
                let sent = match change {
                    ChangeNotification::Updated(uri) => sink.notify_resource_updated(uri.as_ref()).await,
                    ChangeNotification::List(ListKind::Resources) => sink.notify_resource_list_changed().await,
                    ChangeNotification::List(ListKind::Tools) => sink.notify_tool_list_changed().await,
                    ChangeNotification::List(ListKind::Prompts) => sink.notify_prompt_list_changed().await,
                };
                if let Err(error) = sent {
                    tracing::debug!("a subscription ended: {error}");
                    return Ok(());
                }
            }
        }
    }

    /// Starts the task that sends changes to the session of an older client, if it does not run yet.
    ///
    /// # Errors
    /// [`SubscribeError::TooMany`] when there are too many subscribers.
    pub(super) fn start_notifications(
        &self,
        principal: &Principal,
        peer: &Peer<RoleServer>,
    ) -> Result<Arc<Subscriber>, SubscribeError> {
        let mut session = self.session.notification_task();
        if let Some(running) = session.as_ref() {
            return Ok(Arc::clone(running.subscriber()));
        }
        let subscriber = Arc::new(self.gateway.subscriber(principal, WantedLists::ALL)?);
        let (gateway, changed, peer) = (Arc::clone(&self.gateway), Arc::clone(&subscriber), peer.clone());
        let task = tokio::spawn(async move {
            loop {
                for change in gateway.next_changes(&changed).await {
                    let sent = match change {
                        ChangeNotification::Updated(uri) => {
                            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri.as_ref())).await
                        }
                        ChangeNotification::List(ListKind::Resources) => peer.notify_resource_list_changed().await,
                        ChangeNotification::List(ListKind::Tools) => peer.notify_tool_list_changed().await,
                        ChangeNotification::List(ListKind::Prompts) => peer.notify_prompt_list_changed().await,
                    };
                    if sent.is_err() {
                        return;
                    }
                }
            }
        });
        let notification_task = NotificationTask::new(Arc::clone(&subscriber), task.abort_handle());
        *session = Some(notification_task);
        Ok(subscriber)
    }

    /// `resources/subscribe`, which revisions up to 2025-11-25 have.
    pub(super) async fn subscribe_to(
        &self,
        uri: String,
        principal: &Principal,
        peer: &Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let to_error = |why| refusal(why, Some(uri.clone()));
        let subscriber = self.start_notifications(principal, peer).map_err(to_error)?;
        self.gateway.watch(&subscriber, vec![uri.clone()]).await.map_err(to_error)
    }

    /// `resources/unsubscribe`, which revisions up to 2025-11-25 have.
    pub(super) fn unsubscribe_from(&self, uri: &str) {
        let session = self.session.notification_task();
        session.iter().for_each(|task| task.subscriber().unwatch(uri));
    }
}
