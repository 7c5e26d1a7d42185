// SPDX-License-Identifier: Apache-2.0
// A collective whose operations have been submitted and that XLA waits for.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/jax/waiters.hpp"
#include "bindings/jax/xla_call.hpp"

namespace horo::jax {

/// "allreduce". Memory: static.
const char* kind_name(horo_kind kind);

/// Thread: the one that submits, then one that finishes.
class InFlight : public std::enable_shared_from_this<InFlight> {
 public:
  explicit InFlight(Collective collective) : collective_(std::move(collective)) {}

  const Collective& collective() const { return collective_; }

  /// For the submission.
  std::vector<horo_op>& ops() { return ops_; }

  /// Waits for all operations, releases them and returns the first error. Blocks: until they
  /// complete; not for a dead peer.
  std::optional<CallError> finish();

  /// finish() on a thread of `waiters`, which then completes `future`. Where no thread can be had,
  /// the runtime does so when the last operation completes. Blocks: no.
  void finish_later(Waiters& waiters, const xla::XlaApi& api, xla::Future* future);

 private:
  std::optional<CallError> wrong_with(std::size_t i, horo_status status) const;
  void complete();
  void follow();
  static void followed(void* user, horo_op op, horo_status status);

  const Collective collective_;
  std::vector<horo_op> ops_;
  const xla::XlaApi* api_ = nullptr;
  xla::Future* future_ = nullptr;
  std::atomic<std::size_t> open_{0};  ///< Operations that follow() waits for.
  std::shared_ptr<InFlight> self_;    ///< Kept until the last of them has completed.
};

}  // namespace horo::jax
