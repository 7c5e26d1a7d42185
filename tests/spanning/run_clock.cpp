// SPDX-License-Identifier: Apache-2.0
#include "tests/spanning/run_clock.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

namespace horo::spanning {

Duration CoreWaits::take() {
  std::unordered_map<int, Duration> now;
  auto more = Duration::zero();
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", none)) {
    std::ifstream file(task.path() / "schedstat");
    std::int64_t ran = 0;
    std::int64_t waited = 0;
    if (!(file >> ran >> waited)) continue;  // The thread has ended meanwhile.
    const int thread = std::atoi(task.path().filename().c_str());
    const auto before = seen_.find(thread);
    now[thread] = Duration(waited);
    more += std::max(Duration::zero(),
                     Duration(waited) - (before == seen_.end() ? Duration() : before->second));
  }
  seen_ = std::move(now);
  return more;
}

void RunClock::add(Duration passed, Duration waited_for_cores) {
  all_ += passed;
  waited_ += waited_for_cores;
  counted_ += std::max(Duration::zero(), passed - waited_for_cores);
}

}  // namespace horo::spanning
