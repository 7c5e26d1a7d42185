// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome/json_reader.hpp"

#include <algorithm>
#include <cstring>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::timeline;

namespace {

/// The JSON's content in one line: names before '=', texts between '|'.
bool flatten(JsonReader& json, std::string& to) {
  const char c = json.peek();
  if (c == '{') {
    return json.object([&](std::string_view name) {
      // Look at the value's first byte before using the name, which must outlive that.
      json.peek();
      to += std::string(name) + "=";
      return flatten(json, to);
    });
  }
  if (c == '[') return json.array([&] { return flatten(json, to); });
  std::string_view text;
  if (!json.scalar(text)) return false;
  to += std::string(text) + "|";
  return true;
}

struct Flat {
  bool whole = false;
  std::string text;
  std::string problem;
  std::uint64_t offset = 0;
};

Flat flat(std::string_view text, std::size_t piece) {
  std::size_t at = 0;
  const ByteSource source = [&](char* to, std::size_t room) -> Result<std::size_t> {
    const auto count = std::min({room, piece, text.size() - at});
    std::memcpy(to, text.data() + at, count);
    at += count;
    return count;
  };
  JsonReader json(source);
  Flat got;
  got.whole = flatten(json, got.text);
  got.problem = json.problem();
  got.offset = json.offset();
  return got;
}

}  // namespace

TEST_CASE("JSON is read in pieces of any size") {
  const std::string text =
      R"( {"a" : [1, -2.5e3, true, null, "x", "", NaN, -Infinity,], "longer name" :)"
      "\n\t"
      R"({"\u00e9\ud83d\ude00\n": "a\\b\"c\/", "c": {}}, "d": [], } )";
  const std::string wanted =
      "a=1|-2.5e3|true|null|x||NaN|-Infinity|longer name=\u00e9\U0001F600\n=a\\b\"c/|c=d=";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    INFO("pieces of " << piece);
    const auto got = flat(text, piece);
    REQUIRE(got.whole);
    CHECK(got.text == wanted);
  }
}

TEST_CASE("long texts are cut, and the rest of them is skipped") {
  const std::string most(JsonReader::kMostText, 'x');
  for (const std::size_t piece : {std::size_t{7}, std::size_t{1} << 20U}) {
    CHECK(flat("[\"" + most + "yz\", 1]", piece).text == most + "|1|");
    CHECK(flat("[\"" + most + "\\n\\u0041\", 1]", piece).text == most + "|1|");
    CHECK(flat("[\"\\n" + most + "\", 1]", piece).text == "\n" + most.substr(1) + "|1|");
  }
}

TEST_CASE("reading stops where the JSON is wrong, in pieces of any size") {
  struct Case {
    std::string_view text;
    std::string_view problem;
    std::uint64_t offset;
  };

  for (const auto& [text, problem, offset] :
       {Case{"[1 2]", "expected a comma or an end", 3}, Case{"[1,,2]", "no value", 3},
        Case{"[tru]", "no value", 4}, Case{"{\"a\" 1}", "a character is missing", 5},
        Case{"{1: 2}", "a member has no name", 1},
        Case{"[\"a\nb\"]", "a control character in a string", 3},
        Case{R"(["\x"])", "an unknown escape", 4},
        Case{R"(["\u12g4"])", "\\u needs four hexadecimal digits", 7}, Case{"[x]", "no value", 2},
        Case{"[\"a", "a string has no end", 3}}) {
    for (std::size_t piece = 1; piece <= text.size(); ++piece) {
      INFO(text << " in pieces of " << piece);
      const auto got = flat(text, piece);
      CHECK(got.whole == problem.empty());
      CHECK(got.problem == problem);
      CHECK(got.offset == offset);
    }
  }
  CHECK(flat(std::string(1000, '['), 100).problem == "too deep");
}

TEST_CASE("an error of the source is reported") {
  const ByteSource source = [](char*, std::size_t) -> Result<std::size_t> {
    return fail(Errc::io, "no disk");
  };
  JsonReader json(source);
  CHECK(json.peek() == '\0');
  REQUIRE_FALSE(json.status());
  CHECK(json.status().error().message == "no disk");
}
