//! How the handler answers each request. rmcp's service loop and the dispatcher of stateless requests both call this.

use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, DiscoverResult,
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse,
};

use super::context::{Era, RequestContext};
use super::cursor::BadCursor;
use super::deferred_bodies::DeferredBodies;
use super::handler::Handler;
use super::{completion, consent, convert, cursor, fault, tools};
use crate::catalog::listing::{ListPosition, Listed};
use crate::gateway::{ListPage, ReadOutcome};
use crate::model::{Resource, Template};
use crate::policy::{Action, Caller, Principal};

impl Handler {
    async fn list<T: Listed>(
        &self,
        caller: &Caller,
        request: Option<PaginatedRequestParams>,
        kind: cursor::CursorKind,
    ) -> Result<(ListPage<T>, Option<String>), ErrorData> {
        let start: Option<ListPosition> = match request.and_then(|request| request.cursor) {
            Some(cursor) => {
                Some(self.cursors.open(kind, &caller.principal, &cursor).map_err(|why| fault::bad_cursor(&why))?)
            }
            None => None,
        };
        let quota = self.gateway.count_action(caller, Action::List, None).await.map_err(fault::to_error)?;
        let mut listing = self.gateway.list(caller, start, None).await;
        quota.charge(listing.bytes()).await;
        let next = listing.next.take().map(|position| self.cursors.seal(kind, &caller.principal, &position));
        Ok((listing, next))
    }

    /// `server/discover`.
    pub(super) async fn discovery(&self, principal: &Principal) -> Result<DiscoverResult, ErrorData> {
        self.gateway.wait_for_scan().await;
        let versions = ServerHandler::supported_protocol_versions(self).into_owned();
        let mut info = ServerHandler::get_info(self);
        info.instructions = Some(self.instructions(principal));
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    /// `resources/list`.
    pub(super) async fn resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<'_>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let work = async {
            let (listing, next) =
                self.list::<Resource>(&context.caller, request, cursor::CursorKind::Resources).await?;
            Ok(convert::resources(listing, next, context.era))
        };
        self.run(context, Box::pin(work)).await
    }

    /// `resources/templates/list`.
    pub(super) async fn templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<'_>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let work = async {
            let (listing, next) =
                self.list::<Template>(&context.caller, request, cursor::CursorKind::Templates).await?;
            Ok(convert::templates(listing, next, context.era))
        };
        self.run(context, Box::pin(work)).await
    }

    /// `resources/read`.
    pub(super) async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let work = async {
            let (state, answers) = (request.request_state.as_deref(), request.input_responses.as_ref());
            let consent_input = consent::consent_input(context, state, answers)?;
            let read = self.gateway.read_with_consent(
                &context.caller,
                &request.uri,
                consent_input,
                self.start_call(context.exchange),
            );
            read.await.map_err(fault::to_error)
        };
        Ok(match self.run(context, Box::pin(work)).await? {
            ReadOutcome::Contents(reading, mount, mut cost) => {
                let bytes = convert::encoded_len(&reading);
                let is_public = mount.cache.public && !self.gateway.has_rules() && !mount.is_per_principal();
                let scope = if is_public { CacheScope::Public } else { CacheScope::Private };
                let body = |body| DeferredBodies::text_for(context.deferred_bodies, body);
                let result = cost.charge(bytes, || convert::reading(reading, &mount, (context.era, scope), body));
                if let Some(exchange) = context.exchange {
                    exchange.set_cost(cost, bytes);
                }
                result.into()
            }
            ReadOutcome::ConsentRequired(question) => consent::question(question).into(),
            ReadOutcome::ConsentUnavailable(fault) => return Err(context.consent_unavailable(fault)),
        })
    }

    /// `completion/complete`.
    pub(super) async fn completion(
        &self,
        request: CompleteRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<CompleteResult, ErrorData> {
        let work = async {
            self.gateway.count_request(&context.caller, "complete").await.map_err(fault::to_error)?;
            completion::complete(&self.gateway, context, request).await
        };
        self.run(context, Box::pin(work)).await
    }

    /// `tools/list`.
    pub(super) fn tools(
        &self,
        request: Option<PaginatedRequestParams>,
        era: Era,
    ) -> Result<ListToolsResult, ErrorData> {
        if !self.has_tools {
            return Err(fault::method_not_found("tools/list"));
        }
        // The list has one page, so this server never gave a cursor for it.
        match request.and_then(|request| request.cursor) {
            Some(_) => Err(fault::bad_cursor(&BadCursor::Foreign)),
            None => Ok(tools::definitions(era)),
        }
    }

    /// `tools/call`.
    pub(super) async fn tool_result(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.has_tools {
            return Err(fault::method_not_found("tools/call"));
        }
        self.run(context, Box::pin(tools::call(self, context, request))).await
    }
}
