// SPDX-License-Identifier: Apache-2.0
#include "bindings/jax/xla_call.hpp"

#include <algorithm>

namespace horo::jax {

namespace {

/// The numbers of the attribute "spec", in this order (horo/jax/_ffi.py writes them).
enum Spec : std::size_t {
  kKind,
  kOp,
  kSet,
  kRoot,
  kRanks,
  kWire,
  kFeedback,
  kAsync,
  kCount,
  kSpec
};

xla::XlaCode code_of(horo_status status) {
  switch (status) {
    case HORO_INVALID_ARGUMENT:
      return xla::XlaCode::invalid_argument;
    case HORO_TIMED_OUT:
      return xla::XlaCode::deadline_exceeded;
    case HORO_OUT_OF_MEMORY:
    case HORO_RESOURCE_EXHAUSTED:
      return xla::XlaCode::resource_exhausted;
    case HORO_MISMATCH:
    case HORO_DUPLICATE:
    case HORO_NOT_INITIALIZED:
    case HORO_FORKED:
      return xla::XlaCode::failed_precondition;
    case HORO_PEER_LOST:
      return xla::XlaCode::unavailable;
    case HORO_SHUT_DOWN:
    case HORO_REMOVED:
    case HORO_CANCELLED:
      return xla::XlaCode::cancelled;
    case HORO_UNSUPPORTED:
      return xla::XlaCode::unimplemented;
    case HORO_OK:
    case HORO_NOT_FOUND:
    case HORO_UNAVAILABLE:
    case HORO_IO:
    case HORO_PROTOCOL:
    case HORO_PERMISSION_DENIED:
    case HORO_VERSION_MISMATCH:
    case HORO_IN_PROGRESS:
      return xla::XlaCode::internal;
  }
  return xla::XlaCode::unknown;
}

std::optional<horo_dtype> unsigned_as_signed(horo_dtype dtype, const Collective& collective) {
  const bool reduces = collective.kind == HORO_ALLREDUCE || collective.kind == HORO_REDUCESCATTER;
  const bool same_bits = collective.op == HORO_SUM || collective.op == HORO_PRODUCT;
  const bool scaled = collective.prescale != 1.0 || collective.postscale != 1.0;
  if (reduces && (!same_bits || scaled)) return std::nullopt;
  return dtype;
}

/// The lines of the text, if there is one for each of `count` inputs; else none.
std::vector<std::string> lines_of(std::string_view text, std::int64_t count) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (static_cast<std::int64_t>(lines.size()) != count) lines.clear();
  return lines;
}

}  // namespace

CallError last_failure(horo_status status) {
  const std::string status_name = horo_status_name(status);
  const std::string message = horo_last_error();
  return {.code = code_of(status), .message = "horo: " + status_name + ": " + message};
}

const void* XlaCall::find(std::string_view name, xla::AttributeType type) const {
  const auto& all = frame_.attributes;
  for (std::int64_t i = 0; i < all.count; ++i) {
    if (std::string_view(all.names[i]->data, all.names[i]->size) == name)
      return all.types[i] == type ? all.values[i] : nullptr;
  }
  return nullptr;
}

std::string_view XlaCall::text(std::string_view name) const {
  const auto* bytes = static_cast<const xla::Bytes*>(find(name, xla::AttributeType::string));
  return bytes == nullptr ? std::string_view() : std::string_view(bytes->data, bytes->size);
}

std::optional<std::int64_t> XlaCall::run() const {
  if (api().size < offsetof(xla::XlaApi, run_id) + sizeof(api().run_id)) return std::nullopt;
  xla::RunArguments arguments{
      .size = sizeof(arguments), .extensions = nullptr, .context = frame_.context, .run = 0};
  if (api().run_id(&arguments) != nullptr) return std::nullopt;
  return arguments.run;
}

xla::ErrorObject* XlaCall::fail(const CallError& failure) const {
  return make_error(api(), failure);
}

xla::ErrorObject* make_error(const xla::XlaApi& api, const CallError& failure) {
  xla::ErrorArguments arguments{.size = sizeof(arguments),
                                .extensions = nullptr,
                                .message = failure.message.c_str(),
                                .code = failure.code};
  return api.create_error(&arguments);
}

