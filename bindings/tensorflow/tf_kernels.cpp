// SPDX-License-Identifier: Apache-2.0
#include "bindings/tensorflow/tf_kernels.hpp"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "bindings/tensorflow/call.hpp"

namespace horo::tensorflow {

namespace {

template <horo_kind kind>
void* make(TF_OpKernelConstruction* construction) {
  Attributes attributes;
  const auto failure = Attributes::read(construction, kind, attributes);
  if (failure.is_ok()) return new Node(std::move(attributes));
  Status status;
  failure.store(status.get());
  api.TF_OpKernelConstruction_Failure(construction, status.get());
  return nullptr;
}

void destroy(void* kernel) {
  delete static_cast<Node*>(kernel);
}

/// `done` is the address of a std::function<void()> of TensorFlow, which is gone when this returns.
/// The call therefore keeps a copy. TensorFlow for Linux is built with libstdc++, as this module
/// is, and the layout of std::function has not changed there since 2011.
void compute_async(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
  auto copy = *reinterpret_cast<std::function<void()>*>(done);
  std::make_shared<Call>(*static_cast<Node*>(kernel), context, std::move(copy))->start();
}

void compute(void* kernel, TF_OpKernelContext* context) {
  std::promise<void> promise;
  auto& node = *static_cast<Node*>(kernel);
  std::make_shared<Call>(node, context, [&promise] { promise.set_value(); })->start();
  promise.get_future().wait();
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

void* make_place(TF_OpKernelConstruction* construction) {
  auto place = std::make_unique<Place>();
  Status status;
  char what[16] = {};
  api.TF_OpKernelConstruction_GetAttrString(construction, "what", what, sizeof what - 1,
                                            status.get());
  std::int64_t set = 0;
  if (status.ok())
    api.TF_OpKernelConstruction_GetAttrInt64(construction, "process_set", &set, status.get());
  if (!status.ok()) {
    api.TF_OpKernelConstruction_Failure(construction, status.get());
    return nullptr;
  }
  place->what = what;
  place->set = static_cast<horo_set>(set);
  return place.release();
}

void compute_place(void* kernel, TF_OpKernelContext* context) {
  const auto& place = *static_cast<const Place*>(kernel);
  const int number = place.number();
  Status status;
  if (number < 0 && (horo_is_initialized() == 0 || place.what == "set_size")) {
    const std::string message =
        horo_is_initialized() == 0 ? "horo is not initialised; call horo.init() first"
                                   : "process set " + std::to_string(place.set) + " does not exist";
    OpFailure::invalid(message).store(status.get());
    return api.TF_OpKernelContext_Failure(context, status.get());
  }
  const std::int64_t none = 0;
  const Tensor tensor(
      api.TF_AllocateOutput(context, 0, DataType::int32, &none, 0, sizeof(int), status.get()));
  if (!status.ok()) return api.TF_OpKernelContext_Failure(context, status.get());
  *static_cast<std::int32_t*>(api.TF_TensorData(tensor.get())) = number;
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
