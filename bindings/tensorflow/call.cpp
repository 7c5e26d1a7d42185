// SPDX-License-Identifier: Apache-2.0
#include "bindings/tensorflow/call.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <utility>

namespace horo::tensorflow {

namespace {

constexpr std::size_t kAttributesSize = offsetof(TF_AllocatorAttributes, on_host) + 1;

std::vector<std::int64_t> dims_of(const TF_Tensor* tensor) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < api.TF_NumDims(tensor); ++i) dims.push_back(api.TF_Dim(tensor, i));
  return dims;
}

Tensor input_of(TF_OpKernelContext* context, std::size_t i, OpFailure& failure) {
  Status status;
  TF_Tensor* tensor = nullptr;
  api.TF_GetInput(context, static_cast<int>(i), &tensor, status.get());
  if (!status.ok()) failure = OpFailure::of(status);
  return Tensor(tensor);
}

std::int64_t elements_of(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

Tensor allocate(TF_OpKernelContext* context, int index, DataType type,
                const std::vector<std::int64_t>& dims, std::size_t bytes, OpFailure& failure) {
  Status status;
  Tensor tensor(api.TF_AllocateOutput(context, index, type, dims.data(),
                                      static_cast<int>(dims.size()), bytes, status.get()));
  if (!status.ok()) failure = OpFailure::of(status);
  return tensor;
}

/// Writes `rows` as the output `index`, a vector.
template <typename Number>
OpFailure give_numbers(TF_OpKernelContext* context, std::size_t index, DataType type,
                       const std::vector<std::int64_t>& rows) {
  OpFailure failure;
  const auto tensor =
      allocate(context, static_cast<int>(index), type, {static_cast<std::int64_t>(rows.size())},
               rows.size() * sizeof(Number), failure);
  if (failure.is_ok()) {
    std::transform(rows.begin(), rows.end(), static_cast<Number*>(api.TF_TensorData(tensor.get())),
                   [](std::int64_t count) { return static_cast<Number>(count); });
  }
  return failure;
}

/// The ranks of a group have other members in it: its other operations may never complete.
bool others_may_never_complete(horo_status status) {
  horo_error_detail detail{};
  detail.size = sizeof detail;
  return status == HORO_MISMATCH && horo_last_error_detail(&detail) == HORO_OK &&
         detail.subject == HORO_SUBJECT_GROUP;
}

}  // namespace

Call::Call(Node& node, TF_OpKernelContext* context, std::function<void()> done)
    : node_(node),
      context_(context),
      done_(std::move(done)),
      parts_(node.size()),
      shapes_(node.size()),
      submissions_(node.size(), horo_submission HORO_SUBMISSION_INIT) {}

struct Call::Completion {
  std::shared_ptr<Call> call;
  std::size_t index;

  static void run(void* user, horo_op, horo_status status) {
    const std::unique_ptr<Completion> self(static_cast<Completion*>(user));
    self->call->completed(self->index, status);
  }
};

void Call::start() {
  OpFailure failure;
  try {
    failure = submit();
  } catch (const std::exception& error) {
    failure = thrown(error);
  }
  if (!failure.is_ok()) finish(failure);
}

/// Takes all memory before the operations begin: nothing throws while they use the tensors.
OpFailure Call::submit() {
  auto failure = prepare();
  if (!failure.is_ok()) return failure;
  std::vector<horo_op> ops(parts_.size());
  Completions completions;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    completions.push_back(std::make_unique<Completion>(Completion{shared_from_this(), i}));
  failure = node_.submit(shapes_, submissions_, ops.data());
  if (!failure.is_ok()) return failure;
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].op = ops[i];
  return follow(completions);
}

OpFailure Call::thrown(const std::exception& error) const noexcept {
  return OpFailure::of_exception(error, node_.attributes().names.front());
}

