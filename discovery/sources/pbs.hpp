// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "discovery/source.hpp"

namespace horo::discovery {

/// The allocation of the PBS or Torque job that this process runs in. PBS_NODEFILE has one line per
/// slot.
class PbsSource final : public HostSource {
 public:
  explicit PbsSource(Lookup environment);

  static bool is_here(const Lookup& environment);

  std::string_view name() const override { return name_; }

  /// Blocks: for the file. Fails: unavailable, naming variable, file and line.
  Result<Listing> list(WaitLimit limit) override;

 private:
  Lookup environment_;
  std::string name_;
};

}  // namespace horo::discovery
