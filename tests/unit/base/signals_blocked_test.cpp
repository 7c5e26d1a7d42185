// SPDX-License-Identifier: Apache-2.0
#include "base/signals_blocked.hpp"

#include <cerrno>
#include <csignal>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"

using namespace horo;

namespace {

/// A pipe without a reader: writing to it raises SIGPIPE.
UniqueFd broken_pipe() {
  int ends[2] = {-1, -1};
  REQUIRE(pipe(ends) == 0);
  ::close(ends[0]);
  return UniqueFd(ends[1]);
}

int error_of_write(const UniqueFd& to) {
  return ::write(to.value(), "x", 1) < 0 ? errno : 0;
}

bool is_blocked(int signal) {
  sigset_t now;
  return pthread_sigmask(SIG_BLOCK, nullptr, &now) == 0 && sigismember(&now, signal) == 1;
}

}  // namespace

TEST_CASE("a write to a closed connection fails and does not end the process, then or later") {
  REQUIRE(std::signal(SIGPIPE, SIG_DFL) != SIG_ERR);
  const auto pipe = broken_pipe();
  {
    const SignalsBlocked blocked(SignalsBlocked::Which::pipe);
    CHECK(error_of_write(pipe) == EPIPE);
    CHECK_FALSE(is_blocked(SIGTERM));
  }
  CHECK_FALSE(is_blocked(SIGPIPE));
}

TEST_CASE(
    "the program's code in a thread that blocks signals gets the signals that its starter "
    "accepted") {
  bool within = true, after = false;
  start_quiet_thread([&] {
    {
      const SignalsOfStarter signals;
      within = is_blocked(SIGTERM);
    }
    after = is_blocked(SIGTERM);
  }).join();
  CHECK_FALSE(within);
  CHECK(after);
}

TEST_CASE(
    "a thread that blocks signals, and a thread that it starts, gets only the signals of its own "
    "faults") {
  const auto pipe = broken_pipe();
  int error = 0;
  bool term = false, fault = true, inherited = false;
  start_quiet_thread([&] {
    error = error_of_write(pipe);
    term = is_blocked(SIGTERM);
    fault = is_blocked(SIGSEGV);
    std::thread([&] { inherited = is_blocked(SIGINT); }).join();
  }).join();
  CHECK(error == EPIPE);
  CHECK(term);
  CHECK_FALSE(fault);
  CHECK(inherited);
  CHECK_FALSE(is_blocked(SIGTERM));
}
