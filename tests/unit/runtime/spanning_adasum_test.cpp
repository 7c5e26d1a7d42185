// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/adasum/spanning_adasum.hpp"

#include <catch2/catch.hpp>

#include "tests/support/instant_backend.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("an Adasum whose buckets complete inside start ends in one advance, since nobody rings") {
  test::InstantBackend backend;
  Bucket bucket;
  bucket.like.op = ReduceOp::adasum;
  bucket.parts.push_back({.id = TensorId{1}, .elements = 0, .row_elements = 1});
  SpanningAdasum adasum(std::move(bucket), 4, 0);
  const auto done = adasum.advance(backend);
  REQUIRE(done);
  CHECK(*done);
  CHECK(backend.started() >= 3);
}
