// SPDX-License-Identifier: Apache-2.0
// A rank of bench/hosts: sums until it learns that a rank is lost.
//
//   bench_loss_worker DIRECTORY BYTES
//
// Each rank R writes two files to DIRECTORY: pid.R when sums run, and heard.R when they have ended,
// with the time on the monotonic clock in nanoseconds and the error.
#include <cstdlib>
#include <unistd.h>
#include <vector>

#include <horo/horo.h>

#include "bench/mark_files.hpp"

namespace {

// No process stays after a failed measurement.
constexpr unsigned kLifeSeconds = 120;

int die(const char* what) {
  std::fprintf(stderr, "bench_loss_worker: %s: %s\n", what, horo_last_error());
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  const auto bytes = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (bytes < sizeof(float)) {
    std::fputs("usage, under horo run: bench_loss_worker DIRECTORY BYTES\n", stderr);
    return 2;
  }
  const std::string directory = argv[1];
  alarm(kLifeSeconds);
  if (horo_init() != HORO_OK) return die("horo_init");
  std::vector<float> values(bytes / sizeof(float));
  const auto extent = static_cast<std::int64_t>(values.size());
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = "sum";
  desc.ndim = 1;
  desc.shape = &extent;
  horo_tensor tensor{};
  if (horo_declare(&desc, &tensor) != HORO_OK) return die("horo_declare");
  const auto rank = std::to_string(horo_rank());
  for (bool first = true;; first = false) {
    horo_op operation{};
    auto status = horo_submit(tensor, values.data(), values.data(), &operation);
    if (status == HORO_OK) status = horo_wait(operation, -1);
    if (status == HORO_OK) {
      if (first && !horo::bench::write_mark(directory + "/pid." + rank, std::to_string(getpid())))
        return 3;
      continue;
    }
    const auto heard = std::to_string(horo::bench::monotonic_ns());
    const std::string words = horo_last_error();
    horo::bench::write_mark(directory + "/heard." + rank, heard + " " + words);
    return 1;
  }
}
