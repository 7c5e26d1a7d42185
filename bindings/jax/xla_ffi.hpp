// SPDX-License-Identifier: Apache-2.0
// The part of XLA's foreign function interface that the handlers use, declared here so that no
// header of jaxlib is needed. It is version 0.1 of XLA's C ABI: jaxlib 0.4.38 has that version, and
// later ones accept it. Structures carry their size, and later versions only append to them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace horo::jax::xla {

struct XlaApi;
struct ErrorObject;  ///< XLA's own.
struct Future;       ///< XLA's own.
struct Context;      ///< XLA's own.

inline constexpr int kVersionMajor = 0;
inline constexpr int kVersionMinor = 1;

struct Extension {
  std::size_t size;
  int type;
  Extension* next;
};

struct Version {
  std::size_t size;
  Extension* extensions;
  int major;
  int minor;
};

struct Metadata {
  std::size_t size;
  Version version;
  std::uint32_t traits;
};

inline constexpr int kMetadataExtension = 1;

/// XLA calls a handler once with this extension, to ask for its version.
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

enum class XlaCode : int {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  resource_exhausted = 8,
  failed_precondition = 9,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
};

/// The element types that jax has on a CPU. Others have other numbers.
enum class ElementType : int {
  pred = 1,
  s8 = 2,
  s16 = 3,
  s32 = 4,
  s64 = 5,
  u8 = 6,
  u16 = 7,
  u32 = 8,
  u64 = 9,
  f16 = 10,
  f32 = 11,
  f64 = 12,
  bf16 = 16,
  token = 17,
};

struct Buffer {
  std::size_t size;
  Extension* extensions;
  ElementType dtype;
  void* data;
  std::int64_t rank;
  std::int64_t* dims;
};

struct Bytes {
  const char* data;
  std::size_t size;
};

/// An attribute that is an array of numbers.
struct Array {
  ElementType dtype;
  std::size_t size;
  void* data;
};

/// Arguments and results. All are buffers in version 0.1.
struct XlaBuffers {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  int* types;
  Buffer** buffers;
};

enum class AttributeType : int { array = 1, dictionary = 2, scalar = 3, string = 4 };

/// Sorted by name.
struct XlaAttributes {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  AttributeType* types;
  Bytes** names;
  void** values;
};

enum class HandlerStage : int { instantiate = 0, prepare = 1, initialize = 2, execute = 3 };

/// One call of a handler. XLA keeps arguments, results and attributes until `future`, if the
/// handler sets it, is complete.
struct Frame {
  std::size_t size;
  Extension* extensions;
  const XlaApi* api;
  Context* context;
  HandlerStage stage;
  XlaBuffers arguments;
  XlaBuffers results;
  XlaAttributes attributes;
  Future* future;
};

struct ErrorArguments {
  std::size_t size;
  Extension* extensions;
  const char* message;
  XlaCode code;
};

struct FutureArguments {
  std::size_t size;
  Extension* extensions;
  Future* future;
};

struct FutureErrorArguments {
  std::size_t size;
  Extension* extensions;
  Future* future;
  ErrorObject* error;  ///< XLA takes it over.
};

struct RunArguments {
  std::size_t size;
  Extension* extensions;
  Context* context;
  std::int64_t run;
};

using NotUsed = void (*)();

struct XlaApi {
  std::size_t size;
  Extension* extensions;
  Version version;
  void* internal;
  ErrorObject* (*create_error)(ErrorArguments*);
  NotUsed not_used[12];
  ErrorObject* (*create_future)(FutureArguments*);
  ErrorObject* (*set_available)(FutureArguments*);
  ErrorObject* (*set_error)(FutureErrorArguments*);
  ErrorObject* (*run_id)(RunArguments*);  ///< From jaxlib 0.6.2 on; `size` says if it is there.
};

static_assert(sizeof(Frame) == 176 && offsetof(Frame, attributes) == 120);
static_assert(sizeof(Buffer) == 48 && sizeof(Version) == 24);
static_assert(offsetof(XlaApi, create_error) == 48 && offsetof(XlaApi, create_future) == 152);

}  // namespace horo::jax::xla
