// SPDX-License-Identifier: Apache-2.0
// What a rank has declared in a set, and who has it in flight.
#include <sched.h>

#include "runtime/coordinator/engine.hpp"
#include "runtime/recording.hpp"

namespace horo::runtime {

void Engine::provide(TensorId id) {
  auto& block = blocks_[id.index() / kBlock];
  if (block.load(std::memory_order_relaxed) != nullptr) return;
  owned_blocks_.push_back(std::make_unique<LocalTensor[]>(kBlock));
  block.store(owned_blocks_.back().get(), std::memory_order_release);
}

void Engine::adopt(TensorHandle handle) {
  provide(handle.id);
  auto& mine = tensor(handle.id);
  mine.agreed = false;
  if (mine.incarnation.load(std::memory_order_relaxed) == handle.incarnation) return;
  // First this, then the look; claim() does it the other way round, and soon lets go.
  mine.incarnation.store(LocalTensor::kNone, std::memory_order_seq_cst);
  while (mine.operation.load(std::memory_order_seq_cst) != 0) sched_yield();
}

bool Engine::is_mine(TensorHandle handle) {
  return blocks_[handle.id.index() / kBlock].load(std::memory_order_acquire) != nullptr &&
         tensor(handle.id).incarnation.load(std::memory_order_relaxed) == handle.incarnation;
}

const Signature& Engine::signature_of(std::uint32_t number) const {
  return signatures_[number / kSignatures].load(std::memory_order_acquire)[number % kSignatures];
}

void Engine::keep(std::uint32_t number, const Signature& signature) {
  auto& block = signatures_[number / kSignatures];
  if (block.load(std::memory_order_relaxed) == nullptr) {
    owned_signatures_.push_back(std::make_unique<Signature[]>(kSignatures));
    block.store(owned_signatures_.back().get(), std::memory_order_release);
  }
  // Another one only if no tensor of this rank has it any more.
  auto& mine = block.load(std::memory_order_relaxed)[number % kSignatures];
  if (mine != signature) mine = signature;
}

Result<TensorHandle> Engine::declare(std::string_view name, const Signature& signature,
                                     const GroupName& group) {
  HORO_TRY_STATUS(health());
  const std::lock_guard lock(names_mutex_);
  HORO_TRY(const auto known, board_.handle_of(name));
  if (known && is_mine(*known)) {
    auto& mine = tensor(known->id);
    if (mine.operation.load(std::memory_order_acquire) != 0) {
      return fail(Errc::duplicate,
                  "tensor '{}' is in flight; wait for it before it is declared again", name);
    }
    const auto in = board_.group_of(known->id, board_.me());
    const auto size = group.name.empty() || group.size < 2 ? 0 : group.size;
    if (signature_of(mine.signature) == signature && in.size == size &&
        (size == 0 || board_.group_name(in) == group.name))
      return *known;
  }
  HORO_TRY(const auto handle, board_.declare(name, signature, group));
  adopt(handle);
  auto& mine = tensor(handle.id);
  const auto number = board_.signature_number(handle.id, board_.me());
  if (number == 0 || number > board_.layout().most_signatures)
    return fail(Errc::protocol, "the board has signature {} for tensor '{}'", number, name);
  return_lent(handle.id, Placement::alone);  // While its size is known.
  mine.signature = number;
  keep(number, signature);
  record_declared(board_.recorded_set(), handle.id, name, signature);
  mine.incarnation.store(handle.incarnation, std::memory_order_seq_cst);
  board_.unpin(handle.id);
  return handle;
}

Result<TensorId> Engine::claim(TensorHandle handle, const Submission& given, Operation& operation) {
  const auto id = handle.id;
  if (id.value() >= board_.params().capacity ||
      blocks_[id.index() / kBlock].load(std::memory_order_acquire) == nullptr)
    return fail(Errc::invalid_argument, "{} is not a declared tensor", id);
  auto& mine = tensor(id);
  operation.tensor = id;
  const auto known = [&] {
    return mine.incarnation.load(std::memory_order_seq_cst) == handle.incarnation;
  };
  for (std::uint32_t idle = 0; known(); idle = 0) {
    if (mine.operation.compare_exchange_strong(idle, OperationTable::index_of(operation) + 1,
                                               std::memory_order_seq_cst))
      return claim_pinned(handle, given, operation);
    // Whoever has it without a pin is about to find that its handle is out of date.
    if (board_.is_pinned(id, board_.me())) {
      return fail(Errc::duplicate,
                  "tensor '{}' is in flight already; wait for it, or use another name",
                  board_.tensor_name(id));
    }
    sched_yield();
  }
  return gave_way();
}

Result<TensorId> Engine::claim_pinned(TensorHandle handle, const Submission& given,
                                      Operation& operation) {
  const auto id = handle.id;
  const auto& mine = tensor(id);
  if (mine.incarnation.load(std::memory_order_seq_cst) != handle.incarnation ||
      !board_.pin(handle)) {
    give_back(id, operation);
    return gave_way();
  }
  if (joined_.load(std::memory_order_seq_cst)) {
    const std::string name(board_.tensor_name(id));
    let_go(id, operation);
    return fail(Errc::invalid_argument,
                "tensor '{}' after this rank has joined; wait until all ranks have", name);
  }
  operation.keeps_result = keeps_result(signature(id).kind, given.out);
  operation.room = given.room;
  return id;
}

Failure Engine::gave_way() const {
  return fail(Errc::not_found,
              "the tensor's name gave way to others, since more than {} are in use; declare it "
              "again, or raise HORO_CACHE_CAPACITY",
              board_.params().capacity);
}

bool Engine::give_back(TensorId id, const Operation& operation) {
  if (tensor(id).operation.exchange(0, std::memory_order_seq_cst) != 0) return true;
  // A loss is ending it right now.
  while (!operation.done()) sched_yield();
  return false;
}

void Engine::let_go(TensorId id, const Operation& operation) {
  if (give_back(id, operation)) board_.unpin(id);
}

}  // namespace horo::runtime
