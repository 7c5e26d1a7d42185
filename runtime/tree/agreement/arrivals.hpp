// SPDX-License-Identifier: Apache-2.0
// Notes the rank that submitted a tensor last in each part of a subtree, while a trace shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runtime/tree/frames/frames.hpp"

namespace horo::runtime::tree {

/// The rank of a host or a subtree that submitted a tensor last, and when, by this host's clock.
struct KnownArrival {
  Rank rank;
  TimePoint at{};
};

/// The ranks that submitted a complete tensor last, one for each part of the subtree that has told.
struct ArrivalsOf {
  std::string name;
  std::uint32_t number = kNoNumber;
  std::optional<TensorId> own;  ///< On this host, if its members have submitted it.
  std::vector<KnownArrival> arrivals;
};

/// Owns what the sources of one process set have told about tensors that are not complete. Keeps at
/// most kMostTensors names. Thread: owner.
class ArrivalNotes {
 public:
  /// The sources whose arrivals are noted. The root's own host has no need of its own.
  enum class Of : std::uint8_t { none, children, all };

  void note(Of of);

  bool notes_own() const { return of_ == Of::all; }

  /// A child has told. `name_of`: the name that has a number; null: none has it any more.
  void take(std::size_t source, const std::vector<LastArrival>& tensors, TimePoint now,
            const std::function<const std::string*(std::uint32_t)>& name_of);

  /// Replaces what this source told before about the tensor.
  void take(std::size_t source, const std::string& name, const KnownArrival& arrival);

  /// The tensor `done` is complete, and `name` is its name: appends it to `out` with what was told,
  /// if anything was, and forgets that.
  void complete(const std::string& name, ArrivalsOf done, std::vector<ArrivalsOf>& out);

 private:
  Of of_ = Of::none;
  std::unordered_map<std::string, std::vector<std::pair<std::size_t, KnownArrival>>> by_name_;
};

}  // namespace horo::runtime::tree
