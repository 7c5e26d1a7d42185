// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rank_processes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/log.hpp"

namespace horo::test {

MeetingServer::MeetingServer() : secret_(*kv::make_secret()), loop_(Loop::make().value()) {
  server_ = kv::Server::start(*loop_, secret_, {}).value();
}

MeetingServer::~MeetingServer() {
  loop_->post([this] { loop_->stop(); });
  if (thread_.joinable()) thread_.join();
}

void MeetingServer::serve() {
  thread_ = std::thread([this] { loop_->run(); });
}

kv::Client MeetingServer::client() const {
  return kv::Client::connect(server_->address(), secret_,
                             Deadline::in(SteadyClock::instance(), kTestTimeout))
      .value();
}

runtime::Communicator communicator_of(RankClient& rank_client, int position, int size,
                                      int per_host) {
  runtime::Communicator communicator{.position = position,
                                     .name = "gloo/epoch1",
                                     .meeting = &rank_client.keys,
                                     .start_timeout = kTestTimeout,
                                     .timeout = kTestTimeout};
  for (int r = 0; r < size; ++r) {
    communicator.members.push_back(r);
    communicator.hosts.push_back(r / per_host);
  }
  communicator.address = "127.0.0.1";
  return communicator;
}

pid_t fork_rank(const std::function<Status()>& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const auto status = body();
  if (!status) log::error("test", "{}", status.error().message);
  _exit(status ? 0 : 1);
}

int exit_code(pid_t pid) {
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace horo::test
