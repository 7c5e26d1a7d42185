// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
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
  /// `spec` outlives this. Fails: as share_this_machine, unless the job is elastic.
  static Result<RankCommands> make(const AgentSpec& spec, const Inheritance& inheritance,
                                   std::vector<Inherited> descriptors);

  /// The rank gets that part of the host, of as many as its local size. Fails: as make, for a
  /// worker of an elastic job.
  Result<Command> of(const WorkerIdentity& identity, int part_number);

 private:
  explicit RankCommands(const AgentSpec& spec) : spec_(&spec) {}

  /// The parts of the host, and variables that it adds to every rank.
  struct Share {
    HostParts parts;
    Environment variables;
  };

  Result<const Share*> share_among(int ranks);
  bool is_given(std::string_view name) const;

  const AgentSpec* spec_;
  Environment inherited_;        ///< Overridden by the spec's.
  int ranks_ = 1;                ///< The ranks of this host. Not used if the job is elastic.
  std::map<int, Share> shares_;  ///< By the number of ranks.
  Command common_;               ///< Without environment, hardware threads and input.
};

}  // namespace horo::launcher
