// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_commands.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "discovery/this_machine.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

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
  HORO_TRY_STATUS(commands.share_host());
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
Status RankCommands::share_host() {
  const auto& last = spec_->ranks.back();  // Other agents may own further ranks of this host.
  const int ranks = std::max(last.local_size, last.local_rank.value() + 1);
  PartsRequest request{
      .bind_to = spec_->bind_to, .gpus = spec_->gpus, .ranks = ranks, .visible_gpus = {}};
  // A batch system tells each host what it may use there: the launcher's value is for another host.
  if (const char* visible = std::getenv(kVisibleGpus); visible != nullptr)
    request.visible_gpus = visible;
  HORO_TRY(parts_, share_this_machine(request));
  if (!parts_.gpu_order.empty()) own_.emplace_back("CUDA_DEVICE_ORDER", parts_.gpu_order);
  // Without it, frameworks start a thread per core in every rank.
  if (ranks > 1 && !is_given("OMP_NUM_THREADS")) {
    const int threads = std::max(1, discovery::usable_cores() / ranks);
    own_.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
  }
  return {};
}

Command RankCommands::of(const WorkerIdentity& identity) const {
  Command command = common_;
  command.environment = inherited_;
  append(command.environment, spec_->environment);
  command.environment.emplace_back("PYTHONUNBUFFERED", "1");
  append(command.environment, own_);
  const auto& part = parts_.ranks[identity.local_rank.index()];
  command.cpus = part.cpus;
  if (!part.gpus.empty()) command.environment.emplace_back(kVisibleGpus, part.gpus);
  append(command.environment, worker_environment(identity));
  const bool reads = spec_->stdin_policy == StdinPolicy::rank0 && identity.rank == Rank{0};
  command.input = reads ? Input::pipe : Input::none;
  return command;
}

}  // namespace horo::launcher
