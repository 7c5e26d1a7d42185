// SPDX-License-Identifier: Apache-2.0
// Sets and epochs leave no key in the job's store, so any number of them fits into it.
#include <catch2/catch.hpp>

#include "tests/spanning/hosts.hpp"

using namespace horo;            // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;   // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("epochs and process sets leave no key in the store") {
  const std::vector<CpuOperations> all = {CpuOperations::tcp, CpuOperations::gloo};
  for (const auto operations : drawn_from(all)) {
    TestHosts hosts({{0, 1}, {2, 3}, {4}});
    hosts.options.hosts.connect.operations = operations;
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::array<std::string, 5> wrong;
      hosts.run([&](Session& session, int rank) {
        auto& text = wrong[static_cast<std::size_t>(rank)];
        for (int i = 0; i < 3; ++i) {
          const auto set = session.add_set({Rank{0}, Rank{2}, Rank{3}, Rank{4}});
          if (!set) {
            text = set.error().message;
            return;
          }
          if (rank != 1) text += sum(session, *set, fmt::format("of set {}", i), 100, 4);
          if (const auto removed = session.remove_set(*set); !removed)
            text += removed.error().message;
        }
        text += sum(session, kWorld, "of the world", 100'000, 5);
      });
      CHECK(wrong == std::array<std::string, 5>{});
      CHECK(hosts.keys() == 0);
    }
  }
}
