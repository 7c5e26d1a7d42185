// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/host_watch.hpp"

#include <atomic>
#include <poll.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;
using discovery::HostSet;

namespace {

HostSet hosts(int slots) {
  return HostSet({{.name = "a", .slots = slots}});
}

}  // namespace

TEST_CASE("a watch reports an answer that differs from the one before") {
  auto loop = Loop::make().value();
  std::atomic<int> asked = 0;
  std::vector<long long> told;
  const auto watch = HostWatch::start(
                         *loop, hosts(1),
                         [&](int) -> Result<HostSet> {
                           const int times = ++asked;
                           return hosts(times < 3 ? 1 : times < 5 ? 2 : 3);
                         },
                         {.on_hosts =
                              [&](const HostSet& now) {
                                told.push_back(now.slots());
                                if (told.size() == 2) loop->stop();
                              },
                          .on_failure = [](const Error&) { FAIL("no question failed"); }},
                         1ms)
                         .value();
  loop->run();
  CHECK(told == std::vector<long long>{2, 3});
}

TEST_CASE("a watch reports the first of several failures in a row, and keeps asking") {
  auto loop = Loop::make().value();
  std::atomic<int> asked = 0;
  int failures = 0;
  const auto watch = HostWatch::start(
                         *loop, hosts(1),
                         [&](int) -> Result<HostSet> {
                           const int times = ++asked;
                           if (times % 4 != 0) return fail(Errc::unavailable, "no cluster");
                           return hosts(times);
                         },
                         {.on_hosts =
                              [&](const HostSet& now) {
                                if (now.slots() == 8) loop->stop();
                              },
                          .on_failure = [&](const Error&) { ++failures; }},
                         1ms)
                         .value();
  loop->run();
  CHECK(failures == 2);
}

TEST_CASE("a watch ends while its question hangs") {
  auto loop = Loop::make().value();
  std::atomic<bool> asking = false;
  auto watch = HostWatch::start(
                   *loop, hosts(1),
                   [&](int cancel) -> Result<HostSet> {
                     asking = true;
                     pollfd cancelled{cancel, POLLIN, 0};
                     poll(&cancelled, 1, -1);
                     return fail(Errc::cancelled, "nobody waits");
                   },
                   {.on_hosts = [](const HostSet&) { FAIL("there was no answer"); },
                    .on_failure = [](const Error&) { FAIL("the watch was gone"); }},
                   1ms)
                   .value();
  while (!asking) std::this_thread::yield();
  watch.reset();
  loop->post([&] { loop->stop(); });
  loop->run();
}
