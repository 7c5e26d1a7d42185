// SPDX-License-Identifier: Apache-2.0
/// Operations in flight.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include <horo/error.hpp>
#include <horo/horo.h>

namespace horo {
inline namespace v1 {

/// One submitted operation; can be moved, not copied. Memory: the runtime uses the buffers until
/// the operation has completed, so the destructor waits, and they must outlive the Op. Thread: one
/// at a time; another thread than the submitting one may wait.
class Op {
 public:
  /// No operation: it is done.
  Op() = default;

  /// Takes over an operation that a function of horo.h has submitted; 0: none.
  explicit Op(horo_op op) noexcept : op_(op) {}

  Op(Op&& other) noexcept : op_(std::exchange(other.op_, 0)) {}

  Op& operator=(Op&& other) noexcept {
    if (this != &other) {
      finish();
      op_ = std::exchange(other.op_, 0);
    }
    return *this;
  }

  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  ~Op() { finish(); }

  /// Waits for the end and throws the operation's error; later calls do nothing. Blocks: until the
  /// operation has completed; not for a dead peer. Fails: MISMATCH (ranks
  /// disagree about the tensor; the job continues), PEER_LOST, SHUT_DOWN, FORKED.
  void wait() {
    if (op_ != 0) {
      check(horo_wait(std::exchange(op_, 0), -1));
    }
  }

  /// Like wait; false when the operation has not completed in time. Units: milliseconds; less than
  /// 0 counts as 0. Blocks: for at most `timeout`. Fails: as wait.
  bool wait_for(std::chrono::milliseconds timeout) {
    if (op_ == 0) {
      return true;
    }
    const horo_status status = horo_wait(op_, timeout.count() < 0 ? 0 : timeout.count());
    if (status == HORO_IN_PROGRESS) {
      return false;
    }
    op_ = 0;
    check(status);
    return true;
  }

  /// Whether wait() would return at once. Blocks: no.
  bool done() const noexcept { return op_ == 0 || horo_poll(op_) != HORO_IN_PROGRESS; }

  /// Gives up ownership: the caller must wait for the operation by horo_wait. 0 when there is none.
  horo_op release() noexcept { return std::exchange(op_, 0); }

 private:
  void finish() noexcept {
    if (op_ != 0) {
      horo_wait(std::exchange(op_, 0), -1);
    }
  }

  horo_op op_ = 0;
};

/// Waits for all of them, then throws the first error in their order; faster than waiting one by
/// one. All of them are done afterwards, also when it throws. Blocks: until all have completed.
/// Fails: as Op::wait.
inline void wait_all(std::span<Op> ops) {
  std::vector<horo_op> handles;
  handles.reserve(ops.size());
  for (Op& op : ops) {
    if (const horo_op handle = op.release(); handle != 0) {
      handles.push_back(handle);
    }
  }
  check(horo_wait_all(handles.data(), handles.size(), -1));
}

/// One submission for submit_all; see Tensor::part.
struct Part {
  horo_submission submission;
};

/// Submits all of them; when one fails, none is submitted. The Ops are in the order of the parts.
/// Memory: as Tensor::submit, for each. Blocks: no. Fails: as Tensor::submit.
[[nodiscard]] inline std::vector<Op> submit_all(std::span<const Part> parts) {
  std::vector<horo_submission> submissions;
  submissions.reserve(parts.size());
  for (const Part& part : parts) submissions.push_back(part.submission);
  std::vector<horo_op> handles(parts.size());
  std::vector<Op> ops;
  ops.reserve(parts.size());
  check(horo_submit_all(submissions.data(), submissions.size(), handles.data()));
  for (const horo_op handle : handles) ops.emplace_back(handle);
  return ops;
}

}  // namespace v1
}  // namespace horo
