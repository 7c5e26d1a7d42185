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

TEST_CASE("a wrong prefix template is refused with the known fields or the brace") {
  const auto unknown = TagFormat::parse("[{ranke}]");
  REQUIRE(!unknown);
  CHECK_THAT(unknown.error().message,
             Catch::Contains("{ranke}") && Catch::Contains("{local_rank}"));
  for (const auto* text : {"{rank", "rank}", "}{", "{"}) {
    INFO(text);
    const auto lone = TagFormat::parse(text);
    REQUIRE(!lone);
    CHECK_THAT(lone.error().message, Catch::Contains("lone"));
  }
}

TEST_CASE("neighbouring ranks have different colours") {
  for (int r = 0; r < 20; ++r) CHECK(colour_of(Rank{r}) != colour_of(Rank{r + 1}));
}
