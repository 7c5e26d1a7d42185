// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/claims.hpp"

#include <sched.h>
#include <utility>

#include "runtime/engine/operations/recording.hpp"
#include "runtime/kernels/kernels.hpp"

namespace horo::runtime {

Claims::Claims(Board& board, OperationTable& operations, Agreement& agreement)
    : board_(board),
      operations_(operations),
      agreement_(agreement),
      tensors_(board.region().params(), board.region().layout()) {}

Status Claims::health() const {
  const auto broken = broken_.load(std::memory_order_seq_cst);
  if (broken == Errc::ok) return {};
  return Failure(broken_error_);
}

// -- Declarations -------------------------------------------------------------------------------

bool Claims::has_incarnation(TensorHandle handle) const {
  return tensors_.contains(handle.id) &&
         tensor(handle.id).incarnation.load(std::memory_order_relaxed) == handle.incarnation;
}

bool Claims::is_declared_like(TensorHandle handle, const Signature& signature,
                              const GroupName& group) const {
  const auto& groups = board_.directory().groups();
  const auto in = groups.of(handle.id, board_.region().me());
  const auto size = group.exists() ? group.size : 0;
  return this->signature(handle.id) == signature && in.size == size &&
         (size == 0 || groups.name(in) == group.name);
}

void Claims::adopt(TensorHandle handle) {
  tensors_.provide(handle.id);
  auto& mine = tensor(handle.id);
  mine.agreed = false;
  if (mine.incarnation.load(std::memory_order_relaxed) == handle.incarnation) return;
  // Change the incarnation, then look at the operation; claim() does the opposite, and releases the
  // tensor when it sees the change.
  mine.incarnation.store(LocalTensor::kNone, std::memory_order_seq_cst);
  while (mine.operation.load(std::memory_order_seq_cst) != 0) sched_yield();
}

Result<TensorHandle> Claims::declare(std::string_view name, const Signature& signature,
                                     const GroupName& group) {
  HORO_TRY_STATUS(health());
  const MutexLock lock(names_mutex_);
  auto& directory = board_.directory();
  HORO_TRY(const auto known, directory.handle_of(name));
  if (known && has_incarnation(*known)) {
    if (tensor(known->id).operation.load(std::memory_order_acquire) != 0) {
      return fail(Errc::duplicate,
                  "tensor '{}' is in flight; wait for it before it is declared again", name)
          .with({.tensor = std::string(name)});
    }
    if (is_declared_like(*known, signature, group)) return *known;
  }
  HORO_TRY(const auto handle, directory.declare(name, signature, group));
  adopt(handle);
  auto& mine = tensor(handle.id);
  const auto number = directory.signatures().number(handle.id, board_.region().me());
  if (number == 0 || number > board_.region().layout().most_signatures)
    return fail(Errc::protocol, "the board has signature {} for tensor '{}'", number, name);
  end_loan(handle.id, DataPath::alone);  // Now, while the size of the loan is known.
  mine.signature = number;
  tensors_.keep(number, signature);
  record_declared(board_.recorded_set(), handle.id, name, signature);
  mine.incarnation.store(handle.incarnation, std::memory_order_seq_cst);
  directory.unpin(handle.id);
  return handle;
}

// -- Claims -------------------------------------------------------------------------------------

Result<TensorId> Claims::claim(TensorHandle handle, const Submission& given, Operation& operation) {
  const auto id = handle.id;
  if (id.value() >= board_.region().params().capacity || !tensors_.contains(id))
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
    // A thread that has the tensor without a pin is about to find its handle out of date.
    if (board_.directory().is_pinned(id, board_.region().me())) {
      return fail(Errc::duplicate,
                  "tensor '{}' is in flight already; wait for it, or use another name",
                  board_.region().tensor_name(id))
          .with({.tensor = std::string(board_.region().tensor_name(id))});
    }
    sched_yield();
  }
  return lost_slot();
}

Result<TensorId> Claims::claim_pinned(TensorHandle handle, const Submission& given,
                                      Operation& operation) {
  const auto id = handle.id;
  if (tensor(id).incarnation.load(std::memory_order_seq_cst) != handle.incarnation ||
      !board_.directory().pin(handle)) {
    give_back(id, operation);
    return lost_slot();
  }
  if (joined_.load(std::memory_order_seq_cst)) {
    const std::string name(board_.region().tensor_name(id));
    release(id, operation);
    return fail(Errc::invalid_argument,
                "tensor '{}' after this rank has joined; wait until all ranks have", name);
  }
  operation.keeps_result = keeps_result(signature(id).kind, given.out);
  operation.room = given.room;
  return id;
}

Failure Claims::lost_slot() const {
  return fail(Errc::not_found,
              "the tensor's name was replaced by another, because more than {} names are in use; "
              "declare the tensor again, or raise HORO_CACHE_CAPACITY",
              board_.region().params().capacity);
}

