// SPDX-License-Identifier: Apache-2.0
#include "base/kv/server/server_limits.hpp"

#include <algorithm>
#include <sys/resource.h>

#include "base/kv/kv_messages.hpp"

namespace horo::kv {

namespace {

constexpr std::size_t kRequestOverhead = kMaxKeyBytes + 64;
constexpr std::size_t kLeastPayload = std::size_t{1} << 20U;  // Room for requests with many keys.

}  // namespace

Result<std::uint32_t> max_payload(const StoreLimits& limits) {
  // A compare-and-set carries two values.
  const std::uint64_t most = (kMaxPayload - kRequestOverhead) / 2;
  if (limits.value.value() > most) {
    return fail(Errc::invalid_argument,
                "key-value limit of {} bytes for one value; at most {} are allowed", limits.value,
                most);
  }
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(kLeastPayload, 2 * limits.value.value() + kRequestOverhead));
}

std::size_t bounded_by_descriptors(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, limit.rlim_cur / 8));
}

}  // namespace horo::kv
