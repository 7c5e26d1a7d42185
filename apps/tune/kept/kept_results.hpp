// SPDX-License-Identifier: Apache-2.0
// Shows and removes the results that searches of earlier jobs have stored.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "runtime/tuning/memory/tuning_store.hpp"
#include "runtime/tuning/memory/unfinished_store.hpp"

namespace horo::apps {

/// The folder of `memory`, the value of the knob autotune.memory. Fails: invalid_argument (it is
/// off), not_found (it is empty, and the user has no state folder).
Result<std::string> folder_of_results(const std::string& memory,
                                      const std::function<const char*(const char*)>& lookup);

/// A table with a number for each result. `path` is that of the store.
std::string kept_results_text(std::span<const runtime::tuning::StoredResult> results,
                              std::string_view path);

/// Forgets the result of this number in kept_results_text(), or "all" and the unfinished searches,
/// too; returns what was done as a sentence. Fails: invalid_argument, and as the stores.
Result<std::string> forget_results(runtime::tuning::TuningStore& store,
                                   runtime::tuning::UnfinishedStore& searches,
                                   std::string_view which);

}  // namespace horo::apps
