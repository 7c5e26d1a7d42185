// SPDX-License-Identifier: Apache-2.0
// Tests the choice of the address that other hosts can reach, with network namespaces as hosts.
// Needs root.
#include "runtime/backends/reachable_address.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sched.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "runtime/backends/probe_listener.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

/// Keys in this process: the hosts are threads.
class Board final : public RendezvousStore {
 public:
  Status set(std::string_view key, std::string_view value, Deadline) override {
    const std::lock_guard lock(mutex_);
    values_[std::string(key)] = value;
    return {};
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    while (!deadline.expired(SteadyClock::instance().now())) {
      {
        const std::lock_guard lock(mutex_);
        if (const auto found = values_.find(std::string(key)); found != values_.end())
          return found->second;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return fail(Errc::timed_out, "the key '{}' was never set", key);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

bool shell(const std::string& script) {
  return std::system(("{ " + script + "; } >/dev/null 2>&1").c_str()) == 0;
}

/// Two namespaces connected to each other; each also has a bridge, with the same address on both.
class Hosts {
 public:
  Hosts()
      : usable_(geteuid() == 0 &&
                shell("ip netns add " + name(0) + " && ip netns add " + name(1) + " && ip -n " +
                      name(0) + " link add wire type veth peer name wire netns " + name(1) +
                      " && " + prepare(0) + " && " + prepare(1))) {}

  ~Hosts() {
    for (const int host : {0, 1}) shell("ip netns del " + name(host));
  }

  bool usable() const { return usable_; }

  /// Moves the calling thread to a host.
  static bool enter(int host) {
    const int fd = open(("/run/netns/" + name(host)).c_str(), O_RDONLY | O_CLOEXEC);
    const bool moved = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
    close(fd);
    return moved;
  }

 private:
  static std::string name(int host) { return fmt::format("horo-{}-{}", getpid(), host); }

  static std::string prepare(int host) {
    const auto in = "ip -n " + name(host) + " ";
    return in + "link set lo up && " + in + "link add bridge0 type bridge && " + in +
           "addr add 172.30.0.1/16 dev bridge0 && " + in + "link set bridge0 up && " + in +
           fmt::format("addr add 10.98.0.{}/24 dev wire && ", host + 1) + in + "link set wire up";
  }

  const bool usable_;
};

}  // namespace

TEST_CASE("an address that every host has is not chosen") {
  const Hosts hosts;
  if (!hosts.usable()) {
    WARN("not tested: needs root and ip");
    return;
  }
  Board board;
  std::vector<Result<std::string>> found(4, std::string());
  std::vector<std::thread> ranks;
  for (int r = 0; r < 4; ++r) {
    ranks.emplace_back([&, r] {
      if (!Hosts::enter(r / 2)) return;
      found[static_cast<std::size_t>(r)] =
          reachable_address({.position = r,
                             .members = {0, 1, 2, 3},
                             .hosts = {0, 0, 1, 1},
                             .name = "set",
                             .meeting = &board,
                             .start_timeout = std::chrono::seconds(20)});
    });
  }
  for (auto& rank : ranks) rank.join();
  for (std::size_t r = 0; r < 4; ++r) {
    REQUIRE(found[r]);
    CHECK(*found[r] == (r < 2 ? "10.98.0.1" : "10.98.0.2"));
  }
}

TEST_CASE("a probe does not answer a peer without the secret") {
  const auto probe = *ProbeListener::open();
  const std::vector<std::string> here = {"127.0.0.1"};
  CHECK(first_answering(here, probe->port(), probe->secret()) == "127.0.0.1");
  CHECK(first_answering(here, probe->port(), std::string(32, '0')).empty());
  CHECK(first_answering(here, 1, probe->secret()).empty());
}

TEST_CASE("each rank is probed by the last rank of the host before its own") {
  const Communicator world{.members = {0, 1, 2, 3, 4}, .hosts = {0, 0, 1, 1, 2}, .name = "set"};
  CHECK(prober_of(world, 0) == 4);
  CHECK(prober_of(world, 1) == 4);
  CHECK(prober_of(world, 2) == 1);
  CHECK(prober_of(world, 4) == 3);
  const Communicator alone{.members = {0, 1}, .hosts = {0, 0}, .name = "set"};
  CHECK(prober_of(alone, 1) == -1);
}
