// SPDX-License-Identifier: Apache-2.0
// horo-agent: one host's supervisor, started by a launcher and spoken to over standard input and
// output. Not meant to be called by hand.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "base/exit_code.hpp"
#include "base/version.hpp"
#include "launcher/agent/guard.hpp"
#include "launcher/agent/host_agent.hpp"
#include "launcher/process/spawn.hpp"

namespace {

using horo::launcher::HostAgent;

/// The launcher reads our standard output.
int report(const horo::Error& error) {
  HostAgent::refuse(STDOUT_FILENO, error);
  return horo::exit_code::kFailure;
}

int supervise(const rlimit& descriptor_limit, int guard_pid, const horo::launcher::Cover& cover) {
  auto loop = horo::Loop::make();
  if (!loop) return report(loop.error());
  const auto agent = HostAgent::make(
      **loop, {.guard_pid = guard_pid, .cover = cover, .rank_descriptor_limit = descriptor_limit});
  if (!agent) return report(agent.error());
  (*loop)->run();
  return (*agent)->exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("horo-agent %s\n", std::string(horo::version()).c_str());
    return horo::exit_code::kOk;
  }
  if (argc != 1 || isatty(STDIN_FILENO) == 1) {
    std::fputs("horo-agent is started by horo run; it takes its orders from standard input\n",
               stderr);
    return horo::exit_code::kUsage;
  }
  const auto descriptor_limit = horo::launcher::raise_descriptor_limit();
  if (!descriptor_limit) return report(descriptor_limit.error());
  const int guard_pid = getpid();
  const auto code = horo::launcher::run_guarded([&](const horo::launcher::Cover& cover) {
    return supervise(*descriptor_limit, guard_pid, cover);
  });
  return code ? *code : report(code.error());
}
