// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.hpp"
#include "launcher/binding/binding.hpp"
#include "launcher/process/command.hpp"
#include "launcher/ranks/inheritance.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// How each rank of this host is started: its environment, descriptors, hardware threads and GPUs.
/// Thread: owner.
class RankCommands {
 public:
  /// `spec` outlives this. Fails: as share_this_machine.
  static Result<RankCommands> make(const AgentSpec& spec, const Inheritance& inheritance,
                                   std::vector<Inherited> descriptors);

  Command of(const WorkerIdentity& identity) const;

 private:
  explicit RankCommands(const AgentSpec& spec) : spec_(&spec) {}

  Status share_host();
  bool is_given(std::string_view name) const;

  const AgentSpec* spec_;
  Environment inherited_;  ///< Overridden by the spec's.
  Environment own_;        ///< Variables that this host adds to every rank.
  HostParts parts_;
  Command common_;  ///< Without environment, hardware threads and input.
};

}  // namespace horo::launcher
