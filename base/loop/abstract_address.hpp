// SPDX-License-Identifier: Apache-2.0
// Addresses of Unix sockets that are not files. The kernel removes such an address when its socket
// is closed, however the process ends.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/result.hpp"

namespace horo {

struct AbstractAddress {
  sockaddr_un address{};
  socklen_t size = 0;

  /// Fails: invalid_argument (too long).
  static Result<AbstractAddress> of(std::string_view name) {
    AbstractAddress made;
    made.address.sun_family = AF_UNIX;
    if (name.size() >= sizeof made.address.sun_path)
      return fail(Errc::invalid_argument, "the socket's name '{}' is too long", name);
    std::memcpy(&made.address.sun_path[1], name.data(), name.size());
    made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return made;
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

}  // namespace horo
