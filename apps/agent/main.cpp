// SPDX-License-Identifier: Apache-2.0
// horo-agent: the supervisor of ranks on one host. The launcher speaks to it over standard input
// and output, or, where an mpirun has started it to own one rank, over a connection that it makes
// itself. Not meant to be called by hand.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "base/exit_code.hpp"
#include "base/version.hpp"
#include "launcher/agent/guard.hpp"
#include "launcher/agent/host_agent.hpp"
#include "launcher/agent/rank_descriptors.hpp"
#include "launcher/mpi/mpi_rank.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/starters/tree/branches.hpp"

namespace {

using horo::launcher::HostAgent;

/// The launcher reads our standard output.
int report(const horo::Error& error) {
  HostAgent::refuse(STDOUT_FILENO, error);
  return horo::exit_code::kFailure;
}

int supervise(HostAgent::Options options) {
  auto loop = horo::Loop::make();
  if (!loop) return report(loop.error());
  const auto agent = HostAgent::make(**loop, std::move(options));
  if (!agent) return report(agent.error());
  (*loop)->run();
  return (*agent)->exit_code();
}

int serve(HostAgent::Options options) {
  const auto descriptor_limit = horo::launcher::raise_descriptor_limit();
  if (!descriptor_limit) return report(descriptor_limit.error());
  options.inheritance.descriptor_limit = *descriptor_limit;
  options.guard_pid = getpid();
  const auto code =
      horo::launcher::run_guarded(options.in, [&](const horo::launcher::Cover& cover) {
        horo::launcher::hold_rank_descriptors();
        options.cover = cover;
        return supervise(std::move(options));
      });
  return code ? *code : report(code.error());
}

int serve_mpi_rank() {
  auto joined = horo::launcher::join_from_mpirun();
  if (!joined) {
    std::fprintf(stderr, "horo-agent: %s\n", joined.error().message.c_str());
    return horo::exit_code::kFailure;
  }
  return serve({.inheritance = std::move(*joined), .stays = true});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("horo-agent %s\n", std::string(horo::version()).c_str());
    return horo::exit_code::kOk;
  }
  if (argc == 2 && std::strcmp(argv[1], "--mpi-rank") == 0) return serve_mpi_rank();
  if (argc != 1 || isatty(STDIN_FILENO) == 1) {
    std::fputs("horo-agent is started by horo run; it takes its orders from standard input\n",
               stderr);
    return horo::exit_code::kUsage;
  }
  return serve({.branches = horo::launcher::branches_by_ssh()});
}
