// SPDX-License-Identifier: Apache-2.0
#include "base/kv/descriptor_limit.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>

using namespace horo::kv;  // NOLINT(google-build-using-namespace): a test of it

namespace {

rlim_t limit_now() {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit.rlim_cur;
}

}  // namespace

TEST_CASE("a low limit of descriptors is raised as far as wanted, then as far as possible") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(before.rlim_max > 100);
  rlimit low = before;
  low.rlim_cur = 64;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  CHECK(describe_descriptor_limit().find("may have 64 file descriptors") != std::string::npos);
  CHECK(raise_descriptor_limit(100));
  CHECK(limit_now() == 100);
  CHECK_FALSE(raise_descriptor_limit(80));
  CHECK(limit_now() == 100);
  CHECK(raise_descriptor_limit());
  CHECK(limit_now() == before.rlim_max);
  CHECK_FALSE(raise_descriptor_limit());
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
}
