// SPDX-License-Identifier: Apache-2.0
#include "bindings/tensorflow/tf_kernels.hpp"

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/tensorflow/call.hpp"

namespace horo::tensorflow {

namespace {

// No exception may leave a function that TensorFlow calls.

void fail(TF_OpKernelConstruction* construction, const OpFailure& failure) {
  Status status;
  failure.store(status.get());
  api.TF_OpKernelConstruction_Failure(construction, status.get());
}

void fail(TF_OpKernelContext* context, const OpFailure& failure) {
  Status status;
  failure.store(status.get());
  api.TF_OpKernelContext_Failure(context, status.get());
}

/// Makes a kernel; nullptr after a failure.
template <typename Made, typename Read>
void* made(TF_OpKernelConstruction* construction, Read read) {
  OpFailure failure;
  try {
    std::unique_ptr<Made> kernel;
    failure = read(kernel);
    if (failure.is_ok()) return kernel.release();
  } catch (const std::exception& error) {
    failure = OpFailure::of_exception(error, "making an op of Horo");
  }
  fail(construction, failure);
  return nullptr;
}

template <horo_kind kind>
void* make(TF_OpKernelConstruction* construction) {
  return made<Node>(construction, [construction](std::unique_ptr<Node>& node) {
    Attributes attributes;
    auto failure = Attributes::read(construction, kind, attributes);
    if (failure.is_ok()) node = std::make_unique<Node>(std::move(attributes));
    return failure;
  });
}

void destroy(void* kernel) {
  delete static_cast<Node*>(kernel);
}

OpFailure not_started(const Node& node, const std::exception& error) {
  return OpFailure::of_exception(error, node.attributes().names.front());
}

/// `done` is the address of a std::function<void()> of TensorFlow, which is gone when this returns.
/// The call therefore keeps a copy. TensorFlow for Linux is built with libstdc++, as this module
/// is, and the layout of std::function has not changed there since 2011.
void compute_async(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  auto& node = *static_cast<Node*>(kernel);
  const auto& theirs = *reinterpret_cast<std::function<void()>*>(done);
  std::shared_ptr<Call> call;
  try {
    call = std::make_shared<Call>(node, context, theirs);
  } catch (const std::exception& error) {
    fail(context, not_started(node, error));
    return theirs();
  }
  call->start();
}

void compute(void* kernel, TF_OpKernelContext* context) {
  auto& node = *static_cast<Node*>(kernel);
  try {
    std::promise<void> promise;
    const auto end = promise.get_future();
    std::make_shared<Call>(node, context, [&promise] { promise.set_value(); })->start();
    end.wait();
  } catch (const std::exception& error) {
    fail(context, not_started(node, error));
  }
}

template <horo_kind kind>
OpFailure register_kernel(const char* op) {
  const bool asynchronous = api.TF_NewAsyncKernelBuilder != nullptr;
  auto* const builder =
      asynchronous ? api.TF_NewAsyncKernelBuilder(op, "CPU", make<kind>, compute_async, destroy)
                   : api.TF_NewKernelBuilder(op, "CPU", make<kind>, compute, destroy);
  Status status;
  api.TF_RegisterKernelBuilder(op, builder, status.get());
  return status.ok() ? OpFailure{} : OpFailure::of(status);
}

// -- HoroPlace ------------------------------------------------------------------------------------

struct Place {
  std::string what;
  horo_set set = HORO_WORLD;

  int number() const {
    const std::string_view name = what;
    if (name == "rank") return horo_rank();
    if (name == "size") return horo_size();
    if (name == "local_rank") return horo_local_rank();
    if (name == "local_size") return horo_local_size();
    if (name == "set_size") return horo_process_set_size(set);
    return horo_process_set_rank(set);
  }
};

OpFailure read_place(TF_OpKernelConstruction* construction, Place& place) {
  Status status;
  char what[16] = {};
  api.TF_OpKernelConstruction_GetAttrString(construction, "what", what, sizeof what - 1,
                                            status.get());
  std::int64_t set = 0;
  if (status.ok())
    api.TF_OpKernelConstruction_GetAttrInt64(construction, "process_set", &set, status.get());
  place.what = what;
  place.set = static_cast<horo_set>(set);
  return status.ok() ? OpFailure{} : OpFailure::of(status);
}

void* make_place(TF_OpKernelConstruction* construction) {
  return made<Place>(construction, [construction](std::unique_ptr<Place>& place) {
    place = std::make_unique<Place>();
    return read_place(construction, *place);
  });
}

OpFailure give_place(const Place& place, TF_OpKernelContext* context) {
  const int number = place.number();
  if (number < 0 && horo_is_initialized() == 0)
    return OpFailure::invalid("horo is not initialised; call horo.init() first");
  if (number < 0 && place.what == "set_size")
    return OpFailure::invalid("process set " + std::to_string(place.set) + " does not exist");
  Status status;
  const std::int64_t none = 0;
  const Tensor tensor(
      api.TF_AllocateOutput(context, 0, DataType::int32, &none, 0, sizeof(int), status.get()));
  if (!status.ok()) return OpFailure::of(status);
  *static_cast<std::int32_t*>(api.TF_TensorData(tensor.get())) = number;
  return {};
}

void compute_place(void* kernel, TF_OpKernelContext* context) {
  OpFailure failure;
  try {
    failure = give_place(*static_cast<const Place*>(kernel), context);
  } catch (const std::exception& error) {
    failure = OpFailure::of_exception(error, "a number about this rank");
  }
  if (!failure.is_ok()) fail(context, failure);
}

OpFailure register_place() {
  auto* const builder =
      api.TF_NewKernelBuilder("HoroPlace", "CPU", make_place, compute_place,
                              [](void* kernel) { delete static_cast<Place*>(kernel); });
  Status status;
  api.TF_RegisterKernelBuilder("HoroPlace", builder, status.get());
  return status.ok() ? OpFailure{} : OpFailure::of(status);
}

}  // namespace

OpFailure register_kernels() {
  using Register = OpFailure (*)();
  constexpr Register kAll[] = {
      [] { return register_kernel<HORO_ALLREDUCE>("HoroAllreduce"); },
      [] { return register_kernel<HORO_REDUCESCATTER>("HoroReducescatter"); },
      [] { return register_kernel<HORO_BROADCAST>("HoroBroadcast"); },
      [] { return register_kernel<HORO_ALLGATHER>("HoroAllgather"); },
      [] { return register_kernel<HORO_ALLTOALL>("HoroAlltoall"); },
      register_place,
  };
  for (const auto& one : kAll) {
    if (auto failure = one(); !failure.is_ok()) return failure;
  }
  return {};
}

}  // namespace horo::tensorflow
