// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/by_hosts_path.hpp"

#include <algorithm>
#include <vector>

namespace horo::runtime {

namespace {

/// Bytes from which the further steps cost less than what they save between hosts; as ByHostsRule.
constexpr std::uint64_t kLeast = std::uint64_t{64} << 10U;

/// The first byte of an offer.
constexpr char kPreferred = 'p';
constexpr char kFallback = 'f';

/// The members of each host, with what they have offered to each other.
std::vector<std::vector<DeviceMember>> by_host(std::span<const DeviceMember> members) {
  std::vector<std::vector<DeviceMember>> hosts;
  for (const auto& member : members) {
    const auto known = std::find_if(hosts.begin(), hosts.end(), [&member](const auto& host) {
      return host.front().host == member.host;
    });
    auto& host = known == hosts.end() ? hosts.emplace_back() : *known;
    host.push_back(member);
    if (!member.offer.empty()) host.back().offer.erase(0, 1);
  }
  return hosts;
}

}  // namespace

std::uint64_t ByHostsPath::best_from() const {
  return first_ ? 0 : kLeast;
}

std::string ByHostsPath::described() const {
  return fmt::format("{} inside each host", parts_.inner->described());
}

Result<std::string> ByHostsPath::offer(Device& device, int /*position*/, int /*members*/) {
  if (parts_.use == ByHostsUse::never)
    return fail(Errc::unavailable, "hierarchical.allreduce is false");
  if (parts_.use == ByHostsUse::unordered)
    return fail(Errc::unavailable, "deterministic is true, and sums by hosts have another order");
  if (!parts_.why_not.empty()) return fail(Errc::unavailable, "{}", parts_.why_not);
  const auto& hierarchy = place_.hierarchy;
  HORO_TRY(auto inner, parts_.inner->offer(device, hierarchy.local_rank, hierarchy.local_ranks));
  if (inner.size() >= kMostOffer)
    return fail(Errc::protocol, "an offer of {} bytes is too long", inner.size());
  return (parts_.use == ByHostsUse::preferred ? kPreferred : kFallback) + inner;
}

Status ByHostsPath::check(std::span<const DeviceMember> members) const {
  first_ = std::all_of(members.begin(), members.end(), [](const DeviceMember& member) {
    return member.offer.starts_with(kPreferred);
  });
  if (place_.hierarchy.most_local == 1)
    return fail(Errc::unavailable, "each host has one rank of the set");
  for (const auto& host : by_host(members)) HORO_TRY_STATUS(parts_.inner->check(host));
  return {};
}

bool ByHostsPath::takes(const Signature& like) const {
  if (like.kind != Kind::allreduce || like.wire != WireDType::none) return false;
  if (!can_run_in_parts(like)) return false;
  // The factors of inputs and result are applied together, between the hosts.
  const bool scaled = like.prescale != 1 || like.postscale != 1;
  const bool sums = like.op == ReduceOp::sum || like.op == ReduceOp::average;
  if (scaled && (!sums || !is_floating(like.dtype))) return false;
  // The sum inside a host is rounded to the tensor's type before it is made smaller: too large for
  // this one.
  if (like.dtype == DType::f16 && (scaled || like.op == ReduceOp::average)) return false;
  auto inside = like;
  inside.prescale = inside.postscale = 1;
  if (inside.op == ReduceOp::average) inside.op = ReduceOp::sum;
  inside.kind = Kind::reducescatter;
  if (!parts_.moves(inside)) return false;
  inside.kind = Kind::allgather;
  return parts_.moves(inside);
}

Result<std::unique_ptr<Backend>> ByHostsPath::connect(const DeviceSet& set) {
  for (const auto& host : by_host(set.members)) {
    if (host.front().host != set.members[static_cast<std::size_t>(set.position)].host) continue;
    auto here = set;
    here.members = host;
    here.position = place_.hierarchy.local_rank;
    return parts_.inner->connect(here);
  }
  return fail(Errc::protocol, "this rank is on none of the set's hosts");
}

}  // namespace horo::runtime
