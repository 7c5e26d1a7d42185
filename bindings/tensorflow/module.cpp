// SPDX-License-Identifier: Apache-2.0
// Registers the ops and kernels when tf.load_op_library() loads the module.
#include <string>

#include "bindings/tensorflow/ops.hpp"
#include "bindings/tensorflow/tf_kernels.hpp"

namespace {

/// Nothing that runs from load() may use a global object with a constructor: it may not exist yet.
std::string& problem() {
  static std::string text;
  return text;
}

__attribute__((constructor)) void load() {
  problem() = horo::tensorflow::api.load();
  if (!problem().empty()) return;
  auto failure = horo::tensorflow::register_ops();
  if (failure.is_ok()) failure = horo::tensorflow::register_kernels();
  problem() = failure.message;
}

}  // namespace

extern "C" {

/// Why the module has registered nothing; "" if all is well. Memory: static. Thread: any.
__attribute__((visibility("default"))) const char* horo_tensorflow_problem() {
  return problem().c_str();
}

/// 1 if the kernels are asynchronous, else 0. Thread: any.
__attribute__((visibility("default"))) int horo_tensorflow_asynchronous() {
  return horo::tensorflow::api.TF_NewAsyncKernelBuilder != nullptr ? 1 : 0;
}
}
