// SPDX-License-Identifier: Apache-2.0
// One page over HTTP to a browser on the same machine. Pure; sockets are serve.hpp's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace horo::apps {

inline constexpr std::size_t kMostHead = std::size_t{16} << 10U;

struct HttpPage {
  int port = 0;
  std::string token;      ///< The page is /<token>/ and nothing else is there.
  std::string_view body;  ///< HTML.
};

struct HttpAnswer {
  int status = 0;
  std::string head;       ///< With the empty line.
  std::string_view body;  ///< Of the page; it is not copied.
};

/// To what a browser has sent so far; none: its head is not complete. Other names of this machine
/// than 127.0.0.1, localhost and [::1] are refused, as are other paths and methods than GET and
/// HEAD: neither a page elsewhere nor another user can make a browser fetch this one.
std::optional<HttpAnswer> answer_http(std::string_view received, const HttpPage& page);

}  // namespace horo::apps
