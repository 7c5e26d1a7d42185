// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/peer_heartbeats.hpp"

#include <csignal>
#include <utility>

namespace horo::launcher {

namespace {

/// Multiples of the heartbeat timeout. A launcher may wait for a disk longer than a host may be
/// silent, because nothing takes the place of a launcher.
constexpr int kLauncherSilence = 3;
constexpr int kAgentSilence = 1;

}  // namespace

PeerHeartbeats::PeerHeartbeats(Loop& loop, Hooks hooks) : loop_(loop), hooks_(std::move(hooks)) {}

void PeerHeartbeats::begin(const protocol::Prepare& order) {
  relayed_ = order.relayed;
  if (timer_) return;
  timer_.emplace(
      loop_, order.heartbeat, relayed_ ? kAgentSilence : kLauncherSilence, hooks_.send, [this] {
        hooks_.on_lost(
            {Errc::peer_lost, fmt::format("{} sent no heartbeat for too long",
                                          relayed_ ? "the agent above this one" : "the launcher")});
      });
}

void PeerHeartbeats::heard() {
  if (timer_) timer_->heard();
}

void PeerHeartbeats::excuse_silence(const protocol::Signal& order) {
  if (!timer_ || relayed_) return;
  if (order.number == SIGSTOP) timer_->excuse(true);
  if (order.number == SIGCONT) timer_->excuse(false);
}

void PeerHeartbeats::end_excuse() {
  if (timer_) timer_->excuse(false);
}

}  // namespace horo::launcher
