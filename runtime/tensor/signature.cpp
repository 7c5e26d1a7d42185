// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/signature.hpp"

#include <algorithm>
#include <limits>

namespace horo::runtime {

namespace {

std::string shape_text(const Signature& s) {
  std::string text = "[";
  const int shown = std::min<int>(s.ndim, Signature::kDims);
  for (int i = 0; i < shown; ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", s.extents[static_cast<std::size_t>(i)]);
  if (s.ndim > Signature::kDims) text += ", ...";
  return text + "]";
}

bool same_shape(const Signature& a, const Signature& b) {
  if (a.ndim != b.ndim || a.extents_hash != b.extents_hash) return false;
  const bool first_free = first_extent_is_free(a.kind);
  return std::equal(a.extents.begin() + (first_free ? 1 : 0), a.extents.end(),
                    b.extents.begin() + (first_free ? 1 : 0));
}

}  // namespace

void set_fusion_class(Signature& signature, std::string_view name) {
  if (signature.kind == Kind::broadcast) return;
  // FNV-1a: the same in every process. Two names with one hash fuse, which does no harm.
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  signature.root = static_cast<std::int32_t>(hash >> 1U | 1U);
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::allreduce:
      return "allreduce";
    case Kind::allgather:
      return "allgather";
    case Kind::broadcast:
      return "broadcast";
    case Kind::barrier:
      return "barrier";
    case Kind::join:
      return "join";
    case Kind::reducescatter:
      return "reducescatter";
    case Kind::alltoall:
      return "alltoall";
  }
  return "unknown";
}

bool is_possible(const Signature& s) {
  return s.kind <= Kind::join && is_dtype(static_cast<int>(s.dtype)) &&
         is_reduce_op(static_cast<int>(s.op)) && static_cast<int>(s.wire) < kWireDTypes &&
         s.feedback <= 1 && static_cast<int>(s.memory) < kMemoryKinds &&
         (s.wire == WireDType::none || can_round_on_wire(s)) && s.elements <= kMostElements &&
         s.row_elements <= kMostElements &&
         std::all_of(s.extents.begin(), s.extents.end(), [](auto extent) { return extent >= 0; });
}

Status set_shape(Signature& signature, std::span<const std::int64_t> shape) {
  if (shape.size() > 255)
    return fail(Errc::invalid_argument, "{} dimensions; at most 255 are allowed", shape.size());
  signature.ndim = static_cast<std::uint8_t>(shape.size());
  signature.elements = 1;
  signature.row_elements = 1;
  signature.extents = {};
  signature.extents_hash = 1469598103934665603ULL;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0)
      return fail(Errc::invalid_argument, "extent {} of dimension {} is negative", shape[i], i);
    const auto extent = static_cast<std::uint64_t>(shape[i]);
    if (extent != 0 &&
        std::max(signature.elements, i > 0 ? signature.row_elements : 0) > kMostElements / extent) {
      return fail(Errc::invalid_argument, "a shape of more than 2^56 elements");
    }
    signature.elements *= extent;
    if (i > 0) signature.row_elements *= extent;
    if (i < static_cast<std::size_t>(Signature::kDims)) signature.extents[i] = shape[i];
    if (i > 0) signature.extents_hash = (signature.extents_hash ^ extent) * 1099511628211ULL;
  }
  return {};
}

bool compatible(const Signature& a, const Signature& b) {
  return difference(a, b).subject == ErrorSubject::none;
}

Difference difference(const Signature& a, const Signature& b) {
  if (a.kind != b.kind)
    return {ErrorSubject::operation, std::string(name(a.kind)), std::string(name(b.kind))};
  if (moves_nothing(a.kind)) return {};
  if (a.memory != b.memory)
    return {ErrorSubject::memory, std::string(name(a.memory)), std::string(name(b.memory))};
  if (a.dtype != b.dtype)
    return {ErrorSubject::dtype, std::string(name(a.dtype)), std::string(name(b.dtype))};
  if (!same_shape(a, b)) return {ErrorSubject::shape, shape_text(a), shape_text(b)};
  if (a.kind == Kind::broadcast && a.root != b.root) {
    return {ErrorSubject::root_rank, std::to_string(a.root), std::to_string(b.root)};
  }
  if (!reduces(a.kind)) return {};
  if (a.op != b.op)
    return {ErrorSubject::reduce_op, std::string(name(a.op)), std::string(name(b.op))};
  if (a.prescale != b.prescale)
    return {ErrorSubject::prescale, fmt::format("{}", a.prescale), fmt::format("{}", b.prescale)};
  if (a.postscale != b.postscale)
    return {ErrorSubject::postscale, fmt::format("{}", a.postscale),
            fmt::format("{}", b.postscale)};
  if (a.wire != b.wire || a.feedback != b.feedback)
    return {ErrorSubject::wire_dtype, describe_wire(a), describe_wire(b)};
  return {};
}

std::string describe(const Signature& s) {
  if (moves_nothing(s.kind)) return std::string(name(s.kind));
  return fmt::format("{} of {} {}", name(s.kind), name(s.dtype), shape_text(s));
}

bool possible_with_joined(const Signature& s) {
  if (s.kind == Kind::barrier) return true;
  const bool adds = s.op == ReduceOp::sum || s.op == ReduceOp::average || s.op == ReduceOp::adasum;
  return s.kind == Kind::allreduce && (adds || s.prescale == 1);
}

MismatchReport joined_report(std::string_view tensor, const Signature& s, std::string_view joined,
                             int count) {
  return {.subject = ErrorSubject::joined,
          .text = fmt::format(
              "tensor '{}': {}{} is not possible while a rank has joined (rank{} {})", tensor,
              name(s.kind), s.kind == Kind::allreduce ? " with a prescale factor" : "",
              count > 1 ? "s" : "", joined)};
}

Status check_supported(const Signature& s) {
  if (s.ndim == 0 &&
      (s.kind == Kind::allgather || s.kind == Kind::alltoall || s.kind == Kind::reducescatter)) {
    return fail(Errc::invalid_argument, "{} of a scalar; give it one dimension", name(s.kind));
  }
  if (s.wire != WireDType::none && !can_round_on_wire(s)) {
    return fail(Errc::unsupported,
                "{}{} with wire_dtype {}; only the sum or average of float32 in an allreduce or a "
                "reducescatter is rounded between hosts, for others leave wire_dtype at none",
                describe(s), reduces(s.kind) ? fmt::format(" by {}", name(s.op)) : "",
                describe_wire(s));
  }
  if (!reduces(s.kind)) return {};
  if (s.dtype == DType::boolean && s.op != ReduceOp::min && s.op != ReduceOp::max) {
    return fail(Errc::unsupported,
                "{} of bool with {}; use min (logical and) or max (logical or), or convert to a "
                "number type",
                name(s.kind), name(s.op));
  }
  if (s.dtype == DType::boolean && (s.prescale != 1 || s.postscale != 1))
    return fail(Errc::unsupported, "scaling of bool; leave prescale and postscale at 1");
  if (s.op == ReduceOp::adasum && (!is_floating(s.dtype) || s.kind != Kind::allreduce)) {
    return fail(Errc::unsupported,
                "{} of {} with adasum; it is an allreduce of floating point, for others use "
                "average or sum",
                name(s.kind), name(s.dtype));
  }
  return {};
}

}  // namespace horo::runtime
