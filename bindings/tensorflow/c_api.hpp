// SPDX-License-Identifier: Apache-2.0
// The part of TensorFlow's C API for ops and kernels that the module uses. The declarations are our
// own, so that the module is built without TensorFlow, and one build serves every TensorFlow from
// 2.12 on. The functions are looked up in the library that the process has loaded already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" {
struct TF_AsyncOpKernelDoneCallback;
struct TF_KernelBuilder;
struct TF_OpDefinitionBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_ShapeHandle;
struct TF_ShapeInferenceContext;
struct TF_Status;
struct TF_Tensor;

struct TF_AllocatorAttributes {
  std::size_t struct_size;
  unsigned char on_host;
};
}

namespace horo::tensorflow {

/// TF_DataType.
enum class DataType : int {
  float32 = 1,
  float64 = 2,
  int32 = 3,
  uint8 = 4,
  int16 = 5,
  int8 = 6,
  complex64 = 8,
  int64 = 9,
  boolean = 10,
  bfloat16 = 14,
  uint16 = 17,
  complex128 = 18,
  float16 = 19,
};

/// TF_Code: those that the module uses.
enum class Code : int {
  ok = 0,
  cancelled = 1,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  unimplemented = 12,
  internal = 13,
};

using Create = void* (*)(TF_OpKernelConstruction*);
using Compute = void (*)(void*, TF_OpKernelContext*);
using ComputeAsync = void (*)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*);
using Delete = void (*)(void*);
using InferShapes = void (*)(TF_ShapeInferenceContext*, TF_Status*);

