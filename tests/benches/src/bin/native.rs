//! A server with rmcp alone, without a sandbox. The benches compare belljar with this server: it gives the same
//! answers, and no server with the same SDK can be much faster.
//!
//! `native` serves stdio. `native --http` serves HTTP on a free port of loopback, and prints the address to standard
//! error. With `--file FILE`, each read of `belljar://files/page.txt` reads that file.
#![expect(clippy::expect_used, clippy::print_stderr, reason = "a bench ends at the first error, and prints its port")]

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use rmcp::model::{
    ErrorData, ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};

/// The line of `log` in `guest_sized`.
const LINE: &str = "2026-11-29T12:00:00Z INFO \"GET /index.html\" 200 1024 bytes sent\n";

#[derive(Clone)]
struct Native {
    file: Option<PathBuf>,
}

impl ServerHandler for Native {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_resources().build())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        // The guest `guest_sized` lists the same resources with `SIZED_COUNT=100`.
        let names = (1..=100).map(|n| format!("n/{n:06}"));
        let all = names.map(|name| Resource::new(format!("belljar://sized/{name}"), name));
        Ok(ListResourcesResult::with_all_items(all.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let missing = || ErrorData::resource_not_found("resource not found", None);
        if let Some(file) = self.file.as_ref().filter(|_| request.uri == "belljar://files/page.txt") {
            // Read on this thread: a small file is in the page cache, and another thread would cost more.
            let text = std::fs::read_to_string(file).map_err(|_| missing())?;
            let contents = ResourceContents::text(text, request.uri);
            return Ok(ReadResourceResult::new(vec![contents]).into());
        }
        let (kind, bytes) =
            request.uri.strip_prefix("belljar://sized/").and_then(|r| r.split_once('/')).ok_or_else(missing)?;
        let bytes: usize = bytes.parse().map_err(|_| missing())?;
        let contents = match kind {
            "text" => ResourceContents::text("x".repeat(bytes), request.uri),
            "log" => ResourceContents::text(LINE.repeat(bytes / LINE.len()), request.uri),
            _ => {
                ResourceContents::blob(base64::engine::general_purpose::STANDARD.encode(vec![0xA5; bytes]), request.uri)
            }
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

#[tokio::main]
async fn main() {
    let mut file = std::env::args_os().skip_while(|argument| argument != "--file");
    let native = Native { file: file.nth(1).map(PathBuf::from) };
    if !std::env::args().any(|argument| argument == "--http") {
        let service = rmcp::serve_server(native, rmcp::transport::io::stdio_pipes()).await.expect("a client");
        let _ = service.waiting().await;
        return;
    }
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service =
        StreamableHttpService::new(move || Ok(native.clone()), Arc::new(LocalSessionManager::default()), config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    eprintln!("listening on http://{}/mcp", listener.local_addr().expect("an address"));
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await.expect("a server that runs");
}
