// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/frames/tensor_ids.hpp"

#include "runtime/tree/frames/frame_values.hpp"

namespace horo::runtime::tree {

namespace {

enum class Form : std::uint8_t { ranges = 0, bits = 1 };

std::string as_ranges(const std::vector<std::uint32_t>& ids) {
  ByteWriter writer;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) count += i == 0 || ids[i] != ids[i - 1] + 1 ? 1 : 0;
  writer.varint(count);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t end = i + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    writer.varint(ids[i] - at).varint(end - i - 1);
    at = std::uint64_t{ids[end - 1]} + 2;  // A gap of at least one.
    i = end;
  }
  return writer.take();
}

std::size_t bits_bytes(const std::vector<std::uint32_t>& ids) {
  return (ids.back() - ids.front()) / 8 + 1;
}

std::string as_bits(const std::vector<std::uint32_t>& ids) {
  std::string bits(bits_bytes(ids), '\0');
  for (const auto id : ids) {
    const auto at = id - ids.front();
    bits[at / 8] = static_cast<char>(static_cast<unsigned char>(bits[at / 8]) | 1U << (at % 8));
  }
  ByteWriter writer;
  writer.varint(ids.front()).varint(bits.size()).raw(bits);
  return writer.take();
}

/// The shorter one; ranges when both are equal.
std::pair<Form, std::string> spell(const std::vector<std::uint32_t>& ids) {
  auto ranges = as_ranges(ids);
  if (ids.empty() || bits_bytes(ids) >= ranges.size()) return {Form::ranges, std::move(ranges)};
  auto bits = as_bits(ids);
  if (bits.size() >= ranges.size()) return {Form::ranges, std::move(ranges)};
  return {Form::bits, std::move(bits)};
}

bool take_ranges(ByteReader& reader, std::vector<std::uint32_t>& ids) {
  std::uint64_t at = 0;
  const auto count = reader.count(reader.varint(), 2);
  for (std::size_t i = 0; i < count; ++i) {
    const auto first = at + reader.varint(kNoNumber);
    const auto size = 1 + reader.varint(kMostTensors);
    if (!reader.good() || first + size > kNoNumber || ids.size() + size > kMostTensors)
      return false;
    for (std::uint64_t k = 0; k < size; ++k) ids.push_back(static_cast<std::uint32_t>(first + k));
    at = first + size + 1;
  }
  return true;
}

bool take_bits(ByteReader& reader, std::vector<std::uint32_t>& ids) {
  const auto first = reader.varint(kNoNumber - 1);
  const auto bytes = reader.raw(reader.varint(kMostTensors / 8));
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    if ((bytes[i / 8] >> (i % 8) & 1U) == 0) continue;
    if (first + i >= kNoNumber) return false;
    ids.push_back(static_cast<std::uint32_t>(first + i));
  }
  return !bytes.empty() && bytes.back() != 0 && (bytes.front() & 1U) != 0;
}

}  // namespace

void put_ids(ByteWriter& writer, const std::vector<std::uint32_t>& ids) {
  const auto [form, bytes] = spell(ids);
  writer.fixed(static_cast<std::uint8_t>(form)).raw(bytes);
}

std::vector<std::uint32_t> take_ids(ByteReader& reader) {
  std::vector<std::uint32_t> ids;
  const auto form = reader.fixed<std::uint8_t>();
  const bool good = form == 0 ? take_ranges(reader, ids) : form == 1 && take_bits(reader, ids);
  if (!good || !reader.good() || static_cast<std::uint8_t>(spell(ids).first) != form) {
    reader.refuse("are not spelled as they should be");
    return {};
  }
  return ids;
}

}  // namespace horo::runtime::tree
