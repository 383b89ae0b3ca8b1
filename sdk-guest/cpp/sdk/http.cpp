/* Implements http.hpp with the C SDK beside it. */
#include "http.hpp"

#ifdef BELLJAR_HTTP

#include <algorithm>
#include <utility>

#include "internal.hpp"

namespace belljar::http {
namespace {

/* A request as a C struct, alive while it is sent. */
struct Raw {
    explicit Raw(const Request &from) {
        for (const Header &header : from.headers) headers.push_back({header.name.c_str(), header.value.c_str()});
        request = {
            .url = from.url.c_str(),
            .method = from.method.empty() ? nullptr : from.method.c_str(),
            .headers = headers.data(),
            .headers_length = headers.size(),
            .body = from.body.data(),
            .body_length = from.body.size(),
            .timeout_ms = from.timeout_ms,
            .keeps_redirects = from.keeps_redirects,
        };
    }

    std::vector<belljar_http_header> headers;
    belljar_http_request request = {};
};

belljar_http_body *convert(const belljar_http_response &from, Response &to) {
    to.status = from.status;
    to.url = from.url;
    for (std::size_t at = 0; at < from.headers_length; at++)
        to.headers.push_back({from.headers[at].name, from.headers[at].value});
    return from.body;
}

} // namespace

Result<Response> get(const std::string &url) { return send({.url = url}); }

Result<Response> send(const Request &request) {
    belljar_http_response from = {};
    Raw raw(request);
    belljar_status status = belljar_http_send(&raw.request, &from);
    if (status != BELLJAR_OK) return last(status);
    Response response;
    response.body = convert(from, response);
    return response;
}

Result<Upload> begin(const Request &request) {
    belljar_http_upload *upload = nullptr;
    Raw raw(request);
    belljar_status status = belljar_http_begin(&raw.request, &upload);
    if (status != BELLJAR_OK) return last(status);
    return Upload(upload);
}

void Upload::write(std::string_view piece) { belljar_http_write(upload, piece.data(), piece.size()); }

Result<Response> Upload::finish() {
    belljar_http_response from = {};
    belljar_status status = belljar_http_end(upload, &from);
    if (status != BELLJAR_OK) return last(status);
    Response response;
    response.body = convert(from, response);
    return response;
}

Text Response::header(std::string_view name) const {
    auto same = [](char one, char other) {
        auto lower = [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; };
        return lower(one) == lower(other);
    };
    for (const Header &header : headers)
        if (std::equal(header.name.begin(), header.name.end(), name.begin(), name.end(), same)) return header.value;
    return std::nullopt;
}

Result<std::string> Response::read(std::size_t most) {
    belljar_http_response from = {};
    from.body = body;
    std::string piece(most, '\0');
    std::size_t length = 0;
    belljar_status status = belljar_http_read(&from, piece.data(), most, &length);
    if (status != BELLJAR_OK) return last(status);
    piece.resize(length);
    return piece;
}

Result<std::string> Response::read_all(std::size_t most) {
    std::string all;
    while (all.size() < most) {
        auto piece = read(std::min<std::size_t>(most - all.size(), 65536));
        if (!piece) return piece;
        if (piece->empty()) break;
        all += *piece;
    }
    return all;
}

Response::Response(Response &&from) noexcept
    : status(from.status), url(std::move(from.url)), headers(std::move(from.headers)),
      body(std::exchange(from.body, nullptr)) {}

Response &Response::operator=(Response &&from) noexcept {
    std::swap(status, from.status);
    std::swap(url, from.url);
    std::swap(headers, from.headers);
    std::swap(body, from.body);
    return *this;
}

Response::~Response() {
    belljar_http_response from = {};
    from.body = body;
    belljar_http_close(&from);
}

} // namespace belljar::http

#endif
