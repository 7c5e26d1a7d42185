// SPDX-License-Identifier: Apache-2.0
// What a software NCCL does wrong, as a text in HORO_SOFTWARE_NCCL:
//
//   fail=ncclAllReduce@2:1 async=3:6 hang=4 version=22809 remote=1 room=1 swap=2
//
// `fail`: the second call of that function returns ncclUnhandledCudaError; `@0` stands for every
// call. `async`: the third launch that runs breaks its communicator with error 6, as
// ncclCommGetAsyncError tells, and ends only when that is aborted. `hang`: the fourth ends only
// when its communicator is aborted. `remote`: a peer whose process has ended, or which has aborted,
// is error 6, as over a network; without it a launch hangs, as NCCL does within one host. `room`:
// so many launches of a device run at a time, as on a GPU whose processors they need; the others
// wait until one has ended, in no certain order. `swap`: the second launch starts behind the third,
// as in a program that starts them in another order than its peers. A launch is a group's calls on
// one communicator, or one call outside a group.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/software_device/fault_plan.hpp"

namespace horo::software_nccl {

// ncclResult_t
inline constexpr int kSuccess = 0;
inline constexpr int kUnhandledCudaError = 1;
inline constexpr int kInvalidArgument = 4;
inline constexpr int kInvalidUsage = 5;
inline constexpr int kRemoteError = 6;
inline constexpr int kInProgress = 7;

/// How a launch ends.
struct Fate {
  int async = kSuccess;
  bool hangs = false;
};

/// The plan of this process and what was found. Thread: any.
class Plan {
 public:
  static Plan& instance();

  bool set(std::string_view text);
  int version();
  bool peers_are_remote();
  /// Counts a launch that starts. True: it starts behind the next one.
  bool swaps();
  /// Launches that run on a device at a time; 0: any number.
  int room();

  /// The result that this call has by the plan.
  int begin_call(const char* name);
  /// Counts a launch that runs.
  Fate begin_launch();

  /// Findings are also written to standard error, so that a job's output has those of all ranks.
  void find(std::string finding);
  std::string findings(std::size_t& count);

 private:
  Plan();

  std::mutex mutex_;
  software_device::FaultPlan faults_;
  int version_ = 0;
  bool remote_ = false;
  int room_ = 0;
  std::uint64_t swap_at_ = 0;
  std::uint64_t starts_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> calls_;
  std::uint64_t launches_ = 0;
  std::vector<std::string> findings_;
};

}  // namespace horo::software_nccl
