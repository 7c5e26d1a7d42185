// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/nccl/group.hpp"

#include <algorithm>
#include <utility>

#include "tests/software_device/nccl/plan.hpp"

namespace horo::software_nccl {

Group& Group::of_this_thread() {
  thread_local Group group;
  return group;
}

Group::~Group() {
  if (is_open()) Plan::instance().find("a thread ended between ncclGroupStart and ncclGroupEnd");
}

int Group::end() {
  if (depth_ == 0) {
    Plan::instance().find("ncclGroupEnd without ncclGroupStart");
    return kInvalidUsage;
  }
  if (--depth_ > 0) return kSuccess;
  const auto members = std::exchange(members_, {});
  int error = std::exchange(error_, kSuccess);
  for (const auto& member : members) {
    if (error != kSuccess) break;
    error = launch(member.communicator, member.stream, member.calls);
  }
  return error;
}

int Group::add(std::shared_ptr<Communicator> communicator, void* stream, const Call& call) {
  if (!is_open()) return launch(communicator, stream, {call});
  const auto known = std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return member.communicator == communicator;
  });
  if (known == members_.end()) {
    members_.push_back({std::move(communicator), stream, {call}});
    return kSuccess;
  }
  if (known->stream != stream) {
    Plan::instance().find("one communicator is used on two streams in one group");
    return fail(kInvalidUsage);
  }
  known->calls.push_back(call);
  return kSuccess;
}

int Group::fail(int error) {
  if (is_open() && error_ == kSuccess) error_ = error;
  return error;
}

bool Group::holds(const Communicator& communicator) const {
  return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
    return member.communicator.get() == &communicator;
  });
}

}  // namespace horo::software_nccl
