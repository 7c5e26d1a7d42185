// SPDX-License-Identifier: Apache-2.0
#include "runtime/operation.hpp"

#include <new>
#include <utility>

#include "base/signals_blocked.hpp"

namespace horo::runtime {

bool Operation::finish(Errc status, std::string message) {
  status_ = status;
  message_ = std::move(message);
  const bool call = callback_state_.exchange(2, std::memory_order_acq_rel) == 1;
  const auto callback = callback_;
  auto* const user = user_;
  const auto self = handle();
  // From here on a waiter may release the operation: nothing of it is touched any more.
  if (word_.exchange(kDone, std::memory_order_seq_cst) == kWaited) futex::wake(word_);
  if (call) {
    const SignalsOfStarter signals;
    callback(user, self, static_cast<horo_status>(status));
  }
  return call;
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
  std::uint32_t state = 0;
  if (callback_state_.compare_exchange_strong(state, 3, std::memory_order_acq_rel)) {
    callback_ = callback;
    user_ = user;
    state = 3;
    if (callback_state_.compare_exchange_strong(state, 1, std::memory_order_acq_rel)) return true;
  } else if (state != 2) {
    return fail(Errc::duplicate, "operation {} has a callback already", handle());
  }
  callback(user, handle(), static_cast<horo_status>(status_));
  return false;
}

void Operation::reset() {
  keeps_result = false;
  result = nullptr;
  result_bytes = 0;
  memory.reset();
  rows.clear();
  message_.clear();
  status_ = Errc::ok;
  callback_state_.store(0, std::memory_order_relaxed);
  word_.store(kPending, std::memory_order_relaxed);
}

OperationTable::~OperationTable() {
  for (auto& block : blocks_) delete[] block.load(std::memory_order_relaxed);
}

Status OperationTable::grow() {
  const std::lock_guard lock(growing_);
  if (free_.load(std::memory_order_acquire) << 32U != 0) return {};  // Somebody else has grown it.
  if (block_count_ == kBlocks) {
    return fail(Errc::resource_exhausted,
                "{} operations are in flight or not released; wait for some", kBlocks * kBlock);
  }
  auto* block = new (std::nothrow) Operation[kBlock];
  if (block == nullptr) return fail(Errc::out_of_memory, "no memory for operations");
  const auto first = static_cast<std::uint32_t>(block_count_ * kBlock);
  for (std::uint32_t i = 0; i < kBlock; ++i) block[i].index_ = first + i;
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
    // The tag in the upper half makes a head that was taken and put back meanwhile differ.
    const auto next =
        ((head >> 32U) + 1) << 32U | operation->next_free_.load(std::memory_order_relaxed);
    if (free_.compare_exchange_weak(head, next, std::memory_order_acq_rel)) return operation;
  }
}

void OperationTable::put(Operation& operation) {
  operation.reset();
  operation.generation_.fetch_add(1, std::memory_order_relaxed);
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
