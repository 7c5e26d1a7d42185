// SPDX-License-Identifier: Apache-2.0
#include "base/kv/descriptor_limit.hpp"

#include <algorithm>
#include <limits>
#include <sys/resource.h>

#include <fmt/format.h>

namespace horo::kv {

bool raise_descriptor_limit(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const auto raised = std::min<rlim_t>(limit.rlim_max, wanted);
  if (limit.rlim_cur >= raised) return false;
  limit.rlim_cur = raised;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

bool raise_descriptor_limit() {
  return raise_descriptor_limit(std::numeric_limits<std::size_t>::max());
}

std::string describe_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return fmt::format("this process may have {} file descriptors and no more (ulimit -Hn)",
                     limit.rlim_cur);
}

}  // namespace horo::kv
