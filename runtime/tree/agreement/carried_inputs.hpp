// SPDX-License-Identifier: Apache-2.0
// The inputs of small sums that a leader has got from its host and its children, until all have
// come.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/tensor/carried_sum.hpp"
#include "runtime/tree/agreement/host_log.hpp"
#include "runtime/tree/agreement/subtree_update.hpp"

namespace horo::runtime::tree {

/// It belongs to one process set. Source 0 is the leader's host, 1 + i its i-th child. Thread:
/// owner.
class CarriedInputs {
 public:
  /// Whether the ranks of each source come before those of the next one on all hosts, so that what
  /// the sources bring is in rank order when it is put together.
  enum class Order : std::uint8_t { mixed, by_rank };

  explicit CarriedInputs(Order order = Order::mixed) : order_(order) {}

  /// Before the source reports that the tensor with this agreed number is ready.
  void keep(std::size_t source, std::uint32_t number, std::string&& inputs) {
    auto& all = kept_[number];
    if (all.size() <= source) all.resize(source + 1);
    all[source] = std::move(inputs);
  }

  /// The same for this host, which has `at_once` tensors ready.
  void keep_own(HostLog& host, TensorId id, std::uint32_t number, std::size_t at_once) {
    if (order_ == Order::mixed || at_once > kMostCarriedAtOnce) return;
    if (auto inputs = host.inputs(id)) keep(0, number, std::move(*inputs));
  }

  void forget(std::uint32_t number) { kept_.erase(number); }

  /// All sources with bits in `sources` have reported the tensor: adds it to the update, with the
  /// inputs if all of them have brought theirs.
  void report(std::uint32_t number, std::uint64_t sources, SubtreeUpdate& update) {
    auto inputs = take(number, sources);
    if (inputs.empty()) return update.ready.push_back(number);
    update.carried.push_back({.number = number, .inputs = std::move(inputs)});
  }

 private:
  std::string take(std::uint32_t number, std::uint64_t sources) {
    const auto kept = kept_.extract(number);
    std::string all;
    if (kept.empty() || sources >> kept.mapped().size() != 0) return all;
    for (std::size_t i = 0; i < kept.mapped().size(); ++i) {
      const auto& inputs = kept.mapped()[i];
      if (inputs.empty() && (sources >> i & 1U) != 0) return {};
      all += inputs;
    }
    return all.size() > kMostCarriedBytes ? std::string() : all;
  }

  const Order order_;
  /// By number and source; empty: it has not brought any.
  std::unordered_map<std::uint32_t, std::vector<std::string>> kept_;
};

}  // namespace horo::runtime::tree
