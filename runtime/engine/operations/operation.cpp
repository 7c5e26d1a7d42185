// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/operations/operation.hpp"

#include <new>
#include <sched.h>
#include <utility>

#include "base/race_point.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime {

namespace {

/// 0 for the first table. Multiples of a large odd number are far from each other.
std::uint32_t salt_of_next_table() {
  static std::atomic<std::uint32_t> tables{0};
  return tables.fetch_add(1, std::memory_order_relaxed) * 0x9e3779b9U;
}

}  // namespace

void Operation::DueCallback::run() const {
  const SignalsOfStarter signals;
  call(user, operation, static_cast<horo_status>(status));
}

std::optional<Operation::DueCallback> Operation::finish(const Error& end) {
  DueCallback due{.call = nullptr, .user = nullptr, .operation = handle(), .status = end.code};
  if (end.code != Errc::ok) error_ = end;  // reset() has left it as after a success.
  const bool calls = callback_state_.exchange(CallbackState::too_late, std::memory_order_acq_rel) ==
                     CallbackState::set;
  if (calls) {
    due.call = callback_;
    due.user = user_;
  }
  race_point();
  // From here on a waiter may release the operation: none of its members is touched any more.
  if (word_.exchange(kDone, std::memory_order_seq_cst) == kWaited) futex::wake(word_);
  return calls ? std::optional(due) : std::nullopt;
}

void Operation::sleep(Duration limit) {
  std::uint32_t seen = kPending;
  if (!word_.compare_exchange_strong(seen, kWaited, std::memory_order_seq_cst) && seen != kWaited) {
    if (seen == kNudged) word_.compare_exchange_strong(seen, kPending, std::memory_order_seq_cst);
    return;
  }
  futex::wait(word_, kWaited, limit);
}

void Operation::nudge() {
  auto seen = word_.load(std::memory_order_seq_cst);
  while (seen == kPending || seen == kWaited) {
    const auto next = seen == kWaited ? kPending : kNudged;
    if (!word_.compare_exchange_weak(seen, next, std::memory_order_seq_cst)) continue;
    if (next == kPending) futex::wake(word_);
    return;
  }
}

Result<bool> Operation::on_complete(Callback callback, void* user) {
  auto state = CallbackState::none;
  if (callback_state_.compare_exchange_strong(state, CallbackState::setting,
                                              std::memory_order_acq_rel)) {
    callback_ = callback;
    user_ = user;
    state = CallbackState::setting;
    if (callback_state_.compare_exchange_strong(state, CallbackState::set,
                                                std::memory_order_acq_rel))
      return true;
  } else if (state != CallbackState::too_late) {
    return fail(Errc::duplicate, "operation {} has a callback already", handle());
  }
  // The thread in finish() is between two words: the callback may ask for the result.
  while (!done()) sched_yield();
  callback(user, handle(), static_cast<horo_status>(error_.code));
  return false;
}

void Operation::launch() {
  launched_.store(true, std::memory_order_release);
  nudge();
}

void Operation::reset() {
  if (on_device.gpu != nullptr) [[unlikely]]
    on_device = {};
  launched_.store(false, std::memory_order_relaxed);
  keeps_result = false;
  result = nullptr;
  result_bytes = 0;
  memory.reset();
  rows.clear();
  error_.code = Errc::ok;
  error_.message.clear();
  error_.detail.reset();
  callback_state_.store(CallbackState::none, std::memory_order_relaxed);
  word_.store(kPending, std::memory_order_relaxed);
}

OperationTable::OperationTable() : first_generation_(salt_of_next_table()) {}

OperationTable::~OperationTable() {
  for (auto& block : blocks_) delete[] block.load(std::memory_order_relaxed);
}

Status OperationTable::grow() {
  const MutexLock lock(growing_);
  if (free_.load(std::memory_order_acquire) << 32U != 0)
    return {};  // Another thread has grown the table.
  if (block_count_ == kBlocks) {
    return fail(Errc::resource_exhausted,
                "{} operations are in flight or not released; wait for some", kBlocks * kBlock);
  }
  auto* block = new (std::nothrow) Operation[kBlock];
  if (block == nullptr) return fail(Errc::out_of_memory, "no memory for operations");
  const auto first = static_cast<std::uint32_t>(block_count_ * kBlock);
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    block[i].index_ = first + i;
    block[i].generation_.store(first_generation_, std::memory_order_relaxed);
  }
  blocks_[block_count_++].store(block, std::memory_order_release);
  for (std::uint32_t i = 0; i < kBlock; ++i) put(block[i]);
  return {};
}

Result<Operation*> OperationTable::take() {
  auto head = free_.load(std::memory_order_acquire);
  for (;;) {
    const auto first = static_cast<std::uint32_t>(head);
    if (first == 0) {
      HORO_TRY_STATUS(grow());
      head = free_.load(std::memory_order_acquire);
      continue;
    }
    Operation* operation = slot(first - 1);
    // The tag in the upper half changes whenever the head is taken and put back meanwhile.
    const auto next =
        ((head >> 32U) + 1) << 32U | operation->next_free_.load(std::memory_order_relaxed);
    if (free_.compare_exchange_weak(head, next, std::memory_order_acq_rel)) return operation;
  }
}

void OperationTable::put(Operation& operation) {
  operation.reset();
  // Only the one that puts an operation back writes its generation.
  operation.generation_.store(operation.generation_.load(std::memory_order_relaxed) + 1,
                              std::memory_order_relaxed);
  auto head = free_.load(std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    operation.next_free_.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
    next = ((head >> 32U) + 1) << 32U | (operation.index_ + 1);
  } while (!free_.compare_exchange_weak(head, next, std::memory_order_acq_rel));
}

Operation* OperationTable::find(std::uint64_t handle) const {
  const auto number = static_cast<std::uint32_t>(handle);
  if (number == 0 || number > kBlock * kBlocks) return nullptr;
  Operation* operation = slot(number - 1);
  if (operation == nullptr || operation->handle() != handle) return nullptr;
  return operation;
}

}  // namespace horo::runtime
