// SPDX-License-Identifier: Apache-2.0
// Runs ranks as real processes, which meet at a key-value server in the test's process.
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

// For events that should happen at once.
inline constexpr auto kTestTimeout = std::chrono::seconds(30);

/// A key-value server whose thread starts after the ranks have been forked.
class MeetingServer {
 public:
  MeetingServer();
  ~MeetingServer();

  void serve();
  kv::Client client() const;

 private:
  const kv::Secret secret_;
  const std::unique_ptr<Loop> loop_;
  std::unique_ptr<kv::Server> server_;
  std::thread thread_;
};

/// A rank's access to the server.
struct RankClient {
  explicit RankClient(const MeetingServer& server) : client(server.client()), keys(client) {}

  kv::Client client;
  runtime::KvRendezvousStore keys;
};

/// The communicator of rank `position` of `size`, with `per_host` ranks on each host.
runtime::Communicator communicator_of(RankClient& rank_client, int position, int size,
                                      int per_host = 1);

/// Runs `body` in a new process; its exit code is 0 if the body succeeds.
pid_t fork_rank(const std::function<Status()>& body);

/// Waits for the process to end and returns its exit code, or 128 + signal.
int exit_code(pid_t pid);

}  // namespace horo::test
