// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rank_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "launcher/process/unique_fd.hpp"

namespace horo::launcher {

void hold_rank_descriptors() {
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing) return;  // Without /dev/null there are worse troubles, which others report.
  for (const int number : {kBoardDescriptor, kTimelineDescriptor}) {
    // What was inherited under it holds it as well. Beyond the limit nothing else gets it either.
    if (fcntl(number, F_GETFD) < 0) dup3(nothing.value(), number, O_CLOEXEC);
  }
}

}  // namespace horo::launcher
