// SPDX-License-Identifier: Apache-2.0
// One execution of a node: it reads the inputs, submits the operations and sets the outputs when
// the last of them has completed.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "bindings/tensorflow/node.hpp"

namespace horo::tensorflow {

/// Owns a TF_Tensor, which is a reference to a tensor's memory.
struct DeleteTensor {
  void operator()(TF_Tensor* tensor) const { api.TF_DeleteTensor(tensor); }
};

using Tensor = std::unique_ptr<TF_Tensor, DeleteTensor>;

/// Thread: the one that starts it, then one that completes its last operation.
class Call : public std::enable_shared_from_this<Call> {
 public:
  /// `done` is called once, when `context` has its outputs or the failure. The context may be gone
  /// afterwards.
  Call(Node& node, TF_OpKernelContext* context, std::function<void()> done);

  /// Starts all operations. An exception in here ends the call as a failure. Blocks: no.
  void start();

 private:
  /// A tensor of the call: its memory, and its operation.
  struct Part {
    Tensor input;
    Tensor output;
    horo_op op = 0;
  };

  struct Completion;
  using Completions = std::vector<std::unique_ptr<Completion>>;

  OpFailure submit();
  OpFailure prepare();
  OpFailure prepare(std::size_t i);
  OpFailure read_splits();
  OpFailure place_output(std::size_t i, DataType type, const std::vector<std::int64_t>& dims);
  OpFailure make_room(std::size_t i, DataType type, const std::vector<std::int64_t>& dims);
  OpFailure follow(Completions& completions);
  void completed(std::size_t i, horo_status status);
  OpFailure noted(std::size_t i, horo_status status);
  OpFailure collect_all();
  OpFailure collect(std::size_t i);
  OpFailure give_rows(std::size_t i, const std::vector<std::int64_t>& rows);
  OpFailure first_failure();
  OpFailure thrown(const std::exception& error) const noexcept;
  void finish(const OpFailure& failure);

  Node& node_;
  TF_OpKernelContext* const context_;
  std::function<void()> done_;
  std::vector<Part> parts_;
  std::vector<Shape> shapes_;
  std::vector<horo_submission> submissions_;
  std::vector<std::int64_t> splits_;
  std::atomic<std::size_t> open_{0};  ///< operations that have not completed
  std::atomic<bool> finished_{false};
  Mutex mutex_;
  OpFailure failure_ HORO_GUARDED_BY(mutex_);  ///< The first one.
};

}  // namespace horo::tensorflow
