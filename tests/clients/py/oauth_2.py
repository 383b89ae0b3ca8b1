"""A client with the Python SDK 2.3, and OAuth. Reads resources of a protected server: registers, logs in, takes a token, and
takes a further token when a read needs more scopes. Prints one report.

argv[1] is a JSON request, and the report is one line of JSON. `tests/integration/auth/oauth/clients.rs` documents both.
"""

import asyncio
import json
import sys
from importlib.metadata import version
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from mcp.shared.exceptions import MCPError
from results import plain

REDIRECT = "http://127.0.0.1/callback"

# The most redirects of one authorization. A login and a consent take six.
MOST_REDIRECTS = 12


class Storage:
    """What a program keeps: the registration and the tokens."""

    def __init__(self, client):
        self.client, self.tokens, self.access_tokens = client, None, []

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens
        self.access_tokens.append(tokens.access_token)

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Browser:
    """The browser of a person who logs in: follows the redirects of an authorization server, and keeps its cookies."""

    def __init__(self, account):
        self.account, self.authorizations, self.answer = account, [], None

    async def authorize(self, url):
        """Follows an authorization URL until the redirect to the client."""
        asked = parameters(url)
        names = ("client_id", "response_type", "code_challenge_method", "redirect_uri", "resource", "scope")
        seen = {name: asked.get(name) for name in names} | {"has_challenge": "code_challenge" in asked}
        url += "&" + urlencode({"login_hint": self.account})
        async with httpx2.AsyncClient() as browser:
            for _ in range(MOST_REDIRECTS):
                response = await browser.get(url)
                if "location" not in response.headers:
                    raise RuntimeError(f"no redirect, but {response.status_code}: {response.text}")
                url = str(response.url.join(response.headers["location"]))
                if url.startswith(REDIRECT):
                    self.answer = parameters(url)
                    self.authorizations.append(seen | {name: self.answer.get(name) for name in ("iss", "error")})
                    return
        raise RuntimeError(f"more than {MOST_REDIRECTS} redirects")

    async def callback(self):
        """The parameters of the redirect to the client."""
        answer = self.answer
        if "code" not in answer:
            raise RuntimeError(f"no code, but {answer}")
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))


def parameters(url):
    """The query of a URL."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def credentials(request, browser, storage):
    """The provider of credentials, with the requested way of registration."""
    metadata = OAuthClientMetadata(
        client_name="belljar tests", redirect_uris=[REDIRECT], token_endpoint_auth_method="none"
    )
    document = request["document"] if request["registration"] == "cimd" else None
    return OAuthClientProvider(
        server_url=request["url"],
        client_metadata=metadata,
        storage=storage,
        redirect_handler=browser.authorize,
        callback_handler=browser.callback,
        client_metadata_url=document,
    )


def registered(request):
    """The client that registered before, if the request wants it."""
    if request["registration"] != "pre":
        return None
    return OAuthClientInformationFull(
        **request["registered"], redirect_uris=[REDIRECT], token_endpoint_auth_method="client_secret_basic"
    )


async def read(client, uri):
    """Reads a resource. Returns its contents, the error of the server, or the failure of the client."""
    try:
        return {"contents": plain(await client.read_resource(uri))["contents"]}
    except MCPError as failure:
        return {"error": plain(failure.error)}
    except Exception as failure:
        return {"failure": f"{type(failure).__name__}: {failure}"}


async def main(request):
    """Connects, reads the requested resources, and returns the report."""
    exchanges = []

    async def record(response):
        exchange = {"method": response.request.method, "url": str(response.url.copy_with(query=None))}
        exchange["status"] = response.status_code
        if "www-authenticate" in response.headers:
            exchange["challenge"] = response.headers["www-authenticate"]
        exchanges.append(exchange)

    browser, storage = Browser(request["account"]), Storage(registered(request))
    async with httpx2.AsyncClient(
        auth=credentials(request, browser, storage), event_hooks={"response": [record]}, timeout=60
    ) as http_client:
        transport = streamable_http_client(request["url"], http_client=http_client)
        async with Client(transport, mode=request["mode"], cache=None, read_timeout_seconds=60) as client:
            reads = {uri: await read(client, uri) for uri in request["reads"]}
            return {
                "client": "python mcp " + version("mcp"),
                "protocol": client.protocol_version,
                "server": client.server_info.name,
                "reads": reads,
                "authorizations": browser.authorizations,
                "exchanges": exchanges,
                "client_id": storage.client.client_id,
                "scope": storage.tokens.scope,
                "access_tokens": storage.access_tokens,
            }


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
