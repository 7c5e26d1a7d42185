// SPDX-License-Identifier: Apache-2.0
// No collective is marked as stateful: TensorFlow would run stateful nodes of a function one after
// the other. But TensorFlow computes a node that is not stateful, and whose inputs are constants,
// only while it prepares a graph. A rank may prepare a graph when the others do not, so each
// collective has an input `guard`, which comes from the stateful HoroPlace. Nothing reads its
// value.
#include "bindings/tensorflow/ops.hpp"

#include <memory>
#include <vector>

namespace horo::tensorflow {

namespace {

// The types that libhoro can move. TensorFlow refuses others with a message that names the type.
#define HORO_TF_TYPES                                                                           \
  "{uint8, int8, uint16, int16, int32, int64, half, bfloat16, float, double, bool, complex64, " \
  "complex128}"

struct DeleteShape {
  void operator()(TF_ShapeHandle* handle) const { api.TF_DeleteShapeHandle(handle); }
};

using ShapeHandle = std::unique_ptr<TF_ShapeHandle, DeleteShape>;

ShapeHandle input_shape(TF_ShapeInferenceContext* context, int i, TF_Status* status) {
  ShapeHandle shape(api.TF_NewShapeHandle());
  api.TF_ShapeInferenceContextGetInput(context, i, shape.get(), status);
  return shape;
}

ShapeHandle vector_shape(TF_ShapeInferenceContext* context) {
  constexpr auto kUnknown = static_cast<std::size_t>(-1);
  return ShapeHandle(api.TF_ShapeInferenceContextVectorFromSize(context, kUnknown));
}

void set_shape(TF_ShapeInferenceContext* context, std::int64_t i, const ShapeHandle& shape,
               TF_Status* status) {
  if (api.TF_GetCode(status) == Code::ok)
    api.TF_ShapeInferenceContextSetOutput(context, static_cast<int>(i), shape.get(), status);
}

/// The inputs but for the guard.
int tensors_of(TF_ShapeInferenceContext* context) {
  return static_cast<int>(api.TF_ShapeInferenceContextNumInputs(context)) - 1;
}

/// Each output has the shape of its input.
void same_shapes(TF_ShapeInferenceContext* context, TF_Status* status) {
  for (int i = 0; i < tensors_of(context); ++i)
    set_shape(context, i, input_shape(context, i, status), status);
}

/// Output i has other rows than input i.
void set_other_rows(TF_ShapeInferenceContext* context, int i, TF_Status* status) {
  auto shape = input_shape(context, i, status);
  if (api.TF_GetCode(status) != Code::ok) return;
  if (api.TF_ShapeInferenceContextRankKnown(context, shape.get()) != 0) {
    const ShapeHandle ranked(api.TF_NewShapeHandle());
    api.TF_ShapeInferenceContextWithRankAtLeast(context, shape.get(), 1, ranked.get(), status);
    if (api.TF_GetCode(status) != Code::ok) return;
    const ShapeHandle row(api.TF_NewShapeHandle());
    constexpr std::int64_t kEnd = INT64_MAX;
    api.TF_ShapeInferenceContextSubshape(context, shape.get(), 1, kEnd, row.get(), status);
    if (api.TF_GetCode(status) != Code::ok) return;
    const auto rows = vector_shape(context);
    api.TF_ShapeInferenceContextConcatenateShapes(context, rows.get(), row.get(), shape.get(),
                                                  status);
  }
  set_shape(context, i, shape, status);
}

void other_rows(TF_ShapeInferenceContext* context, TF_Status* status) {
  for (int i = 0; i < tensors_of(context); ++i) set_other_rows(context, i, status);
}

/// Outputs with other rows, then as many vectors.
void collected_rows(TF_ShapeInferenceContext* context, TF_Status* status) {
  const auto count = tensors_of(context);
  other_rows(context, status);
  for (auto i = count; i < 2 * count; ++i) set_shape(context, i, vector_shape(context), status);
}

void exchanged_rows(TF_ShapeInferenceContext* context, TF_Status* status) {
  set_other_rows(context, 0, status);
  set_shape(context, 1, vector_shape(context), status);
}

void scalar(TF_ShapeInferenceContext* context, TF_Status* status) {
  set_shape(context, 0, ShapeHandle(api.TF_ShapeInferenceContextScalar(context)), status);
}

using Words = std::vector<const char*>;

struct Definition {
  const char* name;
  Words inputs;
  Words outputs;
  Words attributes;
  InferShapes shapes;
  bool stateful = false;
};

constexpr const char* kTypes = "T: list(" HORO_TF_TYPES ") >= 1";
constexpr const char* kNames = "tensor_names: list(string) >= 1";
constexpr const char* kSet = "process_set: int = 0";
constexpr const char* kGrouped = "grouped: int = 0";

std::vector<Definition> reductions() {
  const Words attributes = {kTypes,
                            kNames,
                            kSet,
                            kGrouped,
                            "reduce_op: int = 0",
                            "prescale: string = '1'",
                            "postscale: string = '1'",
                            "wire_dtype: int = 0",
                            "wire_feedback: int = 0"};
  return {
      {.name = "HoroAllreduce",
       .inputs = {"tensors: T", "guard: int32"},
       .outputs = {"results: T"},
       .attributes = attributes,
       .shapes = same_shapes},
      {.name = "HoroReducescatter",
       .inputs = {"tensors: T", "guard: int32"},
       .outputs = {"results: T"},
       .attributes = attributes,
       .shapes = other_rows},
  };
}

std::vector<Definition> moves() {
  return {
      {.name = "HoroBroadcast",
       .inputs = {"tensors: T", "guard: int32"},
       .outputs = {"results: T"},
       .attributes = {kTypes, kNames, kSet, kGrouped, "root_rank: int"},
       .shapes = same_shapes},
      {.name = "HoroAllgather",
       .inputs = {"tensors: T", "guard: int32"},
       .outputs = {"results: T", "rows: N * int64"},
       .attributes = {kTypes, "N: int >= 1", kNames, kSet, kGrouped},
       .shapes = collected_rows},
      {.name = "HoroAlltoall",
       .inputs = {"tensor: T", "splits: int64", "guard: int32"},
       .outputs = {"result: T", "received_splits: int32"},
       .attributes = {"T: " HORO_TF_TYPES, kNames, kSet, kGrouped},
       .shapes = exchanged_rows},
      // Its value differs in the next generation of an elastic job, so it must not be computed
      // ahead.
      {.name = "HoroPlace",
       .inputs = {},
       .outputs = {"number: int32"},
       .attributes = {"what: string", kSet},
       .shapes = scalar,
       .stateful = true},
  };
}

OpFailure register_op(const Definition& op) {
  auto* const builder = api.TF_NewOpDefinitionBuilder(op.name);
  for (const auto* input : op.inputs) api.TF_OpDefinitionBuilderAddInput(builder, input);
  for (const auto* output : op.outputs) api.TF_OpDefinitionBuilderAddOutput(builder, output);
  for (const auto* attribute : op.attributes) api.TF_OpDefinitionBuilderAddAttr(builder, attribute);
  if (op.stateful) api.TF_OpDefinitionBuilderSetIsStateful(builder, true);
  api.TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, op.shapes);
  Status status;
  api.TF_RegisterOpDefinition(builder, status.get());
  return status.ok() ? OpFailure{} : OpFailure::of(status);
}

}  // namespace

OpFailure register_ops() {
  for (const auto& definitions : {reductions(), moves()}) {
    for (const auto& op : definitions) {
      if (auto failure = register_op(op); !failure.is_ok()) return failure;
    }
  }
  return {};
}

}  // namespace horo::tensorflow
