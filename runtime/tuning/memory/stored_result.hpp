// SPDX-License-Identifier: Apache-2.0
// The result of a search as it is kept for later jobs, and its line in the store's file. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "runtime/tensor/tuning.hpp"

namespace horo::runtime::tuning {

/// Jobs with equal keys are expected to run best with equal tunings. Both texts are for people,
/// too; they contain neither tabs nor line ends.
struct JobKey {
  std::string topology;  ///< Hosts, ranks, backends, versions, and which values are tuned.
  std::string tensors;   ///< Their number, bytes, and a hash of names, types and shapes.

  friend bool operator==(const JobKey&, const JobKey&) = default;
};

struct StoredResult {
  JobKey key;
  Tuning tuning;
  bool beats_default = false;  ///< False: the search found nothing better than the default.
  double gain = 0;             ///< Share of the default's score.
  double gain_error = 0;
  double default_score = 0;   ///< Bytes per second.
  std::uint64_t samples = 0;  ///< The turns of the search are not counted.
  std::int64_t time = 0;      ///< Seconds since 1970, when it was stored.

  friend bool operator==(const StoredResult&, const StoredResult&) = default;
};

/// A text that cannot break its line.
std::string kept_text(std::string text);

/// Values separated by tabs, without a line end. docs/guide/tuning.md names them.
std::string to_line(const StoredResult& result);

/// Fails: protocol (the line is damaged; the message says where).
Result<StoredResult> from_line(std::string_view line);

/// A JSON document: {"version": 1, "results": [...]}.
std::string to_json(std::span<const StoredResult> results);

}  // namespace horo::runtime::tuning
