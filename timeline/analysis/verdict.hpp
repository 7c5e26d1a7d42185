// SPDX-License-Identifier: Apache-2.0
// Interprets figures: one line per finding, the most important first. Pure.
#pragma once

#include <string>
#include <vector>

#include "timeline/analysis/analysis.hpp"

namespace horo::timeline {

struct Verdict {
  std::string kind;   ///< "straggler", "exposed", "slow_link", "slow_packing", "small_buckets", ...
  double weight = 0;  ///< Share of the time that is affected, 0 to 1; 1 for what ends a job.
  std::string text;
};

std::vector<Verdict> judge(const Figures& figures);

std::string time_text(double ns);                ///< "1.24 ms"
std::string bytes_text(double bytes);            ///< "4.0 MiB"
std::string rate_text(double bytes, double ns);  ///< "1.32 GB/s"

}  // namespace horo::timeline
