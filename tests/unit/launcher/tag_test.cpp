// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/tag.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;

TEST_CASE("a prefix template fills in its fields") {
  const TagFields fields{.rank = Rank{7},
                         .local_rank = LocalRank{3},
                         .size = 8,
                         .host = "b",
                         .job = "j1",
                         .stream = Stream::err};
  CHECK(TagFormat::parse("[{rank}]<{stream}>:").value().render(fields, "") == "[7]<stderr>:");
  CHECK(TagFormat::parse("{host}/{local_rank} {rank}/{size} {job} {time} ")
            .value()
            .render(fields, "12:00") == "b/3 7/8 j1 12:00 ");
  CHECK(TagFormat::parse("{{{rank}}} ").value().render(fields, "") == "{7} ");
  CHECK(TagFormat::parse("").value().empty());
}

TEST_CASE("a template knows whether it needs the time") {
  CHECK(TagFormat::parse("{time}").value().timed());
  CHECK(!TagFormat::parse("{rank}").value().timed());
}

TEST_CASE("a wrong prefix template is refused, naming the known fields or the brace") {
  const auto unknown = TagFormat::parse("[{ranke}]");
  REQUIRE(!unknown);
  CHECK_THAT(unknown.error().message,
             Catch::Contains("{ranke}") && Catch::Contains("{local_rank}"));
  for (const auto* text : {"{rank", "rank}", "}{", "{"}) {
    INFO(text);
    const auto refused = TagFormat::parse(text);
    REQUIRE(!refused);
    CHECK_THAT(refused.error().message, Catch::Contains("has a single"));
  }
}

TEST_CASE("neighbouring ranks have different colours") {
  for (int r = 0; r < 20; ++r) CHECK(colour_of(Rank{r}) != colour_of(Rank{r + 1}));
}

TEST_CASE("lists of ranks are written and read") {
  CHECK(list_ranks({Rank{0}, Rank{1}, Rank{2}, Rank{5}, Rank{7}, Rank{8}}) == "0-2,5,7-8");
  CHECK(list_ranks({Rank{3}}) == "3");
  CHECK(parse_ranks("0,3-5", 6).value() == std::vector<bool>{true, false, false, true, true, true});
  for (const auto* text : {"", "6", "0,6", "3-9", "5-3", "-1", "a", "1,", "1,,2", "1-", "1 "}) {
    INFO(text);
    const auto wrong = parse_ranks(text, 6);
    REQUIRE(!wrong);
    CHECK_THAT(wrong.error().message, Catch::Contains("is not a rank in 0-5"));
  }
}
