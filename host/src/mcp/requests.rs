//! How the handler answers each request. rmcp's service loop and the fast path both call this.

use std::sync::Arc;

use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, DiscoverResult,
    ErrorData, GetPromptRequestParams, GetPromptResponse, InputResponses, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse,
};

use super::asking::AskRounds;
use super::context::RequestContext;
use super::era::Era;
use super::handler::Handler;
use super::{completion, consent, convert, cursor, fault, identity, prompts, provider_tools, tools};
use crate::catalog::listing::{ListPosition, Listed};
use crate::catalog::{Defined, Mount};
use crate::gateway::consent::ConsentQuestion;
use crate::gateway::definitions::DefinitionPage;
use crate::gateway::response_cost::ResponseCost;
use crate::gateway::{ListPage, OutdatedList, ReadOutcome};
use crate::interfaces::tools::ToolDefinition;
use crate::model::{Prompt, Reading, Resource, Template};
use crate::policy::{Action, Caller, Principal};

/// `ttlMs` of a list that has only belljar's own tools: 5 minutes.
const OWN_TOOLS_TTL: u64 = 5 * 60 * 1000;

/// The `_meta` key of the generation of the configuration. Replicas with the same one serve the same.
const GENERATION_KEY: &str = "dev.belljar/generation";

/// The outcome of a read that did not fail.
pub(super) enum ReadAnswer {
    /// What was read.
    Contents(ServedReading),
    /// A question for the person who reads.
    Question(ConsentQuestion),
}

