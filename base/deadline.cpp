// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>

namespace horo {

bool pause_for(Duration pause, const WaitLimit& limit) {
  const auto& clock = SteadyClock::instance();
  const auto until = Deadline::in(clock, std::min(pause, limit.deadline.left(clock.now())));
  pollfd cancel{.fd = limit.cancel, .events = POLLIN, .revents = 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until.left(clock.now()));
    const int ready = poll(&cancel, 1, static_cast<int>(left.count()));
    if (ready > 0) return false;
    if (ready == 0 || errno != EINTR) return true;
  }
}

}  // namespace horo
