// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/set_table.hpp"

#include <catch2/catch.hpp>

#include "base/race_point.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

namespace {

SetTable* table = nullptr;

void insert(std::uint32_t id) {
  auto set = std::make_unique<ProcessSet>();
  set->id = SetId{id};
  table->insert(std::move(set));
}

/// Another thread adds a set here. It may also remove the set at any time: this thread has not said
/// that it looks.
void add_second() {
  race_point_hook = nullptr;
  insert(1);
}

}  // namespace

TEST_CASE("a thread that looks at sets without holding them sees none that can be removed") {
  SetTable sets;
  table = &sets;
  insert(0);
  std::vector<SetId> seen;
  const auto look = [&] {
    seen.clear();
    sets.for_all_from_outside([&](const ProcessSet& set) { seen.push_back(set.id); });
  };
  race_point_hook = &add_second;
  look();
  CHECK(seen == std::vector{SetId{0}});
  look();
  CHECK(seen == std::vector{SetId{0}, SetId{1}});
}
