// SPDX-License-Identifier: Apache-2.0
// horo shrink: takes a host, or some of its slots, away from a running elastic job.
#include "apps/common/running_job/resize_job.hpp"

int main(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::resize_job(horo::launcher::ResizeKind::shrink,
                                words.subspan(words.empty() ? 0 : 1));
}
