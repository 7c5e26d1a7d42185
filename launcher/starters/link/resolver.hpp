// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "base/loop/loop.hpp"
#include "base/result.hpp"

namespace horo::launcher {

/// An address and port that a socket can be connected to.
struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;
  std::string address;  ///< As a number, without port.

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// Looks up host names without blocking the loop. The system's resolver blocks, so it runs on
/// threads, which are not joined. Thread: the loop's.
class Resolver {
 public:
  using Answer = std::function<void(Result<std::vector<Endpoint>>)>;

  explicit Resolver(Loop& loop);
  ~Resolver();  ///< Drops the answers that have not come yet.
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// Calls `answer` from the loop, with at least one endpoint or not_found.
  void resolve(std::string name, std::uint16_t port, Answer answer);

 private:
  class State;

  std::shared_ptr<State> state_;
};

}  // namespace horo::launcher
