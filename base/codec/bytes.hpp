// SPDX-License-Identifier: Apache-2.0
// The bytes of messages between processes: numbers little endian, counts either of fixed size or as
// varints of seven bits a byte. The bytes that a ByteReader gets come from another process: every
// length is compared with the bytes that are left before anything is allocated for it.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace horo {

using BytesView = std::span<const std::uint8_t>;

inline BytesView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline std::string_view as_text(BytesView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Appends fields to a string. Thread: owner.
class ByteWriter {
 public:
  ByteWriter() = default;

  /// Continues `start`, so that a message can follow others in one buffer.
  explicit ByteWriter(std::string start) : out_(std::move(start)) {}

  /// Little endian, two's complement, as many bytes as T has.
  template <std::integral T>
  ByteWriter& fixed(T value) {
    return put_at(grow(sizeof(T)), value);
  }

  ByteWriter& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) out_.push_back(to_char(value | 0x80U));
    out_.push_back(to_char(value));
    return *this;
  }

  ByteWriter& real(double value) { return fixed(std::bit_cast<std::uint64_t>(value)); }

  ByteWriter& raw(std::string_view bytes) {
    out_.append(bytes);
    return *this;
  }

  ByteWriter& raw(BytesView bytes) { return raw(as_text(bytes)); }

  /// Overwrites a number that was written at `position`, such as a size that is known only later.
  template <std::integral T>
  ByteWriter& put_at(std::size_t position, T value) {
    const auto word = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i)
      out_[position + i] = to_char(static_cast<std::uint64_t>(word) >> (8U * i));
    return *this;
  }

  std::size_t size() const { return out_.size(); }

  std::string take() { return std::move(out_); }

 private:
  static char to_char(std::uint64_t value) {
    return static_cast<char>(static_cast<std::uint8_t>(value));
  }

  std::size_t grow(std::size_t n) {
    out_.resize(out_.size() + n);
    return out_.size() - n;
  }

  std::string out_;
};

/// Takes fields off the front of untrusted bytes. After the first field that does not fit, every
/// further field is zero or empty and good() stays false, so that a decoder checks once. Views
/// point into the bytes that the reader was made of. Thread: owner.
class ByteReader {
 public:
  explicit ByteReader(BytesView bytes) : rest_(bytes) {}

  explicit ByteReader(std::string_view bytes) : rest_(as_bytes(bytes)) {}

  BytesView raw(std::uint64_t n) {
    if (n > rest_.size()) {
      refuse("ends too early");
      return {};
    }
    const auto head = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(static_cast<std::size_t>(n));
    return head;
  }

  template <std::integral T>
  T fixed() {
    std::uint64_t value = 0;
    std::size_t i = 0;
    for (const auto byte : raw(sizeof(T))) value |= std::uint64_t{byte} << (8U * i++);
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(value));
  }

  /// Refuses every spelling of a number but the shortest.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      const std::uint64_t bits = byte & 0x7fU;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if ((byte & 0x80U) != 0) continue;
      if (byte == 0 && shift != 0) break;
      return good_ ? value : 0;
    }
    refuse("is not a number");
    return 0;
  }

  /// A number of at most `most`.
  std::uint64_t varint(std::uint64_t most) { return at_most(varint(), most); }

  /// Returns `value`, or refuses it and returns 0 when it is larger than `most`.
  std::uint64_t at_most(std::uint64_t value, std::uint64_t most) {
    if (value <= most) return value;
    refuse(std::to_string(value) + " is more than " + std::to_string(most));
    return 0;
  }

  /// A claimed number of elements of at least `least_bytes` each: refused when fewer bytes are left
  /// than they need. So memory for `count()` elements is no more than a multiple of what was sent.
  std::size_t count(std::uint64_t claimed, std::size_t least_bytes = 1) {
    if (claimed <= rest_.size() / least_bytes) return static_cast<std::size_t>(claimed);
    refuse(std::to_string(claimed) + " entries do not fit in " + std::to_string(rest_.size()) +
           " bytes");
    return 0;
  }

  double real() { return std::bit_cast<double>(fixed<std::uint64_t>()); }

  std::string_view text(std::uint64_t n) { return as_text(raw(n)); }

  bool good() const { return good_; }

  /// True if all fields fitted and nothing is left.
  bool finished() const { return good_ && rest_.empty(); }

  std::size_t left() const { return rest_.size(); }

  /// Why the bytes were refused, such as "host: ends too early"; empty while good().
  const std::string& problem() const { return problem_; }

  /// The first call counts; what follows reads as zero.
  void refuse(std::string_view problem) {
    if (good_) problem_ = problem;
    good_ = false;
    rest_ = {};
  }

  /// Puts the name of a field, or of what holds it, in front of the problem.
  void blame(std::string_view field) { problem_.insert(0, std::string(field) + ": "); }

 private:
  BytesView rest_;
  bool good_ = true;
  std::string problem_;
};

}  // namespace horo
