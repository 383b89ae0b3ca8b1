//! A client with rmcp, and its OAuth. Reads resources of a protected server: registers, logs in, takes a token, and takes a
//! further token when a read needs more scopes. Prints one report.
//!
//! The first argument is a JSON request, and the report is one line of JSON. `tests/integration/auth/oauth/clients.rs`
//! documents both.

#![expect(clippy::indexing_slicing, reason = "only JSON is indexed: an absent key is null")]

mod browser;
mod recorder;

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use browser::Browser;
use recorder::Recorder;
use rmcp::model::{Implementation, ProtocolVersion, ReadResourceRequestParams};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::auth::{
    AuthClient, AuthorizationCallback, AuthorizationManager, AuthorizationRequest, OAuthState, WWWAuthenticateParams,
};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, ServiceError};
use serde_json::{Map, Value, json};

/// A native client may use any port of the loopback address.
const REDIRECT: &str = "http://127.0.0.1/callback";

/// Why the program ends without a report.
type Failure = Box<dyn Error + Send + Sync>;

/// A connected client.
struct Client {
    service: RunningService<RoleClient, ()>,
    auth: AuthClient<Recorder>,
    browser: Browser,
    /// Every access token, and the scopes of the last one.
    access_tokens: Vec<Value>,
    scope: Value,
    client_id: String,
}

/// What the arguments say.
struct Request(Value);

impl Request {
    fn text(&self, name: &str) -> Result<&str, Failure> {
        self.0[name].as_str().ok_or_else(|| format!("no \"{name}\" in the request").into())
    }

    /// What rmcp is told for the first authorization, with the challenge of the server.
    fn authorization(&self, challenge: &str) -> Result<AuthorizationRequest, Failure> {
        let asked = AuthorizationRequest::new(REDIRECT).with_initial_scope_selection().with_challenge(challenge);
        let registered = |name: &str| self.0["registered"][name].as_str().unwrap_or_default();
        Ok(match self.text("registration")? {
            "pre" => {
                asked.with_preregistered_client(registered("client_id")).with_client_secret(registered("client_secret"))
            }
            "cimd" => asked.with_client_metadata_url(self.text("document")?),
            _ => asked.with_client_name("belljar tests"),
        })
    }

    /// Connects with the credentials of `manager`, if it has any.
    async fn connect(
        &self,
        url: &str,
        http: &Recorder,
        manager: AuthorizationManager,
    ) -> Result<(RunningService<RoleClient, ()>, AuthClient<Recorder>), ClientInitializeError> {
        let auth = AuthClient::new(http.clone(), manager);
        let config = StreamableHttpClientTransportConfig::with_uri(url);
        let transport = StreamableHttpClientTransport::with_client(auth.clone(), config);
        let mode = match self.0["mode"] == "legacy" {
            true => ClientLifecycleMode::Initialize,
            false => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: None,
            },
        };
        Ok((().serve_with_lifecycle(transport, mode).await?, auth))
    }
}

impl Client {
    /// Connects without credentials, logs in as the server demands, and connects again.
    async fn log_in(request: &Request, http: &Recorder) -> Result<Client, Failure> {
        let url = request.text("url")?;
        let mut browser = Browser::new(request.text("account")?, REDIRECT)?;
        let mut state = OAuthState::new_with_oauth_http_client(url, Arc::new(http.clone())).await?;
        let manager = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(http.clone())).await?;
        let refusal = match request.connect(url, http, manager).await {
            Ok(_) => return Err("the server asks for no credentials".into()),
            Err(refusal) => refusal,
        };
        let Some(challenge) = refusal.auth_challenge() else { return Err(refusal.into()) };
        state.start_authorization(request.authorization(challenge)?).await?;
        let answer = browser.authorize(&state.get_authorization_url().await?).await?;
        state.handle_callback_url(&answer).await?;
        let manager = state.into_authorization_manager().ok_or("the authorization is not complete")?;
        let (service, auth) = request.connect(url, http, manager).await?;
        let (access_tokens, scope, client_id) = (Vec::new(), Value::Null, String::new());
        let mut client = Client { service, auth, browser, access_tokens, scope, client_id };
        client.take_token().await?;
        Ok(client)
    }

    /// Notes the token in use.
    async fn take_token(&mut self) -> Result<(), Failure> {
        let (client_id, token) = self.auth.auth_manager.lock().await.get_credentials().await?;
        let token = serde_json::to_value(token)?;
        self.access_tokens.push(token["access_token"].clone());
        (self.client_id, self.scope) = (client_id, token["scope"].clone());
        Ok(())
    }

    /// Takes a token with the scopes that a challenge names.
    async fn step_up(&mut self, url: &str, challenge: &str) -> Result<(), Failure> {
        let challenge = WWWAuthenticateParams::parse(challenge, &url.parse()?);
        let scope = challenge.scope.as_deref().filter(|_| challenge.is_insufficient_scope());
        let scope = scope.ok_or("the challenge names no scope")?;
        let page = self.auth.auth_manager.lock().await.request_scope_upgrade(scope).await?;
        let answer = AuthorizationCallback::from_redirect_url(&self.browser.authorize(&page).await?)?;
        let manager = self.auth.auth_manager.lock().await;
        let issuer = answer.issuer.as_deref();
        manager.exchange_code_for_token_with_issuer(&answer.code, &answer.csrf_token, issuer).await?;
        drop(manager);
        self.take_token().await
    }

    /// Reads a resource. Returns its contents, the error of the server, or the failure of the client.
    async fn read(&mut self, url: &str, uri: &str) -> Value {
        let mut answer = self.service.read_resource(ReadResourceRequestParams::new(uri)).await;
        if let Some(challenge) = answer.as_ref().err().and_then(ServiceError::auth_challenge).map(str::to_owned) {
            if let Err(failure) = self.step_up(url, &challenge).await {
                return json!({ "failure": failure.to_string() });
            }
            answer = self.service.read_resource(ReadResourceRequestParams::new(uri)).await;
        }
        match answer {
            Ok(result) => json!({ "contents": result.contents }),
            Err(ServiceError::McpError(error)) => json!({ "error": error }),
            Err(failure) => match failure.auth_challenge() {
                Some(challenge) => json!({ "failure": challenge }),
                None => json!({ "failure": failure.to_string() }),
            },
        }
    }
}

/// Connects, reads the requested resources, and returns the report.
async fn report(request: &Request) -> Result<Value, Failure> {
    let http = Recorder::default();
    let mut client = Client::log_in(request, &http).await?;
    let mut reads = Map::new();
    for uri in request.0["reads"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        reads.insert(uri.to_owned(), client.read(request.text("url")?, uri).await);
    }
    let (own, server) = (Implementation::from_build_env(), client.service.peer_info().ok_or("no server")?);
    Ok(json!({
        "client": format!("{} {}", own.name, own.version),
        "protocol": server.protocol_version,
        "server": server.server_info.as_ref().map(|server| &server.name),
        "reads": reads,
        "authorizations": client.browser.authorizations(),
        "exchanges": http.exchanges(),
        "client_id": client.client_id,
        "scope": client.scope,
        "access_tokens": client.access_tokens,
    }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let argument = std::env::args().nth(1).ok_or("expected a request in JSON")?;
    let report = report(&Request(serde_json::from_str(&argument)?)).await?;
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}
