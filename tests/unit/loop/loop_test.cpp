// SPDX-License-Identifier: Apache-2.0
#include "base/loop/loop.hpp"

#include <array>
#include <chrono>
#include <fcntl.h>
#include <signal.h>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using horo::Loop;

namespace {

std::unique_ptr<Loop> make_loop() {
  auto loop = Loop::make();
  REQUIRE(loop);
  return std::move(*loop);
}

struct Pipe {
  Pipe() { REQUIRE(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0); }

  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }

  std::array<int, 2> ends{};
};

}  // namespace

TEST_CASE("tasks run in the order of post and never inside it") {
  auto loop = make_loop();
  std::vector<int> order;
  loop->post([&] {
    loop->post([&] {
      order.push_back(3);
      loop->stop();
    });
    order.push_back(1);
  });
  loop->post([&] { order.push_back(2); });
  CHECK(order.empty());
  loop->run();
  CHECK(order == std::vector{1, 2, 3});
}

TEST_CASE("another thread may post and stop") {
  auto loop = make_loop();
  int seen = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop->post([&] { ++seen; });
    loop->post([&] { loop->stop(); });
  });
  loop->run();
  other.join();
  CHECK(seen == 1000);
}

TEST_CASE("timers fire once, in order of their delays, and not after they were cancelled") {
  auto loop = make_loop();
  std::vector<int> order;
  horo::Subscription late;
  horo::Subscription early;
  // On a busy machine the second timer may be set so late that it ends last: then both are set
  // anew.
  while (!early) {
    const auto begin = std::chrono::steady_clock::now();
    late = loop->after(2ms, [&] {
      order.push_back(2);
      loop->stop();
    });
    early = loop->after(1ms, [&] { order.push_back(1); });
    if (std::chrono::steady_clock::now() - begin >= 1ms) early.reset();
  }
  auto never = loop->after(0ms, [&] { order.push_back(0); });
  never.reset();
  loop->run();
  CHECK(order == std::vector{1, 2});
}

TEST_CASE("a timer may destroy itself inside its task") {
  auto loop = make_loop();
  horo::Subscription timer;
  timer = loop->after(0ms, [&] {
    timer.reset();
    loop->stop();
  });
  loop->run();
  CHECK_FALSE(timer);
}

TEST_CASE("a signal handler runs at each signal until its subscription ends") {
  auto loop = make_loop();
  int seen = 0;
  auto usr1 = loop->on_signal(SIGUSR1, [&] {
    if (++seen < 3) {
      raise(SIGUSR1);
    } else {
      loop->stop();
    }
  });
  REQUIRE(usr1);
  loop->post([] { raise(SIGUSR1); });
  loop->run();
  CHECK(seen == 3);
  CHECK(loop->on_signal(SIGKILL, [] {}).error().code == horo::Errc::invalid_argument);
}

TEST_CASE("a descriptor's handler runs as long as there is something to read") {
  auto loop = make_loop();
  Pipe pipe;
  REQUIRE(write(pipe.ends[1], "abc", 3) == 3);
  auto watch = loop->watch(pipe.ends[0]);
  REQUIRE(watch);
  std::string text;
  watch->on_readable([&] {
    char byte = 0;
    REQUIRE(read(pipe.ends[0], &byte, 1) == 1);
    text += byte;
    if (text.size() == 3) loop->stop();
  });
  loop->run();
  CHECK(text == "abc");
}

TEST_CASE("reading can be paused and resumed, and both directions of one descriptor watched") {
  auto loop = make_loop();
  Pipe pipe;
  auto reader = loop->watch(pipe.ends[0]);
  auto writer = loop->watch(pipe.ends[1]);
  REQUIRE(reader);
  REQUIRE(writer);
  int reads = 0;
  reader->on_readable([&] {
    char byte = 0;
    REQUIRE(read(pipe.ends[0], &byte, 1) == 1);
    if (++reads == 2) return loop->stop();
    reader->on_readable({});
    loop->post([&] {
      CHECK(reads == 1);
      reader->on_readable([&] { loop->stop(); });
    });
  });
  writer->on_writable([&] {
    REQUIRE(write(pipe.ends[1], "ab", 2) == 2);
    writer->on_writable({});
  });
  loop->run();
  CHECK(reads == 1);
}

TEST_CASE("a plain file counts as ready") {
  auto loop = make_loop();
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    auto watch = loop->watch(fd);
    REQUIRE(watch);
    int calls = 0;
    watch->on_readable([&] {
      if (++calls == 2) loop->stop();
    });
    loop->run();
    CHECK(calls == 2);
  }
  close(fd);
}

TEST_CASE("watching a closed descriptor is an error") {
  auto loop = make_loop();
  CHECK(loop->watch(-1).error().code == horo::Errc::invalid_argument);
}

// The undefined behaviour sanitizer needs descriptors itself to report an exception.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("starting without descriptors is an error") {
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &old) == 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = old.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto loop = Loop::make();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &old) == 0);
  REQUIRE_FALSE(loop);
  CHECK(loop.error().code == horo::Errc::unavailable);
}
#endif
