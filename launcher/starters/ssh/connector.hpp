// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/loop/loop.hpp"
#include "base/unique_fd.hpp"
#include "launcher/starters/link/resolver.hpp"

namespace horo::launcher {

/// Connects to the first of several addresses that answers. Thread: the loop's.
class Connector {
 public:
  using Answer = std::function<void(Result<UniqueFd>)>;

  /// Calls `answer` once from the loop, but not after the connector is destroyed. `endpoints` has
  /// at least one.
  Connector(Loop& loop, std::vector<Endpoint> endpoints, Answer answer);

  /// The address that is being tried: "10.0.0.3".
  const std::string& address() const { return endpoints_[current_].address; }

 private:
  void try_next();
  void look();
  void fail_current(int error);

  Loop& loop_;
  const std::vector<Endpoint> endpoints_;
  Answer answer_;
  std::size_t current_ = 0;
  std::string failures_;
  UniqueFd socket_;
  Descriptor watch_;
  Subscription timer_;
};

}  // namespace horo::launcher
