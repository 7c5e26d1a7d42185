// SPDX-License-Identifier: Apache-2.0
// What ranks of a simulated world do: rounds of submissions in an order of their own, drawn from
// the world's seed, with mismatches and joins where the plan has them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/simulator/world.hpp"

namespace horo::sim {

/// One operation that all members of a set submit once.
struct Plan {
  SetId set;
  std::string name;
  runtime::Signature signature;
  std::set<int> odd;  ///< Ranks that submit it with another dtype.
};

runtime::Signature vector_of(runtime::Kind kind, std::int64_t count);

class Trainees {
 public:
  explicit Trainees(runtime::sim::World& world) : world_(world) {}

  /// Each member of each plan's set submits it at a random moment up to `spread` from now.
  void submit(const std::vector<Plan>& plans, Duration spread);

  /// Every host that has a log of `set` has published so many entries' tensors in all.
  bool all_have(SetId set, std::size_t tensors) const;

 private:
  runtime::sim::World& world_;
};

/// Empty when all hosts' logs of the set are equal and hold each of `plans` exactly once,
/// mismatched ones as such; else what is wrong.
std::string check_logs(runtime::sim::World& world, SetId set, const std::vector<Plan>& plans);

}  // namespace horo::sim
