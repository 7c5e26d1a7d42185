// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/start_barrier.hpp"

#include <unistd.h>

namespace horo::runtime {

namespace {

constexpr Duration kLatestWakeUp = std::chrono::seconds(1);  ///< No wake-up is as late as this.
constexpr std::size_t kMostText = 200;

/// The numbers of ranks that have not arrived, for a message.
struct Missing {
  std::string absent;  ///< They may come.
  std::string ended;   ///< Their processes have ended.
};

void add(std::string& text, Rank rank) {
  if (text.size() < kMostText) text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
}

Missing missing_ranks(HostMemory& host, const bootstrap::Meeting& meeting) {
  Missing missing;
  const auto& hosts = meeting.hosts;
  for (int r = 0; r < host.local_size(); ++r) {
    const auto& slot = host.slot(LocalRank{r});
    const auto state = slot.state.load(std::memory_order_seq_cst);
    // A rank writes its process's number before it arrives.
    const bool ended = state == RankState::dead && slot.pid.load(std::memory_order_relaxed) == 0;
    if (state != RankState::absent && !ended) continue;
    // In a job on one host local ranks are ranks.
    const auto rank = hosts.size() <= 1
                          ? Rank{r}
                          : hosts[static_cast<std::size_t>(meeting.identity.host_index)]
                                .ranks[static_cast<std::size_t>(r)];
    add(ended ? missing.ended : missing.absent, rank);
  }
  return missing;
}

/// This rank says that it is there.
Status arrive(HostMemory& host, Rank rank) {
  auto& slot = host.slot(host.me());
  auto absent = RankState::absent;
  slot.pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
  host.peer_release().suspend();  // Until the session has started: to connect may take long.
  if (!slot.state.compare_exchange_strong(absent, RankState::attached, std::memory_order_seq_cst)) {
    return fail(Errc::unavailable,
                "rank {} of this job has called horo_init before; each rank joins the job once",
                rank);
  }
  host.waker().ring_all();
  return {};
}

}  // namespace

Status await_local_ranks(HostMemory& host, const bootstrap::Meeting& meeting, const RankLoss& loss,
                         StartClock& start) {
  const auto me = meeting.identity.rank;
  HORO_TRY_STATUS(arrive(host, me));
  const auto& clock = SteadyClock::instance();
  for (;;) {
    Missing missing;
    const bool slept = host.waker().sleep(Sleeper::caller, [&]() -> Duration {
      missing = missing_ranks(host, meeting);
      if (missing.absent.empty() || !missing.ended.empty() || loss.is_poisoned())
        return Duration::zero();
      // This late only if this process was stopped meanwhile, and the others with it.
      if (start.local_ranks().expired(clock.now() - kLatestWakeUp)) start.restart();
      return start.local_ranks().left(clock.now());
    });
    if (slept) continue;
    if (missing.absent.empty() && missing.ended.empty()) return {};
    if (loss.is_poisoned()) {
      host.peer_release().end();
      return Failure(loss.error().context("before all ranks had started"));
    }
    if (!missing.ended.empty()) {
      host.peer_release().end();
      return fail(
          Errc::peer_lost,
          "rank {} waited for rank {}, which ended before it called horo_init; each rank of "
          "the job must call it",
          me, missing.ended);
    }
    return fail(Errc::timed_out,
                "rank {} waited for rank {}, which did not call horo_init; raise "
                "HORO_START_TIMEOUT if it is only slow",
                me, missing.absent);
  }
}

}  // namespace horo::runtime
