// SPDX-License-Identifier: Apache-2.0
// horo-agent supervises the ranks of one host. The launcher speaks to it over its standard input
// and output. With --dial-in, for a system that starts an agent per rank (mpirun, jsrun, ...), the
// agent connects to the launcher itself. Users do not call it.
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
#include "launcher/agent/refusal.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/ranks/rank_descriptors.hpp"
#include "launcher/starters/dial_in/dial_in.hpp"
#include "launcher/starters/tree/reached_agents.hpp"

namespace {

using horo::launcher::HostAgent;

/// Reports an error to the launcher, which reads our standard output.
int report(const horo::Error& error, const HostAgent::Options& options) {
  horo::launcher::refuse_to_start(STDOUT_FILENO, error, options.seals.get());
  return horo::exit_code::kFailure;
}

int supervise(const HostAgent::Options& options) {
  auto loop = horo::Loop::make();
  if (!loop) return report(loop.error(), options);
  const auto agent = HostAgent::make(**loop, options);
  if (!agent) return report(agent.error(), options);
  (*loop)->run();
  return (*agent)->exit_code();
}

int serve(HostAgent::Options options) {
  const auto descriptor_limit = horo::launcher::raise_descriptor_limit();
  if (!descriptor_limit) return report(descriptor_limit.error(), options);
  options.inheritance.descriptor_limit = *descriptor_limit;
  const auto held = horo::launcher::hold_rank_descriptors(options.inheritance.descriptors);
  if (!held) return report(held.error(), options);
  options.guard_pid = getpid();
  const auto code = horo::launcher::run_guarded(
      options.in, [&](const horo::launcher::AgentSurroundings& surroundings) {
        options.control_group = surroundings.control_group;
        options.replacements = surroundings.replacements;
        return supervise(options);
      });
  return code ? *code : report(code.error(), options);
}

int serve_dialled_in() {
  auto joined = horo::launcher::dial_in();
  if (!joined) {
    std::fprintf(stderr, "horo-agent: %s\n", joined.error().message.c_str());
    return horo::exit_code::kFailure;
  }
  return serve({.inheritance = std::move(joined->inheritance),
                .seals = std::move(joined->seals),
                .stays = true});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("horo-agent %s\n", std::string(horo::version()).c_str());
    return horo::exit_code::kOk;
  }
  if (argc == 2 && std::strcmp(argv[1], "--dial-in") == 0) return serve_dialled_in();
  if (argc != 1 || isatty(STDIN_FILENO) == 1) {
    std::fputs("horo-agent is started by horo run; it takes its orders from standard input\n",
               stderr);
    return horo::exit_code::kUsage;
  }
  return serve({.children = horo::launcher::child_agents_by_ssh()});
}
