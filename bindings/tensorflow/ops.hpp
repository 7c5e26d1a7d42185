// SPDX-License-Identifier: Apache-2.0
// The definitions of the module's ops: their names, inputs, outputs, attributes and shapes.
#pragma once

#include "bindings/tensorflow/status.hpp"

namespace horo::tensorflow {

/// Registers all ops. Fails: TensorFlow refuses one.
OpFailure register_ops();

}  // namespace horo::tensorflow
