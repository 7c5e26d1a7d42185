// SPDX-License-Identifier: Apache-2.0
// This rank's tensors in a process set: what it has declared, and what it has in flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "runtime/board/board.hpp"
#include "runtime/engine/agreement/agreement.hpp"
#include "runtime/engine/operations/local_tensors.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/tensor/submission.hpp"

namespace horo::runtime {

/// Owns which operation is in flight for each of this rank's tensors, and ends these operations.
/// Thread: any, except where it says the token's: the holder of the progress token.
class Claims {
 public:
  Claims(Board& board, OperationTable& operations, Agreement& agreement);

  // -- By submitters ----------------------------------------------------------------------------

  /// The tensor of `name`, whose signature and group become these. Fails: duplicate (in flight),
  /// resource_exhausted, peer_lost, shut_down, invalid_argument.
  Result<TensorHandle> declare(std::string_view name, const Signature& signature,
                               const GroupName& group = {});

  /// Makes `operation` the one in flight for the tensor and pins the tensor. submit() or release()
  /// follows, with the id that this returns. Fails: duplicate, invalid_argument (this rank has
  /// joined), not_found (the name has lost its slot).
  Result<TensorId> claim(TensorHandle handle, const Submission& given, Operation& operation);

  /// Takes a claim back; `operation` is free again.
  void release(TensorId id, const Operation& operation);

  /// Marks a claimed tensor with this rank's data. The operation completes when it has run. True
  /// when this mark completed the tensor. `ticks`: the time, of timeline/record/ticks.hpp.
  bool submit(TensorId id, const Submission& given, Operation& operation, std::uint64_t ticks);

  /// For a tensor that is claimed.
  LocalTensor& tensor(TensorId id) { return tensors_.at(id); }

  const LocalTensor& tensor(TensorId id) const { return tensors_.at(id); }

  /// This rank's own copy of what it has declared, for a tensor that is claimed.
  const Signature& signature(TensorId id) const { return tensors_.signature(tensor(id).signature); }

  /// Why nothing can be submitted any more; ok while all is well.
  Status health() const;

  // -- By the engine. Thread: the token's -------------------------------------------------------

  /// This rank has marked the tensor, and its operation is in flight.
  bool has_submitted(TensorId id) const {
    return tensors_.contains(id) && tensor(id).submitted.load(std::memory_order_acquire);
  }

  /// The operation in flight for a tensor; null: this rank has not submitted the tensor.
  Operation* operation_of(TensorId id) const;

  /// This rank submits no more data until all have joined.
  bool has_joined() const { return joined_.load(std::memory_order_relaxed); }

  void end_join() { joined_.store(false, std::memory_order_seq_cst); }

  /// All ranks have agreed on something for a tensor that this rank, having joined, has not
  /// submitted: perhaps not on what it has declared.
  void forget_agreement(TensorId id) {
    if (tensors_.contains(id)) tensor(id).agreed = false;
  }

  /// Gives lent memory back, with the result copied out if the tensor moved in place.
  void end_loan(TensorId id, DataPath path);

  /// Ends the operation in flight for a tensor, if there is one.
  void complete(TensorId id, const Error& end);

  /// Ends all operations of this rank, now and from now on.
  void fail_all(const Error& error);

  /// Takes marks back where the tensor is not complete and ends those operations. True when no
  /// operation is left.
  bool withdraw();

 private:
  Result<TensorId> claim_pinned(TensorHandle handle, const Submission& given, Operation& operation);
  Failure lost_slot() const;
  bool give_back(TensorId id, const Operation& operation);
  bool is_declared_like(TensorHandle handle, const Signature& signature,
                        const GroupName& group) const;
  bool has_incarnation(TensorHandle handle) const;
  void adopt(TensorHandle handle);
  void run(const Operation::DueCallback& due);
  template <typename Use>
  void for_tensors_in_flight(Use use);

  Board& board_;
  OperationTable& operations_;
  Agreement& agreement_;
  Mutex names_mutex_;  ///< One thread at a time declares.
  LocalTensors tensors_;
  std::atomic<bool> joined_{false};
  std::atomic<Errc> broken_{Errc::ok};  ///< Set once, after `broken_error_`.
  Error broken_error_;
};

/// The error of operations that need a rank which has shut down.
Error departure_of(Rank rank);

}  // namespace horo::runtime
