"""A receiver of OTLP over HTTP, with the official messages of OpenTelemetry. Prints its port on the first line.

When standard input ends, it prints one line of JSON with all spans that it received. With the argument "hang", it reads
requests and never answers.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

HANGS = sys.argv[1:] == ["hang"]
received = []
kinds = ["unspecified", "internal", "server", "client", "producer", "consumer"]


def value(any_value):
    """The value of an attribute."""
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(pairs):
    """Attributes as a dictionary."""
    return {pair.key: value(pair.value) for pair in pairs}


def plain(span, resource):
    """A span as a dictionary."""
    return {
        "name": span.name,
        "kind": kinds[span.kind],
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "attributes": attributes(span.attributes),
        "links": [{"trace": link.trace_id.hex(), "span": link.span_id.hex()} for link in span.links],
        "failed": span.status.code == 2,
        "message": span.status.message,
        "flags": span.flags,
        "resource": resource,
    }


class Handler(BaseHTTPRequestHandler):
    """Takes spans."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if HANGS:
            time.sleep(3600)
        assert self.path == "/v1/traces" and self.headers["content-type"] == "application/x-protobuf"
        request = ExportTraceServiceRequest.FromString(body)
        for spans in request.resource_spans:
            resource = attributes(spans.resource.attributes)
            received.extend(plain(span, resource) for scope in spans.scope_spans for span in scope.spans)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Prints nothing: standard output has the report only."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
print(json.dumps(received), flush=True)
