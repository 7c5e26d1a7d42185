// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/login_gate.hpp"

#include <vector>

#include <catch2/catch.hpp>

using namespace horo::launcher;

TEST_CASE("eight are in at a time at each door, in the order in which they came") {
  LoginGate gate;
  std::vector<int> in;
  std::vector<LoginGate::Ticket> tickets;
  for (int i = 0; i < 20; ++i) tickets.push_back(gate.queue("jump", [&in, i] { in.push_back(i); }));
  CHECK(in.size() == 8);
  const auto other = gate.queue("another", [&in] { in.push_back(100); });
  CHECK(in.back() == 100);
  tickets[3].reset();
  CHECK(in.back() == 8);
  tickets[9].reset();  // It had not been let in yet.
  tickets[0].reset();
  CHECK(in.back() == 10);
  for (auto& ticket : tickets) ticket.reset();
  CHECK(in.size() == 20);  // All but the one that gave up, and the one at the other door.
}
