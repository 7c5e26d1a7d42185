// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace horo::runtime::bootstrap {

/// While it lives, the board is poisoned if the launcher gives up the generation that the ranks of
/// an elastic job are about to enter: so no rank waits for one that cannot come.
class MeetingGuard {
 public:
  MeetingGuard() = default;
  virtual ~MeetingGuard() = default;
  MeetingGuard(const MeetingGuard&) = delete;
  MeetingGuard& operator=(const MeetingGuard&) = delete;
};

}  // namespace horo::runtime::bootstrap
