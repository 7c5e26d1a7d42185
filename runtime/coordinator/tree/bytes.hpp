// SPDX-License-Identifier: Apache-2.0
// Fields of a frame, one after the other: fixed numbers little endian, counts and ids as varints
// of seven bits a byte. What a Reader takes has one spelling only.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace horo::runtime::tree {

using BytesView = std::span<const std::uint8_t>;

class Writer {
 public:
  template <std::unsigned_integral T>
  Writer& fixed(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_.push_back(static_cast<char>(static_cast<std::uint8_t>(value >> (8U * i))));
    return *this;
  }

  Writer& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U)
      out_.push_back(static_cast<char>(static_cast<std::uint8_t>(value | 0x80U)));
    out_.push_back(static_cast<char>(static_cast<std::uint8_t>(value)));
    return *this;
  }

  Writer& real(double value) { return fixed(std::bit_cast<std::uint64_t>(value)); }

  Writer& text(std::string_view bytes) {
    varint(bytes.size());
    return raw(bytes);
  }

  Writer& raw(std::string_view bytes) {
    out_.append(bytes);
    return *this;
  }

  std::size_t size() const { return out_.size(); }

  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Takes fields off the front. After the first that does not fit, everything is zero and `good`
/// stays false, so that a decoder checks once.
class Reader {
 public:
  explicit Reader(BytesView bytes) : rest_(bytes) {}

  BytesView raw(std::uint64_t n) {
    if (n > rest_.size()) {
      refuse();
      return {};
    }
    const auto head = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(static_cast<std::size_t>(n));
    return head;
  }

  template <std::unsigned_integral T>
  T fixed() {
    std::uint64_t value = 0;
    std::size_t i = 0;
    for (const auto byte : raw(sizeof(T))) value |= std::uint64_t{byte} << (8U * i++);
    return static_cast<T>(value);
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      const std::uint64_t bits = byte & 0x7fU;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if ((byte & 0x80U) != 0) continue;
      if (byte == 0 && shift != 0) break;  // A longer spelling of the same number.
      return good_ ? value : 0;
    }
    refuse();
    return 0;
  }

  /// At most `most`.
  std::uint64_t varint(std::uint64_t most) {
    const auto value = varint();
    if (value <= most) return value;
    refuse();
    return 0;
  }

  /// How many elements follow, each of at least `least_bytes`: never more than there are bytes for.
  std::size_t count(std::size_t least_bytes = 1) {
    return static_cast<std::size_t>(varint(rest_.size() / least_bytes));
  }

  double real() { return std::bit_cast<double>(fixed<std::uint64_t>()); }

  std::string text(std::size_t most) {
    const auto bytes = raw(varint(most));
    return {bytes.begin(), bytes.end()};
  }

  bool good() const { return good_; }

  /// All fields fitted and nothing is left.
  bool finished() const { return good_ && rest_.empty(); }

  void refuse() {
    good_ = false;
    rest_ = {};
  }

 private:
  BytesView rest_;
  bool good_ = true;
};

}  // namespace horo::runtime::tree
