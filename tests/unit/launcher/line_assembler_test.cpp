// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/line_assembler.hpp"

#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "launcher/output/line_mixer.hpp"

using namespace horo::launcher;

namespace {

/// Every piece as "body|end", with a '+' in front when it continues.
std::vector<std::string> pieces(const std::vector<std::string>& chunks) {
  LineAssembler lines;
  std::vector<std::string> found;
  const auto take = [&](const LinePiece& p) {
    std::string end(p.end);
    for (auto& c : end) c = c == '\n' ? 'n' : 'r';
    found.push_back(fmt::format("{}{}|{}", p.continues ? "+" : "", p.body, end));
  };
  for (const auto& chunk : chunks) lines.feed(chunk, take);
  lines.finish(take);
  return found;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a line ends with newline, carriage return or both") {
  CHECK(pieces({"a\nb\n"}) == Lines{"a|n", "b|n"});
  CHECK(pieces({"10%\r20%\rdone\n"}) == Lines{"10%|r", "20%|r", "done|n"});
  CHECK(pieces({"dos\r\nfile\r\n"}) == Lines{"dos|rn", "file|rn"});
  CHECK(pieces({"\n\n"}) == Lines{"|n", "|n"});
}

TEST_CASE("a line that arrives in parts is passed on as one") {
  CHECK(pieces({"he", "ll", "o\nwor", "ld\n"}) == Lines{"hello|n", "world|n"});
  CHECK(pieces({"na\xc3", "\xafve\n"}) == Lines{"na\xc3\xafve|n"});
}

TEST_CASE("the end of a stream flushes the unterminated rest without adding a newline") {
  CHECK(pieces({"a\nno end"}) == Lines{"a|n", "no end|"});
  CHECK(pieces({""}) == Lines{});
}

TEST_CASE("a newline that arrives apart from its carriage return belongs to the same line") {
  CHECK(pieces({"a\r", "\nb\n"}) == Lines{"a|r", "+|n", "b|n"});
  CHECK(pieces({"a\r", "b\n"}) == Lines{"a|r", "b|n"});
  CHECK(pieces({"a\r", "\r\n"}) == Lines{"a|r", "|rn"});
}

TEST_CASE("any split of the input gives the same text") {
  const std::string text = "one\ntwo\r\nthree\rfour\n\n\r\rfive\xe2\x82\xac\nsix";
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      LineAssembler lines;
      std::string out;
      const auto take = [&](const LinePiece& p) { (out += p.body) += p.end; };
      lines.feed(std::string_view(text).substr(0, a), take);
      lines.feed(std::string_view(text).substr(a, b - a), take);
      lines.feed(std::string_view(text).substr(b), take);
      lines.finish(take);
      REQUIRE(out == text);
    }
  }
}

TEST_CASE("a line without an end is passed on in pieces, cut between characters") {
  const std::string euro = "\xe2\x82\xac";
  std::string text = "x";
  while (text.size() < 3 * LineAssembler::kLongest) text += euro;
  text += "\n";
  for (const std::size_t chunk : {std::size_t{1000}, std::size_t{65536}, text.size()}) {
    LineAssembler lines;
    std::string out;
    int cuts = 0;
    bool first = true;
    const auto take = [&](const LinePiece& p) {
      REQUIRE(p.body.size() <= LineAssembler::kLongest + 3);
      CHECK(p.continues == !first);
      first = false;
      if (p.end.empty()) {
        ++cuts;
        CHECK((static_cast<unsigned char>(p.body.back()) & 0xc0U) ==
              0x80U);  // A character's last byte.
        CHECK(p.body.substr(p.body.size() - 3) == euro);
      }
      (out += p.body) += p.end;
    };
    for (std::size_t i = 0; i < text.size(); i += chunk)
      lines.feed(std::string_view(text).substr(i, chunk), take);
    CHECK(out == text);
    CHECK(cuts >= 2);
  }
}

TEST_CASE("the mixer gives each line its tag and no row two writers") {
  LineMixer mixer;
  std::string out;
  mixer.add(out, 0, "[0] ", {.body = "long", .end = {}});
  mixer.add(out, 0, "[0] ", {.body = "er", .end = {}, .continues = true});
  mixer.add(out, 1, "[1] ", {.body = "other", .end = "\n"});
  mixer.add(out, 0, "[0] ", {.body = "rest", .end = "\n", .continues = true});
  CHECK(out == "[0] longer\n[1] other\n[0] rest\n");
}

TEST_CASE("the mixer ends an open row before a text of the launcher") {
  LineMixer mixer;
  std::string out;
  mixer.end_row(out);
  CHECK(out.empty());
  mixer.add(out, 0, "[0] ", {.body = "no end", .end = {}});
  mixer.end_row(out);
  mixer.end_row(out);
  CHECK(out == "[0] no end\n");
}

TEST_CASE("the mixer drops a late newline when another line came between") {
  LineMixer mixer;
  std::string out;
  mixer.add(out, 0, "[0] ", {.body = "a", .end = "\r"});
  mixer.add(out, 1, "[1] ", {.body = "b", .end = "\n"});
  mixer.add(out, 0, "[0] ", {.body = {}, .end = "\n", .continues = true});
  CHECK(out == "[0] a\r[1] b\n");
}
