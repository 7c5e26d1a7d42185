// SPDX-License-Identifier: Apache-2.0
#include "timeline/serve/page_http.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace horo::timeline {

namespace {

constexpr std::string_view kEnd = "\r\n\r\n";
/// Forbids the page to load anything that it does not contain.
constexpr const char* kPolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Error";
  }
}

HttpAnswer refuse(int status) {
  const auto text = fmt::format("{} {}\n", status, reason(status));
  return {.status = status,
          .head = fmt::format("HTTP/1.1 {} {}\r\n{}{}Content-Type: text/plain\r\nContent-Length: "
                              "{}\r\n\r\n{}",
                              status, reason(status), kPolicy,
                              status == 405 ? "Allow: GET, HEAD\r\n" : "", text.size(), text)};
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The value of "Host:"; none where there is no such line or more than one.
std::optional<std::string_view> host_of(std::string_view lines) {
  std::optional<std::string_view> host;
  while (!lines.empty()) {
    const auto end = lines.find("\r\n");
    const auto line = lines.substr(0, end);
    lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 2);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !same_word(line.substr(0, colon), "host")) continue;
    if (host) return std::nullopt;
    host = trimmed(line.substr(colon + 1));
  }
  return host;
}

bool is_ours(std::string_view host, int port) {
  const auto colon = host.rfind(':');
  if (colon == std::string_view::npos || host.substr(colon + 1) != fmt::format("{}", port))
    return false;
  const auto name = host.substr(0, colon);
  return name == "127.0.0.1" || same_word(name, "localhost") || name == "[::1]";
}

/// Compares in constant time.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i])) ^
                  static_cast<unsigned>(static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

}  // namespace

std::optional<HttpAnswer> answer_http(std::string_view received, const HttpPage& page) {
  const auto end = received.find(kEnd);
  if (end > kMostHead) {  // Too long, or incomplete (npos).
    if (received.size() > kMostHead) return refuse(431);
    return std::nullopt;
  }
  const auto head = received.substr(0, end);
  const auto first_end = head.find("\r\n");
  const auto first = head.substr(0, first_end);
  const auto method_end = first.find(' ');
  const auto target_end = first.rfind(' ');
  if (method_end == std::string_view::npos || target_end <= method_end ||
      !first.substr(target_end + 1).starts_with("HTTP/1."))
    return refuse(400);
  const auto host =
      first_end == std::string_view::npos ? std::nullopt : host_of(head.substr(first_end + 2));
  if (!host) return refuse(400);
  if (!is_ours(*host, page.port)) return refuse(421);
  const auto method = first.substr(0, method_end);
  if (method != "GET" && method != "HEAD") return refuse(405);
  if (!same_secret(first.substr(method_end + 1, target_end - method_end - 1),
                   fmt::format("/{}/", page.token)))
    return refuse(404);
  return HttpAnswer{
      .status = 200,
      .head = fmt::format("HTTP/1.1 200 OK\r\n{}Content-Type: text/html; charset=utf-8\r\n"
                          "Content-Length: {}\r\n\r\n",
                          kPolicy, page.body.size()),
      .body = method == "HEAD" ? std::string_view() : page.body};
}

}  // namespace horo::timeline
