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

  /// `answer` is called once, from the loop; not any more when the connector is destroyed.
  /// `endpoints` has one at least.
  Connector(Loop& loop, std::vector<Endpoint> endpoints, Answer answer);

  /// "10.0.0.3", the one that is being tried.
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
  Subscription patience_;
};

}  // namespace horo::launcher
