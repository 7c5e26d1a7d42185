// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace horo::launcher {

struct SavedHost {
  std::string name;
  std::vector<int> ranks;  ///< Ascending; the position is the local rank.
  std::string user{};  ///< The user to log in as, from a name "user@host"; empty: as configured.

  friend bool operator==(const SavedHost&, const SavedHost&) = default;
};

/// The part of a plan that can be stored and run again: what runs and where. It holds no secrets
/// and nothing that differs from run to run, so two saved plans can be compared line by line.
struct SavedPlan {
  std::vector<std::string> command;
  std::string directory;
  std::string bind_to;  ///< A value of the knob bind.to.
  std::string gpus;     ///< A value of the knob gpus.
  std::vector<SavedHost> hosts;

  friend bool operator==(const SavedPlan&, const SavedPlan&) = default;
};

}  // namespace horo::launcher
