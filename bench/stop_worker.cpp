// SPDX-License-Identifier: Apache-2.0
// A rank of bench/stop. When all ranks run, rank 1 ends with exit code 1 and the others wait to be
// stopped.
//
//   bench_stop_worker obey|deaf DIRECTORY RANKS
//
// deaf ignores SIGTERM. Each rank creates DIRECTORY/ready.RANK. Rank 1 writes DIRECTORY/stamp with
// the time of its exit on the monotonic clock in nanoseconds.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <unistd.h>

#include "bench/mark_files.hpp"

namespace {

// No process stays after a failed measurement.
constexpr unsigned kLifeSeconds = 60;

int rank_from_environment() {
  for (const char* name :
       {"HORO_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "RANK"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = rank_from_environment();
  if (argc != 4 || rank < 0) {
    std::fputs("usage, under a launcher: bench_stop_worker obey|deaf DIRECTORY RANKS\n", stderr);
    return 2;
  }
  if (std::strcmp(argv[1], "deaf") == 0) std::signal(SIGTERM, SIG_IGN);
  const std::string directory = argv[2];
  alarm(kLifeSeconds);
  if (!horo::bench::write_mark(directory + "/ready." + std::to_string(rank), "")) return 3;
  if (rank != 1) {
    while (true) pause();
  }
  for (int other = 0; other < std::atoi(argv[3]); ++other) {
    const std::string path = directory + "/ready." + std::to_string(other);
    while (access(path.c_str(), F_OK) != 0) poll(nullptr, 0, 1);
  }
  const auto now = horo::bench::monotonic_ns();
  if (!horo::bench::write_mark(directory + "/stamp", std::to_string(now))) return 3;
  _exit(1);
}
