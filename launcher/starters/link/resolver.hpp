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

/// Looks names up without holding the loop up: the system's resolver blocks, so it has threads of
/// its own, which nobody waits for. Thread: the loop's.
class Resolver {
 public:
  using Answer = std::function<void(Result<std::vector<Endpoint>>)>;

  explicit Resolver(Loop& loop);
  ~Resolver();  ///< Answers that are still due do not come.
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  /// `answer` runs from the loop; at least one endpoint, or not_found.
  void resolve(std::string name, std::uint16_t port, Answer answer);

 private:
  class State;

  std::shared_ptr<State> state_;
};

}  // namespace horo::launcher
