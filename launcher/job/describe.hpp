// SPDX-License-Identifier: Apache-2.0
// Exits, times and ranks in words, for messages.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/strong.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// "exit code 3", "killed by signal 11 (SIGSEGV), core dumped", ...
std::string describe(const RankExit& exit);

/// "signal 15 (SIGTERM)".
std::string describe_signal(int number);

/// Adds the fields of an exit to the JSON object that is open.
void write_exit(JsonWriter& json, const RankExit& exit);

/// "12 ms", "1.24 s", "3 min 20 s", "2 h 5 min".
std::string describe(Duration duration);

/// "rank 0", "ranks 0, 2-5 and 9"; `ranks` in ascending order.
std::string describe(const std::vector<Rank>& ranks);

}  // namespace horo::launcher
