/* Requests over HTTP, through wasi:http. For the interface http: name it in INTERFACES of the Makefile.
 *
 *     auto response = belljar::http::get("https://api.example/tides");
 *     if (!response) return std::unexpected(response.error());
 *     auto body = response->read_all();
 *
 * A status is an answer, never a failure. Without a grant, the failure is `denied`: the host adds the command that grants the
 * request. If the server cannot be reached or takes too long, it is `unavailable`. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "belljar.hpp"

struct belljar_http_body;
struct belljar_http_upload;

namespace belljar::http {

/* A header. */
struct Header {
    std::string name, value;
};

/* A request. Only `url` is required. */
struct Request {
    std::string url;
    std::string method = {}; /* in capitals; by default GET, or POST with a body */
    std::vector<Header> headers = {};
    std::string body = {};
    /* The longest wait for the connection, for the answer to begin, and between pieces of its body. 0: the time limit of
     * the call ends the wait. */
    std::uint32_t timeout_ms = 0;
    bool keeps_redirects = false; /* a redirect is the answer; otherwise GET and HEAD follow up to five of them */
};

/* An answer. Its body is read in pieces, or whole. */
class Response {
  public:
    unsigned status = 0;
    std::string url; /* after all redirects */
    std::vector<Header> headers;

    /* The value of the first header of this name, in any case. */
    Text header(std::string_view name) const;

    /* The next piece of the body: at most `most` bytes, and none at its end. */
    Result<std::string> read(std::size_t most = 65536);

    /* The rest of the body, but at most `most` bytes. */
    Result<std::string> read_all(std::size_t most = SIZE_MAX);

    Response(Response &&from) noexcept;
    Response &operator=(Response &&from) noexcept;
    ~Response(); /* drops the rest of the body */

  private:
    friend class Upload;
    friend Result<Response> send(const Request &request);
    Response() = default;

    belljar_http_body *body = nullptr;
};

/* A request whose body is written in pieces. It follows no redirects. */
class Upload {
  public:
    /* Writes a piece. If the server takes no more, its answer says why. */
    void write(std::string_view piece);

    /* Ends the body, and waits until the answer begins. */
    Result<Response> finish();

  private:
    friend Result<Upload> begin(const Request &request);
    explicit Upload(belljar_http_upload *upload) : upload(upload) {}

    belljar_http_upload *upload;
};

/* Sends a GET request without further headers. */
Result<Response> get(const std::string &url);

/* Sends a request, and waits until the answer begins. */
Result<Response> send(const Request &request);

/* Begins a request whose body is written in pieces, after `body` of the request. */
Result<Upload> begin(const Request &request);

} // namespace belljar::http