OpFailure Call::prepare() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (auto failure = prepare(i); !failure.is_ok()) return failure;
  }
  return node_.attributes().kind == HORO_ALLTOALL ? read_splits() : OpFailure{};
}

OpFailure Call::prepare(std::size_t i) {
  OpFailure failure;
  auto& part = parts_[i];
  part.input = input_of(context_, i, failure);
  if (!failure.is_ok()) return failure;
  const auto type = api.TF_TensorType(part.input.get());
  auto dims = dims_of(part.input.get());
  failure = Shape::of(type, dims, shapes_[i]);
  if (failure.is_ok()) failure = place_output(i, type, dims);
  if (!failure.is_ok()) return failure;
  submissions_[i].in = api.TF_TensorData(part.input.get());
  if (part.output != nullptr) submissions_[i].out = api.TF_TensorData(part.output.get());
  return failure;
}

OpFailure Call::read_splits() {
  OpFailure failure;
  const auto tensor = input_of(context_, parts_.size(), failure);
  if (!failure.is_ok()) return failure;
  const auto* const numbers = static_cast<const std::int64_t*>(api.TF_TensorData(tensor.get()));
  const auto count = elements_of(dims_of(tensor.get()));
  splits_.assign(numbers, numbers + count);
  if (!splits_.empty()) {
    submissions_[0].splits = splits_.data();
    submissions_[0].split_count = splits_.size();
  }
  return failure;
}

/// Gives the result of tensor i its memory: the input's own where TensorFlow lets us.
OpFailure Call::place_output(std::size_t i, DataType type, const std::vector<std::int64_t>& dims) {
  const auto& attributes = node_.attributes();
  if (attributes.collects_rows()) return make_room(i, type, dims);
  OpFailure failure;
  auto& part = parts_[i];
  const int index = static_cast<int>(i);
  if (attributes.kind == HORO_REDUCESCATTER) {
    const int ranks = horo_process_set_size(attributes.set);
    if (dims.empty() || ranks <= 0) return failure;  // the declaration says what is wrong
    auto own = dims;
    own[0] = dims[0] / ranks + (horo_process_set_rank(attributes.set) < dims[0] % ranks ? 1 : 0);
    const auto bytes = shapes_[i].row_bytes() * static_cast<std::size_t>(own[0]);
    part.output = allocate(context_, index, type, own, bytes, failure);
    return failure;
  }
  // TensorFlow forwards an input only when nobody else refers to it.
  part.input.reset();
  Status status;
  int forwarded = -1;
  part.output.reset(api.TF_ForwardInputOrAllocateOutput(context_, &index, 1, index, dims.data(),
                                                        static_cast<int>(dims.size()), &forwarded,
                                                        status.get()));
  if (!status.ok()) return OpFailure::of(status);
  part.input = input_of(context_, i, failure);
  return failure;
}

/// Offers memory for as many rows as the last time, so that in a steady state nothing is copied.
OpFailure Call::make_room(std::size_t i, DataType type, const std::vector<std::int64_t>& dims) {
  const auto rows = node_.last_rows(i);
  if (rows <= 0 || dims.empty()) return {};
  auto expected = dims;
  expected[0] = rows;
  TF_AllocatorAttributes attributes{.struct_size = kAttributesSize, .on_host = 1};
  Status status;
  parts_[i].output.reset(api.TF_AllocateTemp(context_, type, expected.data(),
                                             static_cast<int>(expected.size()), &attributes,
                                             status.get()));
  if (!status.ok()) return OpFailure::of(status);
  submissions_[i].out_bytes = shapes_[i].row_bytes() * static_cast<std::size_t>(rows);
  return {};
}

/// Has completed() called for each operation. Each completion keeps the call, and so the tensors'
/// memory, alive.
OpFailure Call::follow(Completions& completions) {
  open_ = parts_.size();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto status = horo_on_complete(parts_[i].op, Completion::run, completions[i].get());
    // A failure can only mean that the runtime has left the job and entered it again meanwhile.
    if (status != HORO_OK) return OpFailure::of_library(status);
    static_cast<void>(completions[i].release());
  }
  return {};
}

