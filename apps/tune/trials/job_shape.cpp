// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/trials/job_shape.hpp"

#include <optional>

#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "discovery/search/find_hosts.hpp"
#include "discovery/this_machine.hpp"
#include "launcher/placement.hpp"

namespace horo::apps {

JobShape shape_of(const RunInvocation& job, const std::function<const char*(const char*)>& lookup) {
  const auto& options = job.options;
  if (!options.plan.empty()) return JobShape::unknown;
  const int per_host = job.settings.get(knobs::kRanksPerHost);
  std::optional<int> here = options.np;
  if (!here && per_host != 0) here = per_host;
  const auto found = discovery::find_hosts(
      {.list = options.hosts,
       .hostfile = options.hostfile,
       .script = options.script,
       .default_slots = per_host != 0 ? per_host : job.settings.get(knobs::kSlotsPerHost),
       .ranks_per_host = per_host,
       .here_slots = here,
       .timeout = job.settings.get(knobs::kDiscoveryTimeout),
       .environment = lookup});
  if (!found) return JobShape::unknown;
  const auto hosts = discovery::merge_this_machine(found->hosts);
  const auto slots =
      per_host != 0 ? static_cast<long long>(hosts.size()) * per_host : hosts.slots();
  if (!options.np && slots > launcher::kMaxRanks) return JobShape::several_hosts;
  const auto placed = launcher::place(hosts, {.np = options.np.value_or(static_cast<int>(slots)),
                                              .map_by = job.settings.get(knobs::kMapBy),
                                              .ranks_per_host = per_host});
  if (!placed) return JobShape::unknown;
  return placed->hosts.size() > 1 ? JobShape::several_hosts : JobShape::one_host;
}

bool runtime_has_free_knob(const Settings& settings, JobShape shape) {
  const auto is_free = [&settings](const auto& knob) { return !settings.is_set(knob.text.key); };
  return is_free(knobs::kFusionThreshold) || is_free(knobs::kCycleTime) ||
         is_free(knobs::kWakeDelay) ||
         (shape != JobShape::one_host && is_free(knobs::kSmallMessage));
}

}  // namespace horo::apps
