// SPDX-License-Identifier: Apache-2.0
// horo grow: gives a running elastic job a host, or more slots of a host.
#include "apps/common/running_job/resize_job.hpp"

int main(int argc, char** argv) {
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  return horo::apps::resize_job(horo::launcher::ResizeKind::grow,
                                words.subspan(words.empty() ? 0 : 1));
}
