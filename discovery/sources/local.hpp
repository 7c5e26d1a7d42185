// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "discovery/source.hpp"

namespace horo::discovery {

/// This machine with the requested slots, for a job without hosts.
class LocalSource final : public HostSource {
 public:
  explicit LocalSource(int slots) : slots_(slots) {}

  std::string_view name() const override { return "this machine"; }

  /// Blocks: no.
  Result<Listing> list(WaitLimit limit) override;

 private:
  int slots_;
};

}  // namespace horo::discovery
