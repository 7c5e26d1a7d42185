// SPDX-License-Identifier: Apache-2.0
// One call of a handler by XLA, read from its frame, and the answers to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/jax/xla_ffi.hpp"
#include "horo/horo.h"

namespace horo::jax {

/// An error for XLA, which makes a JaxRuntimeError of it.
struct CallError {
  xla::XlaCode code = xla::XlaCode::internal;
  std::string message;
};

/// The calling thread's last error of libhoro as a CallError.
CallError last_failure(horo_status status);

/// The frame of a call. Memory: XLA's, valid during the call; buffers longer, see xla::Frame.
class XlaCall {
 public:
  explicit XlaCall(const xla::Frame& frame) : frame_(frame) {}

  /// Text of an attribute; empty when it is missing.
  std::string_view text(std::string_view name) const;

  /// Numbers of an attribute; nullptr when it is missing or has fewer than `count`.
  template <typename Number>
  const Number* numbers(std::string_view name, std::size_t count) const {
    const auto* array = static_cast<const xla::Array*>(find(name, xla::AttributeType::array));
    if (array == nullptr || array->size < count) return nullptr;
    return static_cast<const Number*>(array->data);
  }

  const xla::XlaBuffers& arguments() const { return frame_.arguments; }

  const xla::XlaBuffers& results() const { return frame_.results; }

  const xla::XlaApi& api() const { return *frame_.api; }

  /// A number that is the same in all calls of one execution of a program, and different in
  /// others. None before jaxlib 0.6.2.
  std::optional<std::int64_t> run() const;

  xla::ErrorObject* fail(const CallError& failure) const;

 private:
  const void* find(std::string_view name, xla::AttributeType type) const;

  const xla::Frame& frame_;
};

/// Answers XLA's question for the handler's version, and returns true; false for any other call.
bool answer_metadata(const xla::Frame& frame);

xla::ErrorObject* make_error(const xla::XlaApi& api, const CallError& failure);

/// One collective, as the attributes and buffers of its call describe it.
struct Collective {
  std::string name;
  horo_kind kind = HORO_ALLREDUCE;
  horo_reduce_op op = HORO_SUM;
  horo_set set = HORO_WORLD;
  int root = 0;
  int ranks = 0;  ///< Number of ranks of the process set when the program was traced.
  horo_wire_dtype wire = HORO_WIRE_DEFAULT;
  int feedback = 0;
  bool async = false;
  double prescale = 1.0;
  double postscale = 1.0;
  std::vector<std::string> parts;  ///< Names of the inputs; none: they have numbers.
  std::vector<const xla::Buffer*> inputs;
  std::vector<const xla::Buffer*> outputs;  ///< As many as inputs.

  /// One per input; a barrier is one operation, and its inputs only pass through.
  std::size_t operations() const { return kind == HORO_BARRIER ? 1 : inputs.size(); }

  /// The name of the i-th of several inputs, under the name of all.
  std::string member(const std::string& all, std::size_t i) const {
    return all + "." + (parts.empty() ? std::to_string(i) : parts[i]);
  }
};

/// Fails: with false and `failure` (jax and this module are of different versions).
bool read(const XlaCall& call, Collective& collective, CallError& failure);

/// The type by which libhoro knows the elements, for this operation. Unsigned integers of 32 and 64
/// bits travel as signed ones where that gives the same bits. Fails: with nothing.
std::optional<horo_dtype> dtype_of(xla::ElementType dtype, const Collective& collective);

std::size_t bytes_of(const xla::Buffer& buffer);

}  // namespace horo::jax
