// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "apps/tune/record/tune_record.hpp"

namespace horo::apps {

struct TuneSummary;

/// Sentences for people: how the search ended, which setting to keep, how sure that is. Pure.
std::vector<std::string> verdicts_of(const TuneRecord& record, const TuneSummary& summary);

}  // namespace horo::apps
