// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/call_gathering.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using elastic::MembershipCall;
using Calls = std::vector<MembershipCall>;

namespace {

CallGathering with_workers(int count) {
  CallGathering gathering;
  for (int worker = 0; worker < count; ++worker) gathering.begin(Rank{worker});
  return gathering;
}

}  // namespace

TEST_CASE("calls wait until every worker of the host has called, and go together") {
  auto gathering = with_workers(3);
  CHECK_FALSE(gathering.any());
  CHECK(gathering.add({.worker = 2, .attempt = 4}));
  CHECK(gathering.any());
  CHECK_FALSE(gathering.complete());
  CHECK(gathering.add({.worker = 0}));
  CHECK_FALSE(gathering.complete());
  CHECK(gathering.add({.worker = 1}));
  CHECK(gathering.complete());
  CHECK(gathering.take() == Calls{{.worker = 0}, {.worker = 1}, {.worker = 2, .attempt = 4}});
  CHECK_FALSE(gathering.any());
  CHECK(gathering.take().empty());
}

TEST_CASE("a worker whose call was sent is not waited for until it was answered") {
  auto gathering = with_workers(2);
  gathering.add({.worker = 0});
  CHECK(gathering.take() == Calls{{.worker = 0}});
  gathering.add({.worker = 1});
  CHECK(gathering.complete());
  gathering.take();
  gathering.answered(0, 1);
  gathering.answered(1, 1);
  gathering.add({.worker = 1, .attempt = 2});
  CHECK_FALSE(gathering.complete());
}

TEST_CASE("an answer to an earlier call leaves the last one waiting") {
  auto gathering = with_workers(1);
  gathering.add({.worker = 0, .attempt = 1});
  gathering.take();
  gathering.add({.worker = 0, .attempt = 2});
  gathering.answered(0, 1);
  CHECK(gathering.any());
  CHECK(gathering.take() == Calls{{.worker = 0, .attempt = 2}});
}

TEST_CASE("the launcher hears nothing of a worker that has ended, and nobody waits for it") {
  auto gathering = with_workers(2);
  gathering.add({.worker = 0});
  gathering.end(Rank{1});
  CHECK(gathering.complete());
  gathering.end(Rank{0});
  CHECK_FALSE(gathering.any());
  CHECK_FALSE(gathering.add({.worker = 0, .attempt = 2}));
  CHECK_FALSE(gathering.has(0));
}

TEST_CASE("a process that is no worker of the host does not call") {
  auto gathering = with_workers(1);
  CHECK_FALSE(gathering.add({.worker = 9}));
  CHECK_FALSE(gathering.any());
}
