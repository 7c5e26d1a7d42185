// SPDX-License-Identifier: Apache-2.0
// The names by which the ranks agree on the collectives of compiled programs.
//
// A call site has a name. Where a program runs it several times, the runs are numbered in the order
// of the program's text, which is the same on all ranks, so XLA may run independent collectives of
// a program in any order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "bindings/jax/xla_call.hpp"

namespace horo::jax {

/// Numbers the runs of call sites. Thread: any.
class Tickets {
 public:
  /// The number of this run of the call site within one execution of its program, counted from 0.
  /// When `execution` is not known, the numbers go on from one execution to the next.
  std::uint32_t next(std::string_view site, std::optional<std::int64_t> execution);

 private:
  struct Count {
    std::int64_t execution = 0;
    std::uint32_t next = 0;
  };

  Mutex mutex_;
  std::unordered_map<std::string, Count> counts_ HORO_GUARDED_BY(mutex_);
};

/// The declared tensors of all call sites. Thread: any.
class Declared {
 public:
  /// Submits all tensors of the collective under `name`, and gives their operations. Fails: as
  /// horo_declare and horo_submit_all, with their `status`; and with unimplemented (the dtype).
  std::optional<CallError> submit(const Collective& collective, const std::string& name,
                                  std::vector<horo_op>& ops, horo_status& status);

  /// Forgets all: the process has left the job in which they were declared.
  void forget();

 private:
  struct Entry {
    std::string signature;
    std::vector<horo_tensor> tensors;
  };

  std::optional<CallError> declare(const Collective& collective, const std::string& name,
                                   std::vector<horo_tensor>& tensors, horo_status& status);

  Mutex mutex_;
  std::unordered_map<std::string, Entry> entries_ HORO_GUARDED_BY(mutex_);
};

}  // namespace horo::jax
