// SPDX-License-Identifier: Apache-2.0
// A launch: the calls on one communicator that a group holds, as one operation of a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/software_device/nccl/software_communicator.hpp"
#include "tests/software_device/software_device.h"

namespace horo::software_nccl {

/// One call of a program.
struct Call {
  Operation what;
  bool receives = false;  ///< This rank is the receiver of the message.
  int peer = 0;           ///< The other rank of a message.
  const void* in = nullptr;
  void* out = nullptr;
};

/// Puts the calls on the stream. The result is ncclResult_t.
int launch(const std::shared_ptr<Communicator>& communicator, void* stream,
           std::vector<Call> calls);

}  // namespace horo::software_nccl
