// SPDX-License-Identifier: Apache-2.0
// Every operation of torch that has no kernel here runs as a kernel of the current stream: torch's
// own kernel for the host, in the stream's thread, over the device's memory. The caller does not
// wait. Torch's kernels for the device "meta" say what the results look like. Operations whose
// results depend on values, or for which torch has no such kernel, copy to the host and back.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <torch/library.h>

#include "tests/software_device/torch_device/torch_launch.hpp"

namespace horo::torch_device {

namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

/// Where a tensor of the device is among the arguments: `element` of a list, or -1.
struct Place {
  std::size_t argument = 0;
  std::int64_t element = -1;
};

/// The arguments of a call.
struct Call {
  std::vector<IValue> arguments;
  std::vector<Place> places;  ///< The places of `used`, in the same order.
  std::vector<Used> used;
  bool whole = true;  ///< False: there may be tensors among the arguments that are not in `used`.
};

/// Tensors that are not of the device are scalars of the host, which may change after the call.
Tensor kept(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  auto copied = tensor.clone();
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    copied.unsafeGetTensorImpl()->set_wrapped_number(true);
  return copied;
}

void add_tensor(Call& call, const Tensor& tensor, bool writes, Place place) {
  if (!is_here(tensor)) return;
  call.places.push_back(place);
  call.used.push_back({tensor, writes});
}

Call read(const c10::FunctionSchema& schema, const Stack& stack) {
  Call call;
  const auto count = schema.arguments().size();
  call.arguments.assign(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
  for (std::size_t a = 0; a < count; ++a) {
    auto& argument = call.arguments[a];
    const auto* const alias = schema.arguments()[a].alias_info();
    const bool writes = alias != nullptr && alias->isWrite();
    if (argument.isTensor()) {
      const auto tensor = argument.toTensor();
      add_tensor(call, tensor, writes, {.argument = a});
      if (!is_here(tensor)) argument = kept(tensor);
    } else if (argument.isTensorList()) {
      const auto list = argument.toTensorVector();
      for (std::size_t e = 0; e < list.size(); ++e)
        add_tensor(call, list[e], writes, {.argument = a, .element = static_cast<std::int64_t>(e)});
    } else if (argument.isDevice()) {
      argument = c10::Device(c10::kCPU);
    } else if (argument.isOptionalTensorList()) {
      call.whole = false;
    }
  }
  return call;
}

/// The arguments with other tensors in place of those of the device.
Stack with(const std::vector<IValue>& arguments, const std::vector<Place>& places,
           const std::vector<Tensor>& tensors) {
  Stack stack(arguments);
  for (std::size_t p = 0; p < places.size(); ++p) {
    auto& argument = stack[places[p].argument];
    if (places[p].element < 0) {
      argument = tensors[p];
      continue;
    }
    auto list = argument.toTensorVector();
    list[static_cast<std::size_t>(places[p].element)] = tensors[p];
    argument = list;
  }
  return stack;
}

/// The results of the call without their values; nothing where torch cannot tell.
std::optional<Stack> shapes_of(const c10::OperatorHandle& op, const Call& call) {
  std::vector<Tensor> like;
  for (const auto& [tensor, writes] : call.used) {
    like.push_back(
        at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta)));
  }
  try {
    auto stack = with(call.arguments, call.places, like);
    for (auto& argument : stack) {
      if (argument.isTensor() && argument.toTensor().defined() && argument.toTensor().is_cpu() &&
          argument.toTensor().dim() != 0)
        return {};
      if (argument.isDevice()) argument = c10::Device(c10::kMeta);
    }
    op.callBoxed(stack);
    return stack;
  } catch (const std::exception&) {
    return {};
  }
}

/// The arguments as the device's thread needs them: without tensors, which it must not own.
std::vector<IValue> without_tensors(const Call& call) {
  std::vector<Tensor> none(call.places.size());
  for (auto& tensor : none) tensor = at::empty({0});
  return with(call.arguments, call.places, none);
}

struct Result {
  std::vector<IValue> returned;
  std::vector<Tensor> made;
  std::vector<std::size_t> indices;  ///< The places of `made` among all results.
};

