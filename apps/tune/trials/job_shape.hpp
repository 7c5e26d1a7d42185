// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a job run on one host or on several: between hosts, there is more to tune.
#pragma once

#include <cstdint>
#include <functional>

#include "apps/common/run_invocation.hpp"

namespace horo::apps {

enum class JobShape : std::uint8_t {
  unknown,  ///< The hosts are not known before the job starts.
  one_host,
  several_hosts,
};

/// `lookup` works like getenv. Unknown for a saved plan, and where the hosts cannot be found: then
/// `horo run` reports the reason. Blocks: for the hosts' file, or for programs that list them.
JobShape shape_of(const RunInvocation& job, const std::function<const char*(const char*)>& lookup);

/// A value that the runtime can tune while such a job runs is not set.
bool runtime_has_free_knob(const Settings& settings, JobShape shape);

}  // namespace horo::apps
