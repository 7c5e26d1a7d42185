// SPDX-License-Identifier: Apache-2.0
// Times on a device, as a host sees them: many launches, then one wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/driver/driver_device.hpp"
#include "runtime/device/driver/shared_device.hpp"
#include "runtime/device/open_device.hpp"

namespace horo::bench {

/// Ends the program when something of the device fails.
template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "bench_gpu: %s\n", result.error().message.c_str());
  std::exit(1);
}

inline void must(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "bench_gpu: %s\n", status.error().message.c_str());
  std::exit(1);
}

/// A device, its kernels and a stream. HORO_GPU_DRIVER names the driver's file.
struct Bench {
  Bench()
      : gpu(open()),
        device(&gpu.device()),
        shared(must(runtime::SharedDevice::of(*device))),
        stream(must(device->make_stream())),
        event(must(device->make_event())) {}

  void wait() const {
    must(device->record(event, stream));
    while (!must(device->done(event))) {
    }
  }

  /// Microseconds of one of `launches` calls, which follow each other.
  double time(int launches, const std::function<void()>& launch) const {
    wait();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; ++i) launch();
    wait();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
               .count() /
           launches;
  }

  static std::unique_ptr<runtime::Device> open() {
    const char* const file = std::getenv("HORO_GPU_DRIVER");
    const auto* const driver =
        must(runtime::cuda::load_driver(file == nullptr ? runtime::cuda::kAutomatic : file));
    return must(runtime::open_driver_device(*driver, 0));
  }

  runtime::OpenDevice gpu;
  runtime::Device* device;  ///< That of gpu.
  runtime::SharedDevice shared;
  runtime::StreamHandle stream;
  runtime::EventHandle event;
};

/// The middle, the smallest and the largest of some figures.
struct Spread {
  explicit Spread(std::vector<double> figures) {
    std::sort(figures.begin(), figures.end());
    middle = figures[figures.size() / 2];
    least = figures.front();
    most = figures.back();
  }

  double middle = 0;
  double least = 0;
  double most = 0;
};

/// One line of JSON on standard output.
inline void report(const std::string& what, const std::string& unit, const Spread& spread) {
  std::printf(
      "{\"what\": \"%s\", \"unit\": \"%s\", \"middle\": %.4g, \"least\": %.4g, "
      "\"most\": %.4g}\n",
      what.c_str(), unit.c_str(), spread.middle, spread.least, spread.most);
  std::fflush(stdout);
}

void measure_packing(const std::string& workloads);
void measure_ipc();

}  // namespace horo::bench
