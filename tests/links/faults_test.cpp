// SPDX-License-Identifier: Apache-2.0
// Hosts run as separate processes that end or freeze; all other hosts must notice it.
#include <algorithm>
#include <array>
#include <csignal>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/links/linked_hosts.hpp"

using namespace horo;                  // NOLINT(google-build-using-namespace): a test of it
using namespace horo::links;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;   // NOLINT(google-build-using-namespace): a test of it
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

namespace {

constexpr int kHosts = 5;

/// Runs one host: it agrees on one tensor, reports that, and then reports the loss.
void be_host(Cluster& cluster, int host, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto say = [out](const std::string& line) {
    [[maybe_unused]] const auto n = write(out, line.data(), line.size());
  };
  TestHost state({Rank{host}});
  const auto node = cluster.start(host, cluster.params(host), state);
  if (!node) {
    say(node.error().message + "\n");
    return;
  }
  state.submit(Rank{host}, "x", vector_of(1));
  (*node)->poke();
  state.wait([](TestHost& h) { return !h.records().empty(); });
  say("ready\n");
  state.wait([](TestHost& h) { return h.lost().has_value(); });
  const auto loss = state.loss();
  say(loss ? fmt::format("{} {}\n", loss->host, loss->rank) : "nothing\n");
}

struct Processes {
  Processes(int radix, Duration heartbeat_timeout) : cluster(kHosts, 1, radix) {
    cluster.heartbeat_timeout = heartbeat_timeout;
    for (int h = 0; h < kHosts; ++h) {
      std::array<int, 2> ends{};
      REQUIRE(pipe(ends.data()) == 0);
      const auto pid = fork();
      if (pid == 0) {
        close(ends[0]);
        for (std::size_t i = 0; i < kHosts; ++i) {
          if (static_cast<int>(i) != h) cluster.listeners[i].socket.reset();
        }
        be_host(cluster, h, ends[1]);
        _exit(0);
      }
      close(ends[1]);
      pids.push_back(pid);
      pipes.push_back(ends[0]);
    }
    for (auto& listener : cluster.listeners) listener.socket.reset();
  }

  ~Processes() {
    for (std::size_t i = 0; i < pids.size(); ++i) {
      kill(pids[i], SIGKILL);
      waitpid(pids[i], nullptr, 0);
      close(pipes[i]);
    }
  }

  std::string line(int host) {
    std::string text;
    char c = 0;
    pollfd entry{.fd = pipes[static_cast<std::size_t>(host)], .events = POLLIN, .revents = 0};
    while (poll(&entry, 1, 10000) == 1 && read(entry.fd, &c, 1) == 1 && c != '\n') text += c;
    return text;
  }

  Cluster cluster;
  std::vector<pid_t> pids;
  std::vector<int> pipes;
};

void check_fault(int signal, int culprit, Duration heartbeat_timeout) {
  INFO("signal " << signal << " for host " << culprit);
  Processes processes(2, heartbeat_timeout);
  for (int h = 0; h < kHosts; ++h) REQUIRE(processes.line(h) == "ready");
  kill(processes.pids[static_cast<std::size_t>(culprit)], signal);
  for (int h = 0; h < kHosts; ++h) {
    if (h != culprit) CHECK(processes.line(h) == fmt::format("node{} {}", culprit, culprit));
  }
}

}  // namespace

TEST_CASE("a leader that is killed is named on all other hosts") {
  for (int culprit = 0; culprit < kHosts; ++culprit) check_fault(SIGKILL, culprit, 30s);
}

TEST_CASE("a leader that is stopped is named when its heartbeat is missing") {
  for (const int culprit : {0, 1, 4}) check_fault(SIGSTOP, culprit, 800ms);
}