bool Claims::give_back(TensorId id, const Operation& operation) {
  if (tensor(id).operation.exchange(0, std::memory_order_seq_cst) != 0) return true;
  // The loss of a rank is ending the operation right now.
  while (!operation.done()) sched_yield();
  return false;
}

void Claims::release(TensorId id, const Operation& operation) {
  if (give_back(id, operation)) board_.directory().unpin(id);
}

bool Claims::submit(TensorId id, const Submission& given, Operation& operation,
                    std::uint64_t ticks) {
  auto& mine = tensor(id);
  const auto& s = signature(id);
  mine.in = given.in;
  mine.out = given.out;
  mine.parity = static_cast<std::uint8_t>(board_.marks().generation(id) & 1U);
  end_loan(id, DataPath::alone);  // The loan of a submission that never ran.
  bool completed = false;
  if (s.kind == Kind::join) {
    joined_.store(true, std::memory_order_seq_cst);
    mine.submitted.store(true, std::memory_order_release);
    completed = agreement_.join(id);
  } else {
    auto contribution = agreement_.contribute(id, mine, s, given, operation);
    contribution.changed = !mine.agreed;
    contribution.ticks = ticks;
    mine.submitted.store(true, std::memory_order_release);
    completed = board_.marks().mark(id, contribution);
  }
  if (broken_.load(std::memory_order_seq_cst) != Errc::ok) [[unlikely]] {
    const auto number = mine.operation.exchange(0, std::memory_order_acq_rel);
    if (number == 0) return completed;
    board_.directory().unpin(id);
    const auto due = operations_.at(number - 1).finish(broken_error_);
    if (!due) return completed;
    due->run();
    board_.region().host().waker().remove_waiter();
  }
  return completed;
}

// -- Ends ---------------------------------------------------------------------------------------

Operation* Claims::operation_of(TensorId id) const {
  if (!has_submitted(id)) return nullptr;
  const auto number = tensor(id).operation.load(std::memory_order_relaxed);
  return number == 0 ? nullptr : &operations_.at(number - 1);
}

void Claims::end_loan(TensorId id, DataPath path) {
  auto& mine = tensor(id);
  if (mine.lent == nullptr) return;
  const auto& s = signature(id);
  if (path == DataPath::direct && s.kind == Kind::allreduce)
    kernels::copy_kernel()(mine.out, mine.lent, s.bytes());
  operations_.lent().put(std::exchange(mine.lent, nullptr), s.bytes());
}

void Claims::complete(TensorId id, const Error& end) {
  auto& mine = tensor(id);
  if (end.code == Errc::ok) mine.agreed = true;
  mine.submitted.store(false, std::memory_order_relaxed);
  const auto number = mine.operation.exchange(0, std::memory_order_acq_rel);
  if (number == 0) return;
  board_.directory().unpin(id);
  if (const auto due = operations_.at(number - 1).finish(end)) run(*due);
}

void Claims::run(const Operation::DueCallback& due) {
  auto& host = board_.region().host();
  {
    // The user's code may take long, and a rank may be lost meanwhile.
    const PeerRelease::Pause pause(host.peer_release());
    due.run();
  }
  host.waker().remove_waiter();
}

template <typename Use>
void Claims::for_tensors_in_flight(Use use) {
  const auto count = board_.region().tensor_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    const TensorId id{i};
    if (tensors_.contains(id) && tensor(id).operation.load(std::memory_order_seq_cst) != 0) use(id);
  }
}

Error departure_of(Rank rank) {
  return fail(Errc::shut_down,
              "rank {} has left the job, and nothing can complete without it: its program ended or "
              "called shutdown. Give all ranks the same number of steps, or let those that have "
              "fewer call join()",
              rank)
      .with({.ranks = {rank.value()}})
      .take();
}

void Claims::fail_all(const Error& error) {
  if (broken_.load(std::memory_order_relaxed) == Errc::ok) {
    broken_error_ = error;
    // A submitter sets its operation and then looks at this; here it is the opposite.
    broken_.store(error.code, std::memory_order_seq_cst);
  }
  for_tensors_in_flight([&](TensorId id) { complete(id, error); });
}

bool Claims::withdraw() {
  bool none_left = true;
  for_tensors_in_flight([&](TensorId id) {
    const auto taken_back = board_.marks().unmark(id);
    board_.marks().dissolve_group(id);
    if (taken_back != TakenBack::yes) {
      if (taken_back == TakenBack::completed) agreement_.call_leader();
      none_left = false;
      return;
    }
    end_loan(id, DataPath::alone);
    complete(id,
             fail(Errc::shut_down, "this rank shuts down before all ranks had submitted the tensor")
                 .take());
  });
  return none_left;
}

}  // namespace horo::runtime
