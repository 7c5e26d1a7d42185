// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/progress_token.hpp"

#include "base/race_point.hpp"

namespace horo::runtime {

void ProgressToken::note_holder() {
  waker_.say_awake();
  spread_.note();
}

bool ProgressToken::try_take() {
  if (state_.load(std::memory_order_relaxed) != kFree) return false;
  if (!compare_exchange(kFree, kHeld)) return false;
  note_holder();
  return true;
}

void ProgressToken::take() {
  while (!compare_exchange(kFree, kHeld)) {
    if (!compare_exchange(kHeld, kWanted)) continue;
    // A driver registers on the bell before it looks for takers and sleeps: it finds this thread,
    // or this ring ends its sleep.
    waker_.ring_own();
    while (state_.load(std::memory_order_seq_cst) != kHanded)
      futex::wait(state_, kWanted, Duration::max());
    state_.store(kHeld, std::memory_order_seq_cst);
    break;
  }
  note_holder();
}

bool ProgressToken::give_back() {
  if (!is_wanted(std::memory_order_seq_cst)) {
    waker_.say_undriven();
    race_point();
    if (compare_exchange(kHeld, kFree)) return true;
  }
  state_.store(kHanded, std::memory_order_seq_cst);
  futex::wake(state_);
  return false;
}

bool ProgressToken::end_application(Operation& operation) {
  auto* mine = &operation;
  applicant_.compare_exchange_strong(mine, nullptr, std::memory_order_seq_cst);
  return handed_over_.exchange(false, std::memory_order_seq_cst);
}

void ProgressToken::hand_over() {
  auto* operation = applicant_.load(std::memory_order_seq_cst);
  if (operation == nullptr) return;
  handed_over_.store(true, std::memory_order_seq_cst);
  auto* const last = operation;
  if (applicant_.compare_exchange_strong(operation, nullptr, std::memory_order_seq_cst)) {
    last->nudge();
  } else {
    handed_over_.store(false, std::memory_order_seq_cst);
  }
}

}  // namespace horo::runtime
