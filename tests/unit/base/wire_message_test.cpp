// SPDX-License-Identifier: Apache-2.0
#include "base/codec/wire_message.hpp"

#include <catch2/catch.hpp>

#include "base/clock.hpp"

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

enum class Colour : std::uint8_t { red = 1, green = 2 };

struct Point {
  int x = 0;
  std::uint32_t y = 0;
};

}  // namespace

template <>
struct horo::FieldsOf<Point> {
  static void visit(auto& field, auto& p) {
    field("x", p.x, wire::Fixed{});
    field("y", p.y, wire::Varint{.most = 9});
  }
};

namespace {

struct Line {
  std::string name;
  Colour colour = Colour::red;
  bool thick = false;
  std::vector<Point> points;
  std::string_view rest;

  static constexpr MessageRow kRow{7, "line"};

  static void fields(auto& field, auto& m) {
    field("name", m.name, wire::Text<std::uint16_t>{.most = 8, .nul_allowed = false});
    field("colour", m.colour, wire::Choice{Colour::red, Colour::green});
    field("thick", m.thick, wire::Bool{});
    field("points", m.points, wire::list_of<std::uint32_t>(wire::Fields{}, 5));
    field("rest", m.rest, wire::Rest{.most = 4});
  }

  static std::string_view check(const Line& m) {
    return m.points.size() == 1 ? "one point is no line" : "";
  }
};

struct Empty {
  static constexpr MessageRow kRow{2, "empty"};

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

struct Pass {
  std::array<std::uint8_t, 4> secret{};
  Duration age{};
  double speed = 0;
  bool first = false;
  bool second = false;

  static constexpr MessageRow kRow{3, "pass"};

  static void fields(auto& field, auto& m) {
    field("secret", m.secret, wire::Hidden{wire::Octets{}});
    field("age", m.age, wire::Nanoseconds{});
    field("speed", m.speed, wire::Figure{});
    field("flags", std::tie(m.first, m.second), wire::FlagBits{});
  }
};

using Message = std::variant<Empty, Line, Pass>;

std::string bytes_of(const Message& message) {
  ByteWriter out;
  write_message(out, message);
  return out.take();
}

std::string problem_of(std::uint32_t type, std::string_view bytes) {
  ByteReader in(bytes);
  const auto message = read_message<Message>(type, in);
  CHECK(message.has_value() == in.good());
  return in.problem();
}

const Line kLine{.name = "ab",
                 .colour = Colour::green,
                 .thick = true,
                 .points = {{-1, 3}, {5, 0}},
                 .rest = "tail"};

}  // namespace

TEST_CASE("a message survives the wire, and its bytes are its fields in order") {
  const auto bytes = bytes_of(kLine);
  CHECK(bytes == std::string("\2\0ab\2\1\2\0\0\0\xff\xff\xff\xff\3\5\0\0\0\0tail", 24));
  ByteReader in(bytes);
  const auto message = read_message<Message>(7, in);
  REQUIRE(message);
  CHECK(type_of(*message) == 7);
  CHECK(bytes_of(*message) == bytes);
  CHECK(std::get<Line>(*message).points[0].x == -1);
}

TEST_CASE("a refused message says which field does not fit and why") {
  const auto good = bytes_of(kLine);
  CHECK(problem_of(7, good).empty());
  CHECK(problem_of(7, good.substr(0, 3)) == "line: name: ends too early");
  CHECK(problem_of(7, good + "x") == "line: rest: 5 is more than 4");
  CHECK(problem_of(2, "x") == "empty: has bytes too many");
  CHECK(problem_of(9, good) == "type 9 is unknown");
  auto bad = good;
  bad[2] = '\0';
  CHECK(problem_of(7, bad) == "line: name: has a NUL byte");
  bad = good;
  bad[4] = 3;
  CHECK(problem_of(7, bad) == "line: colour: is not a known choice");
  bad = good;
  bad[5] = 2;
  CHECK(problem_of(7, bad) == "line: thick: is neither 0 nor 1");
  bad = good;
  bad[6] = 9;
  CHECK(problem_of(7, bad) == "line: points: 9 entries do not fit in 14 bytes");
  bad = good;
  bad[14] = 10;
  CHECK(problem_of(7, bad) == "line: points: y: 10 is more than 9");
}

TEST_CASE("fields that contradict each other are refused by the message's check") {
  CHECK(problem_of(7, bytes_of(Line{.points = {{1, 1}}})) == "line: one point is no line");
}

TEST_CASE("a message cut at any byte is refused") {
  for (const Message& message : {Message(Line{.name = "n"}), Message(Pass{})}) {
    const auto whole = bytes_of(message);
    for (std::size_t n = 0; n < whole.size(); ++n)
      CHECK_FALSE(problem_of(type_of(message), whole.substr(0, n)).empty());
  }
}

TEST_CASE("durations and figures are never negative, and unknown flags are refused") {
  CHECK(problem_of(3, bytes_of(Pass{.age = Duration(-1)})) == "pass: age: is a negative duration");
  CHECK(problem_of(3, bytes_of(Pass{.speed = -1})) == "pass: speed: is negative or not finite");
  auto bytes = bytes_of(Pass{.second = true});
  CHECK(problem_of(3, bytes).empty());
  CHECK(bytes.back() == 2);
  bytes.back() = 4;
  CHECK(problem_of(3, bytes) == "pass: flags: has an unknown flag");
}

TEST_CASE("a message is printed with the names of its fields and without its secrets") {
  CHECK(print_message(Message(Empty{})) == "empty");
  CHECK(print_message(Message(kLine)) ==
        "line name='ab' colour=2 thick=true points=[( x=-1 y=3 ), ( x=5 y=0 )] rest='tail'");
  CHECK(print_message(Message(Pass{.secret = {1, 2}, .age = Duration(5)})) ==
        "pass secret=(hidden) age=5 ns speed=0 flags=00");
}