bool answer_metadata(const xla::Frame& frame) {
  if (frame.extensions == nullptr || frame.extensions->type != xla::kMetadataExtension)
    return false;
  auto& metadata = *reinterpret_cast<xla::MetadataExtension*>(frame.extensions)->metadata;
  metadata.version.major = xla::kVersionMajor;
  metadata.version.minor = xla::kVersionMinor;
  metadata.traits = 0;
  return true;
}

bool read(const XlaCall& call, Collective& collective, CallError& failure) {
  const auto* spec = call.numbers<std::int64_t>("spec", kSpec);
  const auto* scales = call.numbers<double>("scales", 2);
  const auto count = spec == nullptr ? 0 : spec[kCount];
  if (spec == nullptr || scales == nullptr || call.arguments().count < count ||
      call.results().count < count) {
    failure = {.code = xla::XlaCode::internal,
               .message =
                   "horo: the module horo-jax.so does not fit the Python package horo.jax; "
                   "install both from one release"};
    return false;
  }
  collective.name = call.text("name");
  collective.kind = static_cast<horo_kind>(spec[kKind]);
  collective.op = static_cast<horo_reduce_op>(spec[kOp]);
  collective.set = static_cast<horo_set>(spec[kSet]);
  collective.root = static_cast<int>(spec[kRoot]);
  collective.ranks = static_cast<int>(spec[kRanks]);
  collective.wire = static_cast<horo_wire_dtype>(spec[kWire]);
  collective.feedback = static_cast<int>(spec[kFeedback]);
  collective.async = spec[kAsync] != 0;
  collective.parts = lines_of(call.text("parts"), count);
  collective.prescale = scales[0];
  collective.postscale = scales[1];
  for (std::int64_t i = 0; i < count; ++i) {
    collective.inputs.push_back(call.arguments().buffers[i]);
    collective.outputs.push_back(call.results().buffers[i]);
  }
  return true;
}

std::optional<horo_dtype> dtype_of(xla::ElementType dtype, const Collective& collective) {
  switch (dtype) {
    case xla::ElementType::pred:
      return HORO_BOOL;
    case xla::ElementType::s8:
      return HORO_INT8;
    case xla::ElementType::s16:
      return HORO_INT16;
    case xla::ElementType::s32:
      return HORO_INT32;
    case xla::ElementType::s64:
      return HORO_INT64;
    case xla::ElementType::u8:
      return HORO_UINT8;
    case xla::ElementType::u16:
      return HORO_UINT16;
    case xla::ElementType::u32:
      return unsigned_as_signed(HORO_INT32, collective);
    case xla::ElementType::u64:
      return unsigned_as_signed(HORO_INT64, collective);
    case xla::ElementType::f16:
      return HORO_FLOAT16;
    case xla::ElementType::f32:
      return HORO_FLOAT32;
    case xla::ElementType::f64:
      return HORO_FLOAT64;
    case xla::ElementType::bf16:
      return HORO_BFLOAT16;
    case xla::ElementType::token:
      break;
  }
  return std::nullopt;
}

std::size_t bytes_of(const xla::Buffer& buffer) {
  std::size_t bytes = 0;
  switch (buffer.dtype) {
    case xla::ElementType::pred:
    case xla::ElementType::s8:
    case xla::ElementType::u8:
      bytes = 1;
      break;
    case xla::ElementType::s16:
    case xla::ElementType::u16:
    case xla::ElementType::f16:
    case xla::ElementType::bf16:
      bytes = 2;
      break;
    case xla::ElementType::s32:
    case xla::ElementType::u32:
    case xla::ElementType::f32:
      bytes = 4;
      break;
    case xla::ElementType::s64:
    case xla::ElementType::u64:
    case xla::ElementType::f64:
      bytes = 8;
      break;
    case xla::ElementType::token:
      return 0;
  }
  for (std::int64_t i = 0; i < buffer.rank; ++i) bytes *= static_cast<std::size_t>(buffer.dims[i]);
  return bytes;
}

}  // namespace horo::jax
