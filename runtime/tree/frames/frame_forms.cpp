// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/frames/frame_forms.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace horo::runtime::tree {

namespace {

enum Flags : std::uint8_t {
  kScaled = 1,
  kRooted = 2,
  kDeep = 4,
  kRounded = 8,
  kOnDevice = 16,
  kKnownFlags = 31
};

int shown_dims(const Signature& s) {
  return std::min<int>(s.ndim, Signature::kDims);
}

/// Kind, op, dtype and dimensions, which are checked before anything that depends on them. Returns
/// the flags.
std::uint8_t take_head(ByteReader& in, Signature& s) {
  const auto kind = in.fixed<std::uint8_t>();
  const auto op = in.fixed<std::uint8_t>();
  const auto dtype = in.fixed<std::uint8_t>();
  s.ndim = in.fixed<std::uint8_t>();
  const auto flags = in.fixed<std::uint8_t>();
  if (name(static_cast<Kind>(kind)) == "unknown" || !is_reduce_op(op) || !is_dtype(dtype) ||
      flags > kKnownFlags || ((flags & kDeep) != 0) != (s.ndim > Signature::kDims)) {
    in.refuse("has an unknown kind, operation, type or flag");
    return 0;
  }
  s.kind = static_cast<Kind>(kind);
  s.op = static_cast<ReduceOp>(op);
  s.dtype = static_cast<DType>(dtype);
  s.memory = (flags & kOnDevice) != 0 ? MemoryKind::device : MemoryKind::host;
  return flags;
}

void take_wire(ByteReader& in, Signature& s) {
  const auto wire = in.fixed<std::uint8_t>();
  s.feedback = in.fixed<std::uint8_t>();
  if (wire == 0 || wire >= kWireDTypes || s.feedback > 1) {
    in.refuse("has an unknown type between hosts");
    return;
  }
  s.wire = static_cast<WireDType>(wire);
  if (!can_round_on_wire(s)) in.refuse("rounds what is not a sum of float32");
}

void take_extents(ByteReader& in, Signature& s, bool deep) {
  constexpr std::uint64_t kMostExtent = std::uint64_t{1} << 62U;
  for (int i = 0; i < shown_dims(s); ++i) {
    const auto extent = in.varint(kMostExtent);
    s.extents[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(extent);
    if (extent != 0 && std::max(s.elements, s.row_elements) > kMostElements / extent)
      in.refuse("has too many elements");
    s.elements *= extent;
    if (i > 0) s.row_elements *= extent;
  }
  if (!deep) return;
  s.elements = in.varint(kMostElements);
  s.row_elements = in.varint(kMostElements);
}

}  // namespace

void NameOrNumber::write(ByteWriter& out, const Written& tensor) {
  const auto& [name, number, again] = tensor;
  if (number != kNoNumber) {
    FrameText{}.write(out, "");
    out.varint(number);
  } else {
    FrameText{}.write(out, name);
    wire::Bool{}.write(out, again);
  }
}

void NameOrNumber::read(ByteReader& in, const Taken& tensor) {
  const auto& [name, number, again] = tensor;
  FrameText{.most = kMostNameBytes}.read(in, name);
  if (name.empty()) {
    wire::Varint{.most = kNoNumber - 1}.read(in, number);
  } else {
    wire::Bool{}.read(in, again);
  }
}

void WholeSignature::write(ByteWriter& out, const Signature& s) {
  const bool scaled = s.prescale != 1 || s.postscale != 1;
  const bool deep = s.ndim > Signature::kDims;
  out.fixed(static_cast<std::uint8_t>(s.kind))
      .fixed(static_cast<std::uint8_t>(s.op))
      .fixed(static_cast<std::uint8_t>(s.dtype))
      .fixed(s.ndim)
      .fixed(static_cast<std::uint8_t>((scaled ? kScaled : 0) | (s.root != 0 ? kRooted : 0) |
                                       (deep ? kDeep : 0) |
                                       (s.wire != WireDType::none ? kRounded : 0) |
                                       (s.memory == MemoryKind::device ? kOnDevice : 0)));
  if (scaled) out.real(s.prescale).real(s.postscale);
  if (s.root != 0) out.fixed(s.root);
  if (s.wire != WireDType::none) out.fixed(static_cast<std::uint8_t>(s.wire)).fixed(s.feedback);
  for (int i = 0; i < shown_dims(s); ++i)
    out.varint(static_cast<std::uint64_t>(s.extents[static_cast<std::size_t>(i)]));
  if (deep) out.varint(s.elements).varint(s.row_elements);
  out.fixed(s.extents_hash);
}

void WholeSignature::read(ByteReader& in, Signature& s) {
  s = {};
  const auto flags = take_head(in, s);
  if (!in.good()) return;
  if ((flags & kScaled) != 0) {
    s.prescale = in.real();
    s.postscale = in.real();
    if (s.prescale == 1 && s.postscale == 1) in.refuse("is scaled by 1");
  }
  if ((flags & kRooted) != 0) {
    s.root = in.fixed<std::int32_t>();
    if (s.root == 0) in.refuse("has root 0 spelled out");
  }
  if ((flags & kRounded) != 0) take_wire(in, s);
  take_extents(in, s, (flags & kDeep) != 0);
  s.extents_hash = in.fixed<std::uint64_t>();
}

void SignatureVariants::write(ByteWriter& out, const Variants& variants) {
  out.varint(variants.size());
  for (const auto& [declared, declarers] : variants) {
    wire::Bool{}.write(out, declared.has_value());
    if (declared) WholeSignature::write(out, *declared);
    Ranks::write(out, declarers);
  }
}

void SignatureVariants::read(ByteReader& in, Variants& variants) {
  const auto count = in.count(in.varint(), 3);
  for (std::size_t i = 0; i < count && in.good(); ++i) {
    std::optional<Signature> declared;
    bool has_signature = false;
    wire::Bool{}.read(in, has_signature);
    if (has_signature) WholeSignature::read(in, declared.emplace());
    auto declarers = take_ranks(in);
    if (declarers.empty()) in.refuse("have no ranks");
    if (!variants.empty() && !variants.key_comp()(variants.rbegin()->first, declared))
      in.refuse("do not ascend");
    variants.emplace_hint(variants.end(), declared, std::move(declarers));
  }
  if (variants.empty()) in.refuse("are none");
}

void RowRuns::write(ByteWriter& out, const std::vector<std::uint64_t>& rows) {
  std::size_t runs = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) runs += i == 0 || rows[i] != rows[i - 1] ? 1 : 0;
  out.varint(runs);
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i;
    while (end < rows.size() && rows[end] == rows[i]) ++end;
    out.varint(end - i).varint(rows[i]);
    i = end;
  }
}

void RowRuns::read(ByteReader& in, std::vector<std::uint64_t>& rows) {
  constexpr std::uint64_t kMostRows = std::uint64_t{1} << 24U;  // Limit per entry.
  const auto runs = in.count(in.varint(), 2);
  for (std::size_t i = 0; i < runs && in.good(); ++i) {
    const auto length = in.varint(kMostRows);
    const auto value = in.varint();
    if (length == 0 || rows.size() + length > kMostRows || (!rows.empty() && rows.back() == value))
      in.refuse("have a run of a wrong length");
    if (in.good()) rows.insert(rows.end(), static_cast<std::size_t>(length), value);
  }
}

}  // namespace horo::runtime::tree
