// SPDX-License-Identifier: Apache-2.0
// Measures kernels and the backend ipc on device 0:
//
//   bench_gpu pack FILE    each line of the file: a name and the elements of each tensor
//   bench_gpu ipc
//
// One line of JSON per figure: the middle of the rounds and their spread. scripts/gpu-check runs
// it.
#include <string_view>

#include "bench/gpu/device_timing.hpp"

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "pack" && argc == 3) {
    horo::bench::measure_packing(argv[2]);
  } else if (what == "ipc" && argc == 2) {
    horo::bench::measure_ipc();
  } else {
    std::fprintf(stderr, "usage: bench_gpu pack FILE | ipc\n");
    return 2;
  }
  return 0;
}
