// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/thread_core.hpp"

#include <sched.h>

#include "base/knobs/number_list.hpp"

namespace horo::runtime {

namespace {

/// Tries it with the calling thread, because only the system knows what it allows.
bool can_run_on_core(int core) {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0) return false;
  if (!move_to_core(pthread_self(), core)) return false;
  return sched_setaffinity(0, sizeof before, &before) == 0;
}

}  // namespace

Result<std::optional<int>> core_of(std::string_view list, LocalRank me, int local_size) {
  if (list.empty()) return std::optional<int>{};
  const auto count = count_numbers(list);
  if (count < static_cast<std::size_t>(local_size)) {
    return fail(Errc::invalid_argument,
                "thread.affinity: '{}' has {} cores, but this host has {} ranks; give one core for "
                "each",
                list, count, local_size);
  }
  const int core = number_at(list, me.index());
  if (can_run_on_core(core)) return std::optional(core);
  return fail(Errc::invalid_argument,
              "thread.affinity: local rank {} cannot run on core {} of '{}', which this host does "
              "not have or does not give to the job",
              me, core, list);
}

bool move_to_core(pthread_t thread, int core) {
  if (core < 0 || core >= CPU_SETSIZE) return false;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  return pthread_setaffinity_np(thread, sizeof cores, &cores) == 0;
}

}  // namespace horo::runtime
