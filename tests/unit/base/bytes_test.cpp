// SPDX-License-Identifier: Apache-2.0
#include "base/codec/bytes.hpp"

#include <limits>
#include <vector>

#include <catch2/catch.hpp>

using horo::ByteReader;
using horo::ByteWriter;

TEST_CASE("fixed numbers are little endian and of the size of their type") {
  ByteWriter out;
  out.fixed<std::uint32_t>(0x01020304).fixed<std::int16_t>(-2).fixed<std::uint8_t>(9);
  CHECK(out.take() == std::string("\x04\x03\x02\x01\xfe\xff\x09"));
}

TEST_CASE("numbers at the ends of their range survive the wire") {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  ByteWriter out;
  out.fixed(kLeast).fixed(kMost).varint(0).varint(127).varint(128).varint(kMost).real(-0.5);
  const auto bytes = out.take();
  ByteReader in(bytes);
  CHECK(in.fixed<std::int64_t>() == kLeast);
  CHECK(in.fixed<std::uint64_t>() == kMost);
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, kMost})
    CHECK(in.varint() == number);
  CHECK(in.real() == -0.5);
  CHECK(in.finished());
}

TEST_CASE("a varint that is longer than necessary or than 64 bits is refused") {
  const std::vector<std::string> refused{std::string("\x80\x00", 2), std::string(10, '\xff'),
                                         std::string(9, '\xff') + '\x02', "\x80"};
  for (const auto& bytes : refused) {
    ByteReader in(bytes);
    CHECK(in.varint() == 0);
    CHECK_FALSE(in.good());
  }
}

TEST_CASE(
    "after the first field that does not fit everything is zero and the first problem stays") {
  ByteReader in(std::string_view("\x01\x02\x03"));
  CHECK(in.fixed<std::uint32_t>() == 0);
  CHECK(in.fixed<std::uint8_t>() == 0);
  CHECK(in.text(1).empty());
  in.refuse("later");
  in.blame("host");
  CHECK_FALSE(in.good());
  CHECK_FALSE(in.finished());
  CHECK(in.problem() == "host: ends too early");
}

TEST_CASE("a count that claims more elements than bytes are left is refused") {
  const std::string bytes(8, 'x');
  CHECK(ByteReader(bytes).count(2, 4) == 2);
  ByteReader in(bytes);
  CHECK(in.count(3, 4) == 0);
  CHECK(in.problem() == "3 entries do not fit in 8 bytes");
}

TEST_CASE("a size that is known only at the end can be put in front") {
  ByteWriter out(std::string("before"));
  const auto position = out.size();
  out.fixed<std::uint16_t>(0).raw("body");
  out.put_at(position, static_cast<std::uint16_t>(4));
  CHECK(out.take() == std::string("before\x04\0body", 12));
}
