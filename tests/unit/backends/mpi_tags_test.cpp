// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/mpi/mpi_tags.hpp"

#include <set>

#include <catch2/catch.hpp>

#include "runtime/backends/hierarchical/choose.hpp"

using namespace horo;
using namespace horo::runtime;

TEST_CASE("tags fit the 23 bits of MPI over UCX for every set, segment and message") {
  constexpr int kUcx = 8'388'607;
  CHECK(check_tag_bound(kUcx));
  CHECK(kMostTag < 1 << 22);
  for (const std::uint64_t segment : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}}) {
    for (const std::uint32_t number : {0U, 1023U, ~0U}) {
      CHECK(tag_of(0, segment, number) >= 0);
      CHECK(tag_of(kMostSlots - 1, segment, number) <= kMostTag);
    }
  }
}

TEST_CASE("tags differ between sets, between segments in flight, and between a thousand messages") {
  std::set<int> tags;
  for (const int slot : {0, 1, 511}) {
    for (std::uint64_t segment = 5; segment < 5 + kMostSegmentsApart; ++segment) {
      for (const std::uint32_t number : {0U, 1U, 999U}) tags.insert(tag_of(slot, segment, number));
    }
  }
  CHECK(tags.size() == 3 * kMostSegmentsApart * 3);
}

TEST_CASE("an MPI with too few tags gives way to TCP, with the reason") {
  const auto few = check_tag_bound(32'767);
  REQUIRE_FALSE(few);
  CHECK(few.error().code == Errc::unsupported);
  BackendRequest request{.host_of = {0, 1},
                         .mpi = "mpich",
                         .candidates = {{"tcp", ""}, {"mpich", few.error().message}}};
  const auto choice = choose_backend(request).value();
  CHECK(choice.name == "tcp");
  bool told = false;
  for (const auto& rejected : choice.rejected) {
    told = told || (rejected.name == "mpich" &&
                    rejected.why_not.find("tags up to 32767 only, horo "
                                          "needs 4194303") != std::string::npos);
  }
  CHECK(told);
}
