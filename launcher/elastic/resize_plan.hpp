// SPDX-License-Identifier: Apache-2.0
// Decides what a user's wish for fewer or more slots does to an elastic job. Pure.
#pragma once

#include <optional>
#include <string>

#include "launcher/elastic/host_wishes.hpp"
#include "launcher/elastic/membership.hpp"
#include "launcher/resize.hpp"

namespace horo::launcher {

struct ResizePlan {
  Resized answer;  ///< If it is not accepted, nothing else here counts.
  /// The host leaves, or comes back. Empty: only its slots change.
  std::optional<MembershipEvent> event{};
};

struct ResizeView {
  const MembershipState& state;
  const HostWishes& wishes;
  bool others_may_come = false;  ///< The job can take hosts besides those that it knows.
};

/// `event`, if any, is to be applied first, then wish_slots().
ResizePlan plan_resize(const ResizeView& view, const Resize& wish);

/// Notes the slots of a wish that was accepted.
void wish_slots(HostWishes& wishes, const Resize& wish);

}  // namespace horo::launcher
