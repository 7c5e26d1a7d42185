// SPDX-License-Identifier: Apache-2.0
// How a rank's progress in a set ends: a peer was lost, a peer has left, or the board makes no
// sense.
#include <algorithm>

#include "base/log.hpp"
#include "runtime/coordinator/engine.hpp"

namespace horo::runtime {

void Engine::abort() {
  backend_->abort();
  started_.clear();
  gathering_.reset();
  adasum_.reset();
  publish_activity();
}

bool Engine::observe_breakdown(Status health) {
  if (!board_.spans()) {
    abort();
    fail_all(health.error().code, health.error().message);
    return true;
  }
  // Whoever was lost, other hosts' agents know it better than a broken connection tells: the
  // operations stay until the board is poisoned.
  if (!breakdown_) return false;
  breakdown_ = std::move(health);
  return true;
}

bool Engine::observe_departures() {
  // A rank detaches with no mark of its own left, so whatever it took part in is in the log: once
  // this rank has read all of it, what remains can never complete.
  if (board_.spans()) return false;  // The log says so there, at one place for all hosts.
  if (active()) return observe_debts();
  if (board_.body().tail.load(std::memory_order_seq_cst) > begun_) return false;
  gone_seen_ = board_.host().body().gone.load(std::memory_order_seq_cst);
  for (int r = 0; r < board_.local_size(); ++r) {
    if (r == board_.me() ||
        board_.rank_slot(r).state.load(std::memory_order_seq_cst) != RankState::detached)
      continue;
    fail_all(Errc::shut_down, fmt::format("rank {} has shut down; nothing can complete without it",
                                          board_.global_rank(r)));
    return true;
  }
  return false;
}

bool Engine::observe_debts() {
  // A rank that has joined takes part in what it has not submitted. If it detaches before all have
  // joined, nobody does its part of what was begun.
  for (int r = 0; r < board_.local_size(); ++r) {
    if (board_.rank_slot(r).state.load(std::memory_order_seq_cst) != RankState::detached ||
        board_.area(r).cursor.load(std::memory_order_seq_cst) >= begun_)
      continue;
    poison_board(board_.header(), {.rank = board_.global_rank(r), .cause = LossCause::vanished},
                 "");
    return true;
  }
  return false;
}

void Engine::break_board(const Error& error) {
  log::error("runtime", "{}", error.message);
  poison_board(board_.header(),
               {.rank = board_.global_rank(board_.me()), .cause = LossCause::corrupted}, "");
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
  if (number == 0) return;
  board_.unpin(id);
  finish(number, broken_.load(std::memory_order_relaxed), broken_message_);
}

bool Engine::withdraw() {
  if (board_.spans() && health()) board_.leave();
  const auto count = board_.body().tensor_count.load(std::memory_order_acquire);
  bool any = false;
  for (std::uint32_t i = 0; i < std::min(count, board_.params().capacity); ++i) {
    const TensorId id{i};
    if (blocks_[id.index() / kBlock].load(std::memory_order_acquire) == nullptr) continue;
    if (tensor(id).operation.load(std::memory_order_seq_cst) == 0) continue;
    const bool taken_back = board_.unmark(id);
    board_.dissolve_group(id);
    if (taken_back) {
      return_lent(id, Placement::alone);
      complete(id, Errc::shut_down,
               "this rank shuts down before all ranks had submitted the tensor");
    } else {
      any = true;
    }
  }
  return !any;
}

}  // namespace horo::runtime
