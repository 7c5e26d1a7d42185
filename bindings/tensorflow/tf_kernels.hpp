// SPDX-License-Identifier: Apache-2.0
// The kernels of the module's ops, for tensors in the host's memory.
#pragma once

#include "bindings/tensorflow/status.hpp"

namespace horo::tensorflow {

/// Registers all kernels. They are asynchronous where TensorFlow has such kernels (from 2.13 on);
/// elsewhere a kernel blocks one of TensorFlow's threads. Fails: TensorFlow refuses one.
OpFailure register_kernels();

}  // namespace horo::tensorflow
