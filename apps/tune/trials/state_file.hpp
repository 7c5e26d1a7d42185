// SPDX-License-Identifier: Apache-2.0
// The file of --resume: all trials of a search, so that it can continue after any end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/common/document.hpp"
#include "apps/tune/trials/trial_driver.hpp"
#include "apps/tune/trials/trial_space.hpp"

namespace horo::apps {

enum class Objective : std::uint8_t {
  undecided,   ///< The first trial decides.
  throughput,  ///< Bytes per second, as the runtime measures them.
  wall_time,   ///< The command's duration.
};

/// A search as it is kept in a file.
struct SavedSearch {
  std::vector<std::string> command;  ///< Options of `horo run` and the command.
  Objective objective = Objective::undecided;
  TrialState state;
};

/// JSON. Pure.
std::string state_text(const SavedSearch& search, const TrialSpace& space);

/// Reads state_text(). `command` is the one that is to be tuned now. Fails: invalid_argument
/// (another command or space, another version, damaged), with the place in the file.
Result<SavedSearch> state_of_document(const DocumentPart& document, const TrialSpace& space,
                                      const std::vector<std::string>& command);

}  // namespace horo::apps
