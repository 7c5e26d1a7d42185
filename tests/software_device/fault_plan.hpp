// SPDX-License-Identifier: Apache-2.0
// When a software device is slow and what it does wrong, as a text in HORO_SOFTWARE_DEVICE:
//
//   seed=7 delay=200 devices=2 fail=cuMemHostAlloc@3:2 async=12:719 hang=40 capturing=1 capture=1
//   cuda=12080 host=1 slow=copy:20000 slow=launch:500 drift=50
//
// `delay`: the longest usual pause before an operation of a stream, in microseconds. `fail`: the
// third call of that function returns CUDA's error 2; `@0` stands for every call, and without a
// number the error is 999. `async`: the 12th operation that runs breaks the device with error 719.
// `hang`: the 40th never ends. `capturing`: every stream is being captured to a graph. `capture`: a
// thread of the program captures a graph, in the mode that concerns all threads. `cuda`: the
// version for which the driver is, as cuDriverGetVersion returns it. `host`: a number that the
// UUIDs of the devices have, so that those of several hosts differ. `slow`: each copy, or each
// kernel, takes so many microseconds longer. `drift`: the device's clock, which timed events have,
// gains so many millionths.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace horo::software_device {

/// An error that the device returns at one moment, counted from 1; 0: never, or in a plan's calls
/// always.
struct PlannedError {
  std::uint64_t at = 0;
  int code = 0;
};

struct FaultPlan {
  std::uint64_t seed = 1;
  std::uint64_t delay_us = 0;
  std::uint64_t slow_copy_us = 0;
  std::uint64_t slow_launch_us = 0;
  std::int64_t drift_ppm = 0;
  int devices = 1;
  int host = 0;
  bool capturing = false;
  bool captures = false;
  int cuda = 13000;  ///< The version that the driver is for.
  std::map<std::string, PlannedError, std::less<>> calls;
  PlannedError async;
  std::uint64_t hang_at = 0;

  /// The pause before operation `number` of stream `stream`, always the same for one seed. One in
  /// eight is eight times as long as the longest usual one.
  std::uint64_t pause_us(std::uint64_t stream, std::uint64_t number) const;
};

/// Unknown words are an error: `fault` names the first.
FaultPlan parse_plan(std::string_view text, std::string& fault);

/// The devices that a process sees of `devices`, by CUDA_VISIBLE_DEVICES as its documentation says:
/// numbers or UUIDs (GPU-SOFTWARE-n); the first that there is not ends the list. Null: all.
std::vector<int> visible_devices(const char* variable, int devices);

}  // namespace horo::software_device
