// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/rank_loss.hpp"

#include <algorithm>
#include <array>

#include "base/log.hpp"
#include "runtime/engine/operations/recording.hpp"
#include "runtime/sets/silent_ranks.hpp"

namespace horo::runtime {

namespace {

/// For the agents and the leaders, which know which rank was lost and why.
constexpr Duration kWordOfLoss = std::chrono::milliseconds(500);

template <std::size_t n>
std::string text_of(const std::array<char, n>& raw) {
  return {raw.begin(), std::find(raw.begin(), raw.end(), '\0')};
}

/// The text of HostMemory::say_stall(). Empty: there is none, or not all of it is there yet.
std::string stall_of(const HostBody& body) {
  return body.stall_written.load(std::memory_order_acquire) == 2 ? text_of(body.stall_text)
                                                                 : std::string();
}

/// The rank's process has ended, and not because the job is being stopped.
bool has_ended(const Poison& poison) {
  switch (poison.cause) {
    case LossCause::exited:
    case LossCause::signalled:
    case LossCause::unresponsive:
    case LossCause::vanished:
      return poison.rank.value() >= 0;
    case LossCause::none:
    case LossCause::host_lost:
    case LossCause::aborted:
    case LossCause::corrupted:
    case LossCause::stalled:
    case LossCause::cut_off:
    case LossCause::given_up:
    case LossCause::device_failed:
      return false;
  }
  return false;
}

}  // namespace

void RankLoss::acknowledge() {
  acknowledged_ = true;
  const auto poison = poison_of(*host_.board());
  record_lost(poison.rank);
  if (tell_ && has_ended(poison)) tell_(poison.rank);
  end_silent_at_ = clock_.now() + release_timeout_;
  host_.peer_release().end();
  host_.waker().ring_all();
}

bool RankLoss::all_acknowledged() {
  for (int r = 0; r < host_.local_size(); ++r) {
    const auto& slot = host_.slot(LocalRank{r});
    const auto state = slot.state.load(std::memory_order_seq_cst);
    const bool uses_board = state == RankState::attached || state == RankState::leaving;
    if (!uses_board || slot.poison_ack.load(std::memory_order_seq_cst) != 0) continue;
    if (clock_.now() >= end_silent_at_) {
      end_silent_at_ = clock_.now() + release_timeout_;
      end_silent_ranks(host_);
    }
    return false;
  }
  return true;
}

Error RankLoss::error() const {
  const auto poison = poison_of(*host_.board());
  const std::string host(text_of(host_.board()->poison_host));
  ErrorDetail detail{.host = host};
  if (poison.rank.value() >= 0) detail.ranks.push_back(poison.rank.value());
  const auto lost = [&detail](std::string_view text) {
    return fail(Errc::peer_lost, "{}", text).with(std::move(detail)).take();
  };
  // Other hosts learn the loss only; the reasons are on the host that has found them. The leader
  // may poison the board while another rank still writes the reasons.
  if (const auto why = stall_of(host_.body()); poison.cause == LossCause::stalled && !why.empty())
    return lost(why);
  if (poison.cause == LossCause::given_up) return lost(describe(poison));
  if (poison.rank.value() < 0)
    return lost(fmt::format("the job is being stopped: {}", describe(poison)));
  return lost(fmt::format("rank {}{}{} was lost: {}", poison.rank, host.empty() ? "" : " on ", host,
                          describe(poison)));
}

bool RankLoss::own_device_failed() const {
  const auto poison = poison_of(*host_.board());
  return poison.cause == LossCause::device_failed && poison.rank == host_.global_rank(host_.me());
}

void RankLoss::note_breakdown(SetId set, const Error& why, LossCause cause,
                              const std::string& own_host) {
  if (cut_off_.is_never()) {
    cause_ = cause;
    cut_off_ = Deadline::in(clock_, kWordOfLoss);
    breakdown_ = fmt::format("process set {}: {}", set, why.message);
  }
  if (!cut_off_.expired(clock_.now())) return;
  log::error("runtime", "{}", breakdown_);
  poison_board(host_.board(), {.rank = host_.global_rank(host_.me()), .cause = cause_}, own_host);
}

void RankLoss::tell_breakdown() const {
  const auto poison = poison_of(*host_.board());
  const bool of_another =
      poison.cause == LossCause::cut_off && poison.rank != host_.global_rank(host_.me());
  if (of_another && !breakdown_.empty()) log::error("runtime", "{}", breakdown_);
}

}  // namespace horo::runtime
