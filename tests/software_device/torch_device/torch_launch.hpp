// SPDX-License-Identifier: Apache-2.0
// Work on tensors of the software device, as operations of its streams: the device's thread runs it
// on host tensors over the same memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <functional>
#include <vector>

namespace horo::torch_device {

/// A tensor that some work uses.
struct Used {
  at::Tensor tensor;
  bool writes = false;
};

/// Puts `run` on the current stream of the tensors' device: it gets host tensors in the order of
/// `used`. What it throws ends the process.
void launch(const std::vector<Used>& used, std::function<void(std::vector<at::Tensor>&)> run);

bool is_here(const at::Tensor& tensor);

}  // namespace horo::torch_device