/// The failure of operation i, which becomes that of the call if it is the first.
OpFailure Call::noted(std::size_t i, horo_status status) {
  static_cast<void>(horo_poll(parts_[i].op));  // its error becomes this thread's last one
  OpFailure failure;
  try {
    failure = OpFailure::of_library(status);
    const MutexLock lock(mutex_);
    if (failure_.is_ok()) failure_ = failure;
  } catch (const std::exception& error) {
    failure = thrown(error);
    const MutexLock lock(mutex_);
    if (failure_.is_ok()) failure_.code = failure.code;
  }
  return failure;
}

void Call::completed(std::size_t i, horo_status status) {
  OpFailure failure;
  bool hopeless = false;
  if (status != HORO_OK) {
    failure = noted(i, status);
    hopeless = others_may_never_complete(status);
  }
  const bool last = open_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (hopeless) finish(failure);
  if (finished_) static_cast<void>(horo_release(parts_[i].op));
  if (!last || finished_) return;
  auto result = collect_all();
  for (const auto& part : parts_) static_cast<void>(horo_release(part.op));
  finish(result);
}

/// Sets all outputs, or returns the call's first failure.
OpFailure Call::collect_all() {
  try {
    auto result = first_failure();
    for (std::size_t k = 0; k < parts_.size() && result.is_ok(); ++k) result = collect(k);
    return result;
  } catch (const std::exception& error) {
    return thrown(error);
  }
}

OpFailure Call::first_failure() {
  const MutexLock lock(mutex_);
  return failure_;
}

/// Sets the outputs of tensor i from its completed operation.
OpFailure Call::collect(std::size_t i) {
  const auto& attributes = node_.attributes();
  if (!attributes.collects_rows()) return {};
  std::vector<std::int64_t> rows(
      static_cast<std::size_t>(std::max(horo_process_set_size(attributes.set), 0)));
  const void* data = nullptr;
  std::size_t bytes = 0;
  const auto status = horo_result(parts_[i].op, &data, &bytes, rows.data());
  if (status != HORO_OK) return OpFailure::of_library(status);
  auto& part = parts_[i];
  auto dims = dims_of(part.input.get());
  dims[0] = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  node_.keep_rows(i, dims[0]);
  OpFailure failure;
  if (part.output != nullptr && data == submissions_[i].out && bytes == submissions_[i].out_bytes) {
    Status set;
    api.TF_SetOutput(context_, static_cast<int>(i), part.output.get(), set.get());
    if (!set.ok()) failure = OpFailure::of(set);
  } else {
    const auto type = api.TF_TensorType(part.input.get());
    const auto output = allocate(context_, static_cast<int>(i), type, dims, bytes, failure);
    if (failure.is_ok() && bytes > 0) std::memcpy(api.TF_TensorData(output.get()), data, bytes);
  }
  return failure.is_ok() ? give_rows(i, rows) : failure;
}

OpFailure Call::give_rows(std::size_t i, const std::vector<std::int64_t>& rows) {
  const auto index = parts_.size() + i;
  if (node_.attributes().kind == HORO_ALLTOALL)
    return give_numbers<std::int32_t>(context_, index, DataType::int32, rows);
  return give_numbers<std::int64_t>(context_, index, DataType::int64, rows);
}

void Call::finish(const OpFailure& failure) {
  if (finished_.exchange(true)) return;
  if (failure.is_ok()) {
    // References that outlive this call would make the next node copy what it could change in
    // place.
    for (auto& part : parts_) {
      part.input.reset();
      part.output.reset();
    }
  } else {
    Status status;
    failure.store(status.get());
    api.TF_OpKernelContext_Failure(context_, status.get());
  }
  done_();
}

}  // namespace horo::tensorflow