// clang-format off
// X(name, result, parameters). TensorFlow 2.12 has all of them.
#define HORO_TF_FUNCTIONS(X)                                                                       \
  X(TF_NewStatus, TF_Status*, ())                                                                  \
  X(TF_DeleteStatus, void, (TF_Status*))                                                           \
  X(TF_SetStatus, void, (TF_Status*, Code, const char*))                                           \
  X(TF_SetPayload, void, (TF_Status*, const char*, const char*))                                   \
  X(TF_GetCode, Code, (const TF_Status*))                                                          \
  X(TF_Message, const char*, (const TF_Status*))                                                   \
  X(TF_DeleteTensor, void, (TF_Tensor*))                                                           \
  X(TF_TensorData, void*, (const TF_Tensor*))                                                      \
  X(TF_TensorType, DataType, (const TF_Tensor*))                                                   \
  X(TF_NumDims, int, (const TF_Tensor*))                                                           \
  X(TF_Dim, std::int64_t, (const TF_Tensor*, int))                                                 \
  X(TF_NewOpDefinitionBuilder, TF_OpDefinitionBuilder*, (const char*))                             \
  X(TF_OpDefinitionBuilderAddInput, void, (TF_OpDefinitionBuilder*, const char*))                  \
  X(TF_OpDefinitionBuilderAddOutput, void, (TF_OpDefinitionBuilder*, const char*))                 \
  X(TF_OpDefinitionBuilderAddAttr, void, (TF_OpDefinitionBuilder*, const char*))                   \
  X(TF_OpDefinitionBuilderSetIsStateful, void, (TF_OpDefinitionBuilder*, bool))                    \
  X(TF_OpDefinitionBuilderSetShapeInferenceFunction, void, (TF_OpDefinitionBuilder*, InferShapes)) \
  X(TF_RegisterOpDefinition, void, (TF_OpDefinitionBuilder*, TF_Status*))                          \
  X(TF_NewShapeHandle, TF_ShapeHandle*, ())                                                        \
  X(TF_DeleteShapeHandle, void, (TF_ShapeHandle*))                                                 \
  X(TF_ShapeInferenceContextNumInputs, std::int64_t, (TF_ShapeInferenceContext*))                  \
  X(TF_ShapeInferenceContextGetInput, void,                                                        \
    (TF_ShapeInferenceContext*, int, TF_ShapeHandle*, TF_Status*))                                 \
  X(TF_ShapeInferenceContextSetOutput, void,                                                       \
    (TF_ShapeInferenceContext*, int, TF_ShapeHandle*, TF_Status*))                                 \
  X(TF_ShapeInferenceContextScalar, TF_ShapeHandle*, (TF_ShapeInferenceContext*))                  \
  X(TF_ShapeInferenceContextVectorFromSize, TF_ShapeHandle*,                                       \
    (TF_ShapeInferenceContext*, std::size_t))                                                      \
  X(TF_ShapeInferenceContextRankKnown, int, (TF_ShapeInferenceContext*, TF_ShapeHandle*))          \
  X(TF_ShapeInferenceContextWithRankAtLeast, void,                                                 \
    (TF_ShapeInferenceContext*, TF_ShapeHandle*, std::int64_t, TF_ShapeHandle*, TF_Status*))       \
  X(TF_ShapeInferenceContextSubshape, void,                                                        \
    (TF_ShapeInferenceContext*, TF_ShapeHandle*, std::int64_t, std::int64_t, TF_ShapeHandle*,      \
     TF_Status*))                                                                                  \
  X(TF_ShapeInferenceContextConcatenateShapes, void,                                               \
    (TF_ShapeInferenceContext*, TF_ShapeHandle*, TF_ShapeHandle*, TF_ShapeHandle*, TF_Status*))    \
  X(TF_NewKernelBuilder, TF_KernelBuilder*, (const char*, const char*, Create, Compute, Delete))   \
  X(TF_RegisterKernelBuilder, void, (const char*, TF_KernelBuilder*, TF_Status*))                  \
  X(TF_OpKernelConstruction_Failure, void, (TF_OpKernelConstruction*, TF_Status*))                 \
  X(TF_OpKernelConstruction_GetAttrSize, void,                                                     \
    (TF_OpKernelConstruction*, const char*, std::int32_t*, std::int32_t*, TF_Status*))             \
  X(TF_OpKernelConstruction_GetAttrInt64, void,                                                    \
    (TF_OpKernelConstruction*, const char*, std::int64_t*, TF_Status*))                            \
  X(TF_OpKernelConstruction_GetAttrString, void,                                                   \
    (TF_OpKernelConstruction*, const char*, char*, std::size_t, TF_Status*))                       \
  X(TF_OpKernelConstruction_GetAttrStringList, void,                                               \
    (TF_OpKernelConstruction*, const char*, char**, std::size_t*, int, void*, std::size_t,         \
     TF_Status*))                                                                                  \
  X(TF_GetInput, void, (TF_OpKernelContext*, int, TF_Tensor**, TF_Status*))                        \
  X(TF_SetOutput, void, (TF_OpKernelContext*, int, const TF_Tensor*, TF_Status*))                  \
  X(TF_OpKernelContext_Failure, void, (TF_OpKernelContext*, TF_Status*))                           \
  X(TF_AllocateOutput, TF_Tensor*,                                                                 \
    (TF_OpKernelContext*, int, DataType, const std::int64_t*, int, std::size_t, TF_Status*))       \
  X(TF_AllocateTemp, TF_Tensor*,                                                                   \
    (TF_OpKernelContext*, DataType, const std::int64_t*, int, TF_AllocatorAttributes*, TF_Status*))\
  X(TF_ForwardInputOrAllocateOutput, TF_Tensor*,                                                   \
    (TF_OpKernelContext*, const int*, int, int, const std::int64_t*, int, int*, TF_Status*))

// TensorFlow has these from 2.13 on.
#define HORO_TF_OPTIONAL_FUNCTIONS(X)                                                              \
  X(TF_NewAsyncKernelBuilder, TF_KernelBuilder*,                                                   \
    (const char*, const char*, Create, ComputeAsync, Delete))

// clang-format on

/// TensorFlow's functions, by their names in its headers.
struct Api {
#define HORO_TF_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  HORO_TF_FUNCTIONS(HORO_TF_MEMBER)
  HORO_TF_OPTIONAL_FUNCTIONS(HORO_TF_MEMBER)
#undef HORO_TF_MEMBER

  /// Looks the functions up. Returns "" or what is missing.
  std::string load();
};

/// The functions of this process, after load(). Thread: immutable once the module is loaded.
extern Api api;

}  // namespace horo::tensorflow
