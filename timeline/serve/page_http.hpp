// SPDX-License-Identifier: Apache-2.0
// Answers HTTP requests of a browser on the same machine for one page. Pure; page_server.hpp has
// the sockets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace horo::timeline {

inline constexpr std::size_t kMostHead = std::size_t{16} << 10U;

struct HttpPage {
  int port = 0;
  std::string token;      ///< The page's path is /<token>/; there are no other paths.
  std::string_view body;  ///< HTML.
};

struct HttpAnswer {
  int status = 0;
  std::string head;       ///< Ends with the empty line.
  std::string_view body;  ///< Points into the page.
};

/// The answer to the bytes received so far; none while the request's head is incomplete. Refuses
/// any Host but 127.0.0.1, localhost and [::1], any other path, and any method but GET and HEAD, so
/// that neither another web page nor another user can make a browser fetch this page.
std::optional<HttpAnswer> answer_http(std::string_view received, const HttpPage& page);

}  // namespace horo::timeline
