// SPDX-License-Identifier: Apache-2.0
// Ranks as real processes that meet at a key-value server in the test's own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <thread>

#include "base/kv/client.hpp"
#include "base/kv/server/server.hpp"
#include "base/loop/loop.hpp"
#include "runtime/backends/communicator.hpp"

namespace horo::test {

inline constexpr auto kPatience = std::chrono::seconds(30);  // For what must happen at once.

/// A server whose thread starts after the ranks have been forked.
class Meeting {
 public:
  Meeting();
  ~Meeting();

  void serve();
  kv::Client client() const;

 private:
  const kv::Secret secret_;
  const std::unique_ptr<Loop> loop_;
  std::unique_ptr<kv::Server> server_;
  std::thread thread_;
};

/// What one rank has of the meeting.
struct Place {
  explicit Place(const Meeting& meeting) : client(meeting.client()), keys(client) {}

  kv::Client client;
  runtime::KvMeetingPlace keys;
};

/// Of the `position`-th of `size` ranks, `per_host` of them on each host.
runtime::Communicator communicator_of(Place& place, int position, int size, int per_host = 1);

/// Runs `body` in a process of its own; its exit code is 0 if the body succeeds.
pid_t fork_rank(const std::function<Status()>& body);

/// Waits for its end: exit code, or 128 + signal.
int exit_code(pid_t pid);

}  // namespace horo::test