/// The argument that a return value is, as the schema says.
std::optional<std::size_t> argument_of(const c10::FunctionSchema& schema, std::size_t index) {
  const auto* const alias = schema.returns()[index].alias_info();
  if (alias == nullptr || !alias->isWrite()) return {};
  for (std::size_t a = 0; a < schema.arguments().size(); ++a) {
    const auto* const given = schema.arguments()[a].alias_info();
    if (given != nullptr && given->beforeSets() == alias->beforeSets()) return a;
  }
  return {};
}

Tensor make(const Tensor& like, c10::Device device) {
  return at::empty_strided(like.sizes(), like.strides(), like.options().device(device));
}

std::optional<Result> make_results(const c10::FunctionSchema& schema, const Call& call,
                                   const Stack& shapes, const Stack& given) {
  Result result;
  const auto device = call.used.front().tensor.device();
  const auto first = given.size() - schema.arguments().size();
  for (std::size_t r = 0; r < schema.returns().size(); ++r) {
    if (const auto argument = argument_of(schema, r)) {
      result.returned.push_back(given[first + *argument]);
      continue;
    }
    if (!shapes[r].isTensor()) return {};
    const auto like = shapes[r].toTensor();
    if (!like.defined()) {
      result.returned.emplace_back(like);
      continue;
    }
    result.made.push_back(make(like, device));
    result.indices.push_back(r);
    result.returned.emplace_back(result.made.back());
  }
  return result;
}

/// Whether outputs of an out= call keep their sizes: others are resized by the call on the host.
bool sizes_stay(const c10::FunctionSchema& schema, const Call& call, const Stack& shapes) {
  for (std::size_t r = 0; r < schema.returns().size(); ++r) {
    const auto argument = argument_of(schema, r);
    if (!argument || !shapes[r].isTensor()) continue;
    const auto& own = call.arguments[*argument];
    if (own.isTensor() && own.toTensor().sizes() != shapes[r].toTensor().sizes()) return false;
  }
  return true;
}

/// Whether an argument only receives a result.
bool is_out(const c10::FunctionSchema& schema, Place place) {
  const auto& argument = schema.arguments()[place.argument];
  const auto* const alias = argument.alias_info();
  return place.element < 0 && argument.kwarg_only() && alias != nullptr && alias->isWrite();
}

constexpr std::array<std::string_view, 6> kByValue{"aten::equal",    "aten::is_nonzero",
                                                   "aten::nonzero",  "aten::masked_select",
                                                   "aten::_unique2", "aten::allclose"};

bool run_on_stream(const c10::OperatorHandle& op, Stack* stack) {
  const auto& schema = op.schema();
  if (std::find(kByValue.begin(), kByValue.end(), schema.name()) != kByValue.end()) return false;
  auto call = read(schema, *stack);
  if (call.used.empty() || !call.whole) return false;
  const auto shapes = shapes_of(op, call);
  if (!shapes || !sizes_stay(schema, call, *shapes)) return false;
  auto result = make_results(schema, call, *shapes, *stack);
  if (!result) return false;
  auto used = call.used;
  for (const auto& made : result->made) used.push_back({made, true});
  launch(used, [op, arguments = without_tensors(call), places = call.places,
                indices = result->indices](std::vector<Tensor>& tensors) {
    auto given = tensors;
    // Some kernels resize their out= argument on the way, which memory of the device cannot be.
    for (std::size_t p = 0; p < places.size(); ++p) {
      if (is_out(op.schema(), places[p])) given[p] = at::empty({0}, tensors[p].options());
    }
    auto own = with(arguments, places, given);
    op.callBoxed(own);
    for (std::size_t p = 0; p < places.size(); ++p) {
      if (is_out(op.schema(), places[p])) tensors[p].copy_(given[p]);
    }
    for (std::size_t m = 0; m < indices.size(); ++m)
      tensors[places.size() + m].copy_(own[indices[m]].toTensor());
  });
  torch::jit::drop(*stack, schema.arguments().size());
  for (auto& returned : result->returned) stack->push_back(std::move(returned));
  return true;
}

void fallback(const c10::OperatorHandle& op, Stack* stack) {
  if (!run_on_stream(op, stack)) at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace

}  // namespace horo::torch_device
