// SPDX-License-Identifier: Apache-2.0
// How one field of a message looks on the wire. A form is a value with two functions,
//   write(ByteWriter&, const T&)   and   read(ByteReader&, T&),
// and whatever read takes, write gives back byte for byte. A protocol may have forms of its own.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/codec/bytes.hpp"
#include "base/strong.hpp"

namespace horo::wire {

/// The number inside a Strong, or the number itself.
template <std::integral T>
constexpr T plain(T value) {
  return value;
}

template <typename Tag, typename T>
constexpr T plain(Strong<Tag, T> value) {
  return value.value();
}

/// A number of as many bytes as its C++ type has.
struct Fixed {
  template <typename T>
  void write(ByteWriter& out, const T& value) const {
    out.fixed(plain(value));
  }

  template <typename T>
  void read(ByteReader& in, T& value) const {
    value = T{in.fixed<decltype(plain(value))>()};
  }
};

/// A number as a varint, 0 to `most`.
struct Varint {
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  template <typename T>
  void write(ByteWriter& out, const T& value) const {
    out.varint(static_cast<std::uint64_t>(plain(value)));
  }

  template <typename T>
  void read(ByteReader& in, T& value) const {
    using Plain = decltype(plain(value));
    const auto limit = static_cast<std::uint64_t>(std::numeric_limits<Plain>::max());
    value = T{static_cast<Plain>(in.varint(std::min(most, limit)))};
  }
};

/// One byte: 0 or 1.
struct Bool {
  void write(ByteWriter& out, bool value) const { out.fixed<std::uint8_t>(value ? 1 : 0); }

  void read(ByteReader& in, bool& value) const {
    const auto byte = in.fixed<std::uint8_t>();
    if (byte > 1) in.refuse("is neither 0 nor 1");
    value = byte == 1;
  }
};

/// Several flags in one byte, the first in the lowest bit: field("flags", std::tie(m.a, m.b), ...).
struct FlagBits {
  template <typename... Flag>
  void write(ByteWriter& out, const std::tuple<Flag&...>& flags) const {
    unsigned byte = 0;
    unsigned bit = 1;
    const auto add = [&](bool flag) {
      byte |= flag ? bit : 0;
      bit <<= 1U;
    };
    std::apply([&](const auto&... flag) { (add(flag), ...); }, flags);
    out.fixed(static_cast<std::uint8_t>(byte));
  }

  template <typename... Flag>
  void read(ByteReader& in, const std::tuple<Flag&...>& flags) const {
    unsigned byte = in.fixed<std::uint8_t>();
    if (byte >= 1U << sizeof...(Flag)) in.refuse("has an unknown flag");
    const auto take = [&](bool& flag) {
      flag = (byte & 1U) != 0;
      byte >>= 1U;
    };
    std::apply([&](auto&... flag) { (take(flag), ...); }, flags);
  }
};

/// An enumerator from `least` to `most`, as a number of type Plain.
template <typename E, std::unsigned_integral Plain = std::uint8_t>
struct Choice {
  E least;
  E most;

  void write(ByteWriter& out, E value) const { out.fixed(static_cast<Plain>(value)); }

  void read(ByteReader& in, E& value) const {
    const auto number = in.fixed<Plain>();
    if (number < static_cast<Plain>(least) || number > static_cast<Plain>(most))
      return in.refuse("is not a known choice");
    value = static_cast<E>(number);
  }
};

template <typename E>
Choice(E, E) -> Choice<E>;

/// Nanoseconds, i64, never negative.
struct Nanoseconds {
  void write(ByteWriter& out, std::chrono::nanoseconds value) const {
    out.fixed(static_cast<std::int64_t>(value.count()));
  }

  void read(ByteReader& in, std::chrono::nanoseconds& value) const {
    const auto count = in.fixed<std::int64_t>();
    if (count < 0) return in.refuse("is a negative duration");
    value = std::chrono::nanoseconds(count);
  }
};

/// A double of any value.
struct Real {
  void write(ByteWriter& out, double value) const { out.real(value); }

  void read(ByteReader& in, double& value) const { value = in.real(); }
};

/// A double that is neither negative (nor -0) nor infinite nor no number.
struct Figure {
  void write(ByteWriter& out, double value) const { out.real(value); }

  void read(ByteReader& in, double& value) const {
    value = in.real();
    if (std::signbit(value) || !std::isfinite(value)) in.refuse("is negative or not finite");
  }
};

/// How the length of a text or the count of a list is written: a fixed number or a varint.
template <typename Size>
struct LengthForm {
  static void write(ByteWriter& out, std::size_t size) { out.fixed(static_cast<Size>(size)); }

  static std::uint64_t read(ByteReader& in) { return in.fixed<Size>(); }
};

struct VarintSize {};

template <>
struct LengthForm<VarintSize> {
  static void write(ByteWriter& out, std::size_t size) { out.varint(size); }

  static std::uint64_t read(ByteReader& in) { return in.varint(); }
};

/// Its length and the bytes, `least` to `most` of them. The writer does not check the bounds.
template <typename Size>
struct Text {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  bool nul_allowed = true;

  void write(ByteWriter& out, std::string_view text) const {
    LengthForm<Size>::write(out, text.size());
    out.raw(text);
  }

  template <typename String>
  void read(ByteReader& in, String& text) const {
    const auto size = LengthForm<Size>::read(in);
    if (size < least) in.refuse("is too short");
    text = in.text(in.at_most(size, most));
    if (!nul_allowed && text.find('\0') != String::npos) in.refuse("has a NUL byte");
  }
};

/// All bytes up to the end of the message, `most` at most. The field views the input.
struct Rest {
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  void write(ByteWriter& out, std::string_view bytes) const { out.raw(bytes); }

  void read(ByteReader& in, std::string_view& bytes) const {
    bytes = in.text(in.at_most(in.left(), most));
  }
};

/// A fixed number of bytes without a length.
struct Octets {
  template <std::size_t N>
  void write(ByteWriter& out, const std::array<std::uint8_t, N>& bytes) const {
    out.raw(BytesView(bytes));
  }

  template <std::size_t N>
  void read(ByteReader& in, std::array<std::uint8_t, N>& bytes) const {
    bytes.fill(0);
    std::ranges::copy(in.raw(N), bytes.begin());
  }
};

/// A count, `least` to `most`, and the elements. `least_bytes` is the size of the smallest element:
/// a count that claims more elements than the bytes left can hold is refused.
template <typename Size, typename Element>
struct List {
  Element element;
  std::size_t least_bytes = 1;
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

  template <typename T>
  void write(ByteWriter& out, const std::vector<T>& values) const {
    LengthForm<Size>::write(out, values.size());
    for (const auto& value : values) element.write(out, value);
  }

  template <typename T>
  void read(ByteReader& in, std::vector<T>& values) const {
    constexpr std::size_t kReserved = 4096;
    const auto claimed = LengthForm<Size>::read(in);
    if (claimed < least) in.refuse("has too few entries");
    const auto count = in.count(in.at_most(claimed, most), least_bytes);
    values.clear();
    values.reserve(std::min(count, kReserved));
    for (std::size_t i = 0; i < count && in.good(); ++i) element.read(in, values.emplace_back());
  }
};

template <typename Size, typename Element>
constexpr List<Size, Element> list_of(Element element, std::size_t least_bytes = 1) {
  return {.element = element, .least_bytes = least_bytes};
}

}  // namespace horo::wire
