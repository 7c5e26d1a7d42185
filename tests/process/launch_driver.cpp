// SPDX-License-Identifier: Apache-2.0
// A launcher without policy: launch_driver RANKS COMMAND..., prints "ready" when all ranks have
// said something, what they said, and the name of their control group. For tests that kill the
// launcher, and for measuring the agent alone.
#include "agent_job.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto loop = horo::test::make_loop();
  horo::test::Job job(*loop);
  const int ranks = std::atoi(argv[1]);
  auto spec = horo::test::spec_for(ranks, {argv + 2, argv + argc});
  if (const auto started = job.start(spec); !started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  job.run_until([&] { return job.out.size() == static_cast<std::size_t>(ranks); });
  std::printf("ready\n");
  for (const auto& [rank, text] : job.out) std::printf("%s\n", text.c_str());
  std::printf("group %s\n%s\n", job.control_group->path.c_str(), job.marker().c_str());
  std::fflush(stdout);
  if (!job.over()) job.run();
  for (const auto& [rank, exit] : job.exits) {
    if (exit.wait_status != 0) return 1;
  }
  return job.survivors == 0 ? 0 : 1;
}
