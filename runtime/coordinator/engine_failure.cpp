// SPDX-License-Identifier: Apache-2.0
// How a rank's progress ends: a peer was lost, a peer has left, or the board makes no sense.
#include <algorithm>

#include "base/log.hpp"
#include "runtime/coordinator/engine.hpp"

namespace horo::runtime {

std::string Engine::loss_message() const {
  const auto poison = poison_of(board_.header());
  const auto& raw = board_.header().poison_host;
  const std::string host(
      raw.data(), static_cast<std::size_t>(std::find(raw.begin(), raw.end(), '\0') - raw.begin()));
  if (poison.rank.value() < 0) return fmt::format("the job is being stopped: {}", describe(poison));
  return fmt::format("rank {}{}{} was lost: {}", poison.rank, host.empty() ? "" : " on ", host,
                     describe(poison));
}

bool Engine::observe_poison() {
  auto& header = board_.header();
  if (!acknowledged_) {
    backend_->abort();
    started_.clear();
    active_public_.store(0, std::memory_order_relaxed);
    acknowledged_ = true;
    header.slot(board_.me()).poison_ack.store(1, std::memory_order_seq_cst);
    ring_all(header);
  }
  if (broken_.load(std::memory_order_relaxed) != Errc::ok) return false;
  // Buffers are given back only when no peer can touch them any more.
  for (int r = 0; r < board_.local_size(); ++r) {
    const auto& slot = header.slot(LocalRank{r});
    const auto state = slot.state.load(std::memory_order_seq_cst);
    const bool uses_board = state == RankState::attached || state == RankState::leaving;
    if (uses_board && slot.poison_ack.load(std::memory_order_seq_cst) == 0) return false;
  }
  fail_all(Errc::peer_lost, loss_message());
  return true;
}

bool Engine::observe_breakdown(const Error& error) {
  backend_->abort();
  started_.clear();
  active_public_.store(0, std::memory_order_relaxed);
  fail_all(error.code, error.message);
  return true;
}

bool Engine::observe_departures() {
  // A rank detaches with no mark of its own left, so whatever it took part in is in the log: once
  // this rank has read all of it, what remains can never complete.
  if (active() || board_.body().tail.load(std::memory_order_seq_cst) > begun_) return false;
  gone_seen_ = board_.body().gone.load(std::memory_order_seq_cst);
  for (int r = 0; r < board_.local_size(); ++r) {
    if (board_.header().slot(LocalRank{r}).state.load(std::memory_order_seq_cst) !=
        RankState::detached)
      continue;
    if (r == board_.me().value()) continue;
    fail_all(Errc::shut_down, fmt::format("rank {} has shut down; nothing can complete without it",
                                          board_.global_rank(r)));
    return true;
  }
  return false;
}

void Engine::break_board(const Error& error) {
  log::error("runtime", "{}", error.message);
  poison_board(board_.header(),
               {.rank = board_.global_rank(board_.me().value()), .cause = LossCause::corrupted},
               "");
}

void Engine::fail_all(Errc status, const std::string& message) {
  if (broken_.load(std::memory_order_relaxed) == Errc::ok) {
    broken_message_ = message;
    // Submitters set their operation first and look at this afterwards; we the other way round.
    broken_.store(status, std::memory_order_seq_cst);
  }
  const auto count = board_.body().tensor_count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < std::min(count, board_.params().capacity); ++i) {
    const TensorId id{i};
    if (blocks_[id.index() / kBlock].load(std::memory_order_acquire) == nullptr) continue;
    if (tensor(id).operation.load(std::memory_order_seq_cst) != 0) complete(id, status, message);
  }
}

void Engine::fail_if_broken(TensorId id) {
  if (broken_.load(std::memory_order_seq_cst) == Errc::ok) return;
  const auto number = tensor(id).operation.exchange(0, std::memory_order_acq_rel);
  if (number != 0) finish(number, broken_.load(std::memory_order_relaxed), broken_message_);
}

bool Engine::withdraw() {
  const auto count = board_.body().tensor_count.load(std::memory_order_acquire);
  bool any = false;
  for (std::uint32_t i = 0; i < std::min(count, board_.params().capacity); ++i) {
    const TensorId id{i};
    if (blocks_[id.index() / kBlock].load(std::memory_order_acquire) == nullptr) continue;
    if (tensor(id).operation.load(std::memory_order_seq_cst) == 0) continue;
    if (board_.unmark(id)) {
      complete(id, Errc::shut_down,
               "this rank shuts down before all ranks had submitted the tensor");
    } else {
      any = true;
    }
  }
  return !any;
}

}  // namespace horo::runtime
