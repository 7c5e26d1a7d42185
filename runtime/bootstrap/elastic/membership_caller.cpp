// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/elastic/membership_caller.hpp"

#include <algorithm>
#include <thread>

namespace horo::runtime::bootstrap {

namespace {

/// Launcher and agent serve their stores before a worker is started, so a store that refuses
/// connections is gone, unless very many workers connect at the same time.
constexpr Duration kToConnect = std::chrono::seconds(5);
constexpr Duration kBetweenTries = std::chrono::milliseconds(50);

Failure gone(Error error, const JobStore& store) {
  const bool lost = error.code == Errc::peer_lost || error.code == Errc::timed_out ||
                    error.code == Errc::unavailable || error.code == Errc::io;
  if (!lost) return Failure(std::move(error));
  return fail(Errc::unavailable,
              "this host's agent of the elastic job does not answer at {}: {}; it has ended, or it "
              "is overloaded",
              store.address, error.message);
}

/// An agent that accepts the connection and then says nothing may be busy, for example with
/// processes that start slowly: the worker waits for it until the deadline. If the agent ends, the
/// connection does, too.
Result<kv::Client> connect(const JobStore& store, const Deadline& deadline) {
  const auto refused_until = Deadline::in(SteadyClock::instance(), kToConnect);
  for (;;) {
    auto client = store.connect(deadline);
    if (client) return client;
    const auto now = SteadyClock::instance().now();
    if (client.error().code != Errc::unavailable || refused_until.expired(now) ||
        deadline.expired(now))
      return gone(std::move(client).error(), store);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

Status check_kind(const elastic::MembershipAnswer& answer) {
  switch (answer.kind) {
    case elastic::MembershipKind::member:
      return {};
    case elastic::MembershipKind::removed:
      return fail(Errc::removed, "this process is no longer part of the job: {}", answer.reason);
    case elastic::MembershipKind::refused:
      break;
  }
  return fail(Errc::unavailable, "the launcher refuses to form a generation: {}", answer.reason);
}

}  // namespace

Result<MembershipCaller::Place> MembershipCaller::call(const JobStore& store, std::uint32_t worker,
                                                       std::uint64_t generation,
                                                       const Deadline& deadline) {
  HORO_TRY(auto client, connect(store, deadline));
  const elastic::MembershipCall call{
      .worker = worker, .attempt = ++attempt_, .generation = generation};
  auto bytes = client.set_then_get(elastic::call_key(worker), encode(call),
                                   elastic::answer_key(worker, attempt_), deadline);
  if (!bytes && bytes.error().code == Errc::timed_out) {
    return fail(Errc::unavailable,
                "the launcher has not formed a generation with worker {} in time; raise "
                "HORO_ELASTIC_TIMEOUT if hosts are only slow to come",
                worker);
  }
  if (!bytes) return gone(std::move(bytes).error(), store);
  HORO_TRY(auto answer, elastic::decode_answer(*bytes));
  HORO_TRY_STATUS(check_kind(answer));
  return Place{.answer = std::move(answer), .store = std::move(client)};
}

Status tell_resumed(const JobStore& store, const elastic::TrainingResumed& resumed,
                    const Deadline& deadline) {
  const auto soon = SteadyClock::instance().now() + kToConnect;
  HORO_TRY(auto client, connect(store, Deadline::at(std::min(soon, deadline.when()))));
  return client.set(elastic::resumed_key(resumed.worker), encode(resumed), deadline);
}

}  // namespace horo::runtime::bootstrap
