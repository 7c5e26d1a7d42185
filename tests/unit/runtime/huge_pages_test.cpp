// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/huge_pages.hpp"

#include <catch2/catch.hpp>

using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("the word in brackets says whether shared memory gets huge pages") {
  CHECK(parse_huge_pages("always within_size advise [never] deny force") == HugePages::refused);
  CHECK(parse_huge_pages("always within_size [advise] never deny force") == HugePages::on_request);
  CHECK(parse_huge_pages("[always] within_size advise never deny force") == HugePages::always);
  CHECK(parse_huge_pages("always [within_size] advise never deny force") == HugePages::always);
  CHECK(parse_huge_pages("always within_size advise never [deny] force") == HugePages::refused);
  CHECK(parse_huge_pages("") == HugePages::refused);
}
