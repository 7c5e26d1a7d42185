// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/connections/start_leader.hpp"

#include <algorithm>
#include <array>

namespace horo::runtime::tree {

namespace {

std::string key_of(Epoch epoch, int host) {
  return fmt::format("horo/tree/{}/{}", epoch, host);
}

/// Waits in pieces, so that a start that is cancelled ends soon.
Result<kv::Address> parent_address(kv::Client& store, const std::string& key,
                                   const std::string& host, const Deadline& deadline,
                                   const std::function<bool()>& cancelled) {
  constexpr Duration kLook = std::chrono::milliseconds(100);
  const auto& clock = SteadyClock::instance();
  for (;;) {
    if (cancelled())
      return fail(Errc::peer_lost, "a rank was lost before the leader of host '{}' came", host);
    const auto left = deadline.left(clock.now());
    auto text = store.get(key, Deadline::in(clock, std::min(left, kLook)));
    if (text) return kv::parse_address(*text);
    if (text.error().code != Errc::timed_out || left <= kLook) {
      auto failed =
          std::move(text).context(fmt::format("waiting for the leader of host '{}'", host));
      return Failure(std::move(failed).error());
    }
  }
}

}  // namespace

Result<std::unique_ptr<LeaderService>> start_leader_service(
    const bootstrap::Meeting& meeting, const TreeOptions& options, HostState& state,
    const Deadline& deadline, const std::function<bool()>& cancelled) {
  LeaderServiceParams params{.leader = {.host = meeting.identity.host_index,
                                        .radix = options.radix,
                                        .epoch = meeting.epoch,
                                        .heartbeat_timeout = options.heartbeat_timeout,
                                        .rules = options.rules,
                                        .settings = options.settings},
                             .hosts = {},
                             .parent = {},
                             .encryption = options.encryption};
  for (const auto& host : meeting.hosts)
    params.hosts.push_back({.name = host.name, .ranks = host.ranks});
  HORO_TRY_STATUS(validate(params.hosts, options.radix));
  const auto count = static_cast<int>(meeting.hosts.size());
  const auto me = params.leader.host;
  if (meeting.store == nullptr || me < 0 || me >= count) {
    return fail(Errc::invalid_argument, "host {} of {}, with{} a store to find the others", me,
                count, meeting.store == nullptr ? "out" : "");
  }
  params.secret = meeting.store->secret;
  const auto& own = meeting.hosts[static_cast<std::size_t>(me)];
  HORO_TRY(auto listener, LeaderListener::open(own.address));
  HORO_TRY(auto store, meeting.store->connect(deadline));
  const kv::Address address{.host = own.address, .port = listener.port};
  HORO_TRY_STATUS(store.set(key_of(meeting.epoch, me), kv::to_string(address), deadline));
  const auto parent = place_of(me, count, options.radix).parent;
  if (parent >= 0) {
    HORO_TRY(params.parent, parent_address(store, key_of(meeting.epoch, parent),
                                           meeting.hosts[static_cast<std::size_t>(parent)].name,
                                           deadline, cancelled));
  }
  HORO_TRY(auto service, LeaderService::start(std::move(params), std::move(listener), state,
                                              deadline, cancelled));
  // All children have connected. Where the erasing fails the key stays, which does no harm.
  static_cast<void>(store.erase(std::array{key_of(meeting.epoch, me)}, deadline));
  return service;
}

}  // namespace horo::runtime::tree