/// A reading, and what its answer says of it.
pub(super) struct ServedReading {
    pub(super) reading: Reading,
    pub(super) mount: Arc<Mount>,
    /// Who may cache it.
    pub(super) scope: CacheScope,
    /// The cost of the work that is left.
    pub(super) cost: ResponseCost,
}

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
        let listing = self.gateway.list_from(caller, start, None).await;
        let mut listing = listing.map_err(|OutdatedList| fault::bad_cursor(&cursor::BadCursor::Outdated))?;
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
        let mut found = DiscoverResult::from_server_info(versions, info);
        let generation = self.gateway.generation();
        if !generation.name.is_empty() {
            let meta = found.meta.get_or_insert_default();
            meta.insert(GENERATION_KEY.to_owned(), generation.name.clone().into());
        }
        Ok(found)
    }

    /// `resources/list`.
    pub(super) async fn resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<'_>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let work = async {
            let (mut listing, next) =
                self.list::<Resource>(&context.caller, request, cursor::CursorKind::Resources).await?;
            let entries = listing.entries.iter_mut().map(|(entry, mount)| (entry, &*mount));
            self.gateway.name_skills(&context.caller.principal, entries);
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

    /// `resources/read`. Asks the client of a session its questions, so only a stateless client gets one.
    pub(super) async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<ReadAnswer, ErrorData> {
        let ReadResourceRequestParams { uri, request_state, input_responses, .. } = request;
        let rounds = AskRounds::new(context, request_state, input_responses);
        match self.read_once(&uri, context, rounds.input()).await? {
            // Boxed, because most reads ask nothing, and each read would have room for its state.
            ReadAnswer::Question(question) if context.era == Era::Session => {
                Box::pin(self.read_after_questions(&uri, context, rounds, question)).await
            }
            answer => Ok(answer),
        }
    }

    /// Asks the client of a session, and reads with its answers.
    async fn read_after_questions(
        &self,
        uri: &str,
        context: &RequestContext<'_>,
        mut rounds: AskRounds,
        mut question: ConsentQuestion,
    ) -> Result<ReadAnswer, ErrorData> {
        loop {
            self.run(context, Box::pin(rounds.ask(context, consent::question(question)))).await?;
            match self.read_once(uri, context, rounds.input()).await? {
                ReadAnswer::Question(next) => question = next,
                contents => return Ok(contents),
            }
        }
    }

    /// Reads once, with the state and the answers of an earlier question.
    async fn read_once(
        &self,
        uri: &str,
        context: &RequestContext<'_>,
        (state, answers): (Option<&str>, Option<&InputResponses>),
    ) -> Result<ReadAnswer, ErrorData> {
        let work = async {
            let consent_input = consent::consent_input(context, state, answers)?;
            let read =
                self.gateway.read_with_consent(&context.caller, uri, consent_input, self.start_call(context.exchange));
            read.await.map_err(fault::to_error)
        };
        Ok(match self.run(context, Box::pin(work)).await? {
            ReadOutcome::Contents(reading, mount, cost) => {
                let is_public = mount.cache.public && !self.gateway.has_rules() && !mount.is_per_principal();
                let scope = if is_public { CacheScope::Public } else { CacheScope::Private };
                ReadAnswer::Contents(ServedReading { reading, mount, scope, cost })
            }
            ReadOutcome::ConsentRequired(question) => ReadAnswer::Question(question),
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

    /// One page of definitions, and the cursor of the next one.
    async fn definitions<D: Defined>(
        &self,
        caller: &Caller,
        request: Option<PaginatedRequestParams>,
        kind: cursor::CursorKind,
    ) -> Result<(DefinitionPage<D>, Option<String>, bool), ErrorData> {
        let start = match request.and_then(|request| request.cursor) {
            Some(cursor) => {
                Some(self.cursors.open(kind, &caller.principal, &cursor).map_err(|why| fault::bad_cursor(&why))?)
            }
            None => None,
        };
        let is_first = start.is_none();
        let _ = self.gateway.count_action(caller, D::ACTION, None).await.map_err(fault::to_error)?;
        let mut page = self.gateway.definitions::<D>(caller, start, None).await;
        let next = page.next.take().map(|position| self.cursors.seal(kind, &caller.principal, &position));
        Ok((page, next, is_first))
    }

    /// `tools/list`: belljar's own tools first, then those of the mounts.
    pub(super) async fn tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<'_>,
    ) -> Result<ListToolsResult, ErrorData> {
        let work = async {
            let (page, next, is_first) =
                self.definitions::<ToolDefinition>(&context.caller, request, cursor::CursorKind::Tools).await?;
            let own = if is_first && self.has_tools { tools::definitions() } else { Vec::new() };
            let ttl = if page.entries.is_empty() { OWN_TOOLS_TTL } else { 0 };
            let of_providers = page.entries.iter().map(provider_tools::definition);
            let mut out = ListToolsResult::with_all_items(own.into_iter().chain(of_providers).collect());
            out.next_cursor = next;
            out.meta = convert::notices(page.notices);
            identity::add_server_info(&mut out.meta, context.era);
            if context.era.is_stateless() {
                (out.ttl_ms, out.cache_scope) = (Some(ttl), Some(CacheScope::Private));
            }
            Ok(out)
        };
        self.run(context, Box::pin(work)).await
    }

    /// `tools/call`.
    pub(super) async fn tool_result(
        &self,
        mut request: CallToolRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<CallToolResponse, ErrorData> {
        context.set_name(&request.name);
        let mut rounds = AskRounds::new(context, request.request_state.take(), request.input_responses.take());
        let work = async {
            if let Err(fault) = self.gateway.count_request(&context.caller, "tools/call").await {
                return Ok(tools::failed(fault::to_error(fault), context).into());
            }
            let is_own = self.has_tools && tools::is_own(&request.name);
            loop {
                let called = match is_own {
                    true => tools::call(self, context, &request, rounds.input()).await?,
                    false => provider_tools::call(self, context, &request, rounds.input()).await?,
                };
                if let Some(done) = rounds.finish(context, called).await? {
                    return Ok(done);
                }
            }
        };
        self.run(context, Box::pin(work)).await
    }

    /// `prompts/list`.
    pub(super) async fn prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<'_>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let work = async {
            let (page, next, _) =
                self.definitions::<Prompt>(&context.caller, request, cursor::CursorKind::Prompts).await?;
            Ok(prompts::page(page, next, context.era))
        };
        self.run(context, Box::pin(work)).await
    }

    /// `prompts/get`.
    pub(super) async fn prompt(
        &self,
        mut request: GetPromptRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<GetPromptResponse, ErrorData> {
        context.set_name(&request.name);
        let mut rounds = AskRounds::new(context, request.request_state.take(), request.input_responses.take());
        let work = async {
            self.gateway.count_request(&context.caller, "prompts/get").await.map_err(fault::to_error)?;
            loop {
                let given = prompts::get(self, context, &request, rounds.input()).await?;
                if let Some(done) = rounds.finish(context, given).await? {
                    return Ok(done);
                }
            }
        };
        self.run(context, Box::pin(work)).await
    }
}

/// The response to a read in rmcp's types.
pub(super) fn read_response(answer: ReadAnswer, context: &RequestContext<'_>) -> ReadResourceResponse {
    match answer {
        ReadAnswer::Contents(ServedReading { reading, mount, scope, mut cost }) => {
            let bytes = convert::encoded_len(&reading);
            let result = cost.charge(bytes, || convert::reading(reading, &mount, (context.era, scope)));
            if let Some(exchange) = context.exchange {
                exchange.set_cost(cost, bytes);
            }
            result.into()
        }
        ReadAnswer::Question(question) => consent::question(question).into(),
    }
}
