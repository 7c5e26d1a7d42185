// SPDX-License-Identifier: Apache-2.0
// ncclGroupStart and ncclGroupEnd: a thread's calls between them start together.
#pragma once

#include <memory>
#include <vector>

#include "tests/software_device/nccl/launch.hpp"

namespace horo::software_nccl {

/// Thread: its own.
class Group {
 public:
  static Group& of_this_thread();
  Group() = default;
  /// A thread that ends with a group open is found.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  bool is_open() const { return depth_ > 0; }

  void start() { ++depth_; }

  /// Starts what has been added, if it ends the outermost group. The result is ncclResult_t.
  int end();
  /// Adds a call, or starts it at once outside a group. The result is ncclResult_t.
  int add(std::shared_ptr<Communicator> communicator, void* stream, const Call& call);
  /// A call that failed makes the group's end fail, and nothing of it starts.
  int fail(int error);
  bool holds(const Communicator& communicator) const;

 private:
  struct Member {
    std::shared_ptr<Communicator> communicator;
    void* stream = nullptr;
    std::vector<Call> calls;
  };

  int depth_ = 0;
  int error_ = 0;
  std::vector<Member> members_;
};

}  // namespace horo::software_nccl
