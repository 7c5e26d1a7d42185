// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/login_limiter.hpp"

#include <vector>

#include <catch2/catch.hpp>

using namespace horo::launcher;

TEST_CASE("eight logins are under way at each server, in the order in which they were queued") {
  LoginLimiter limiter;
  std::vector<int> started;
  std::vector<LoginLimiter::Slot> slots;
  for (int i = 0; i < 20; ++i)
    slots.push_back(limiter.queue("jump", [&started, i] { started.push_back(i); }));
  CHECK(started.size() == 8);
  const auto other = limiter.queue("another", [&started] { started.push_back(100); });
  CHECK(started.back() == 100);
  slots[3].reset();
  CHECK(started.back() == 8);
  slots[9].reset();  // It had not started yet.
  slots[0].reset();
  CHECK(started.back() == 10);
  for (auto& slot : slots) slot.reset();
  CHECK(started.size() == 20);  // All but the one that gave up, and the one at the other server.
}
