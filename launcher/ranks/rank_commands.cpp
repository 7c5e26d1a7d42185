// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_commands.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "discovery/this_machine.hpp"

namespace horo::launcher {

namespace {

bool has(const Environment& environment, std::string_view name) {
  return std::ranges::any_of(environment,
                             [name](const auto& variable) { return variable.first == name; });
}

void append(Environment& to, const Environment& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Result<RankCommands> RankCommands::make(const AgentSpec& spec, const Inheritance& inheritance,
                                        std::vector<Inherited> descriptors) {
  RankCommands commands(spec);
  commands.inherited_ = inheritance.environment;
  if (!spec.elastic) {
    const auto& last = spec.ranks.back();  // Other agents may own further ranks of this host.
    commands.ranks_ = std::max(last.local_size, last.local_rank.value() + 1);
    HORO_TRY([[maybe_unused]] const auto* share, commands.share_among(commands.ranks_));
  }
  for (const int fd : inheritance.descriptors) descriptors.push_back({fd, fd});
  commands.common_ = {.arguments = spec.command,
                      .directory = spec.directory,
                      .descriptors = std::move(descriptors),
                      .descriptor_limit = inheritance.descriptor_limit};
  return commands;
}

bool RankCommands::is_given(std::string_view name) const {
  return has(spec_->environment, name) || has(inherited_, name);
}

/// Divides the host as this process finds it: its affinity and its GPUs.
Result<const RankCommands::Share*> RankCommands::share_among(int ranks) {
  if (const auto known = shares_.find(ranks); known != shares_.end()) return &known->second;
  PartsRequest request{
      .bind_to = spec_->bind_to, .gpus = spec_->gpus, .ranks = ranks, .visible = {}};
  // A batch system tells each host what it may use there: the launcher's value is for another host.
  request.visible = GpuVariables::of([](const char* name) { return std::getenv(name); });
  Share share;
  HORO_TRY(share.parts, share_this_machine(request));
  if (!share.parts.gpu_order.empty())
    share.variables.emplace_back("CUDA_DEVICE_ORDER", share.parts.gpu_order);
  // Without it, frameworks start a thread per core in every rank.
  if (ranks > 1 && !is_given("OMP_NUM_THREADS")) {
    const int threads = std::max(1, discovery::usable_cores() / ranks);
    share.variables.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
  }
  return &shares_.emplace(ranks, std::move(share)).first->second;
}

Result<Command> RankCommands::of(const WorkerIdentity& identity, int part_number) {
  // A worker of an elastic job may be one of more than were planned when others started.
  const int ranks = spec_->elastic ? std::max(identity.local_size, part_number + 1) : ranks_;
  HORO_TRY(const Share* const share, share_among(ranks));
  Command command = common_;
  command.environment = inherited_;
  append(command.environment, spec_->environment);
  command.environment.emplace_back("PYTHONUNBUFFERED", "1");
  append(command.environment, share->variables);
  const auto& part = share->parts.ranks[static_cast<std::size_t>(part_number)];
  command.cpus = part.cpus;
  if (!part.gpus.empty()) command.environment.emplace_back(share->parts.gpu_variable, part.gpus);
  append(command.environment, worker_environment(identity));
  const bool reads = spec_->stdin_policy == StdinPolicy::rank0 && number_of(identity) == Rank{0};
  command.input = reads ? Input::pipe : Input::none;
  return command;
}

}  // namespace horo::launcher
