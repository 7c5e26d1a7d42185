// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "discovery/source.hpp"

namespace horo::discovery {

/// This machine, with as many slots as asked for: what runs when no hosts are given.
class LocalSource final : public HostSource {
 public:
  explicit LocalSource(int slots) : slots_(slots) {}

  std::string_view name() const override { return "this machine"; }

  /// Blocks: no.
  Result<Listing> list(Deadline deadline) override;

 private:
  int slots_;
};

}  // namespace horo::discovery
