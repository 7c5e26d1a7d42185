// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/exit_queue.hpp"

#include <algorithm>
#include <sys/wait.h>
#include <utility>

namespace horo::launcher {

namespace {

constexpr Duration kSameMoment = std::chrono::milliseconds(50);

}  // namespace

void ExitQueue::add(const RankExit& exit, TimePoint at) {
  waiting_.push_back({exit, at});
  if (timer_) return;
  if (exit.wait_status == 0 && !exit.undetached) return flush();
  timer_ = loop_.after(kSameMoment, [this] { flush(); });
}

void ExitQueue::flush() {
  timer_.reset();
  auto exits = std::exchange(waiting_, {});
  // A rank that lost a peer ends in good order; the peer was killed or left without detaching.
  const auto key = [](const Entry& entry) {
    const bool torn_away = entry.exit.undetached || WIFSIGNALED(entry.exit.wait_status);
    return std::pair(!torn_away, entry.at);
  };
  std::stable_sort(exits.begin(), exits.end(),
                   [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  for (const auto& entry : exits) report_(entry.exit);
}

}  // namespace horo::launcher
