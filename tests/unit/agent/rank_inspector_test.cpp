// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_inspector.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "timeline/record/recorder.hpp"
#include "timeline/record/timeline_file.hpp"

using namespace horo;
using namespace horo::launcher;
using timeline::LiveState;

namespace {

/// This process plays a rank and its agent. A process has one recorder, which all cases share.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  std::shared_ptr<const RankTimeline> timeline;
  std::optional<RankInspector> lookout;
  std::vector<std::string> pieces;
  std::vector<Answer> answers;

  World() {
    static const auto shared = [] {
      AgentSpec spec;
      spec.ranks.resize(2);  // One of them records.
      return RankTimeline::make(spec);
    }();
    timeline = shared;
    REQUIRE(timeline);
    timeline::RankIdentity me{.rank = 5, .size = 8, .local_rank = 1, .pid = getpid()};
    me.set_job("unit");
    REQUIRE(timeline::Recorder::open(
        {.memory = UniqueFd(fcntl(timeline->descriptor(), F_DUPFD_CLOEXEC, 100)),
         .index = 1,
         .ring_memory = Bytes{1},
         .name_slots = 16,
         .identity = me}));
    lookout.emplace(*loop, timeline, [this](const Answer& answer) {
      answers.push_back(answer);
      if (const auto* piece = std::get_if<Piece>(&answer)) pieces.emplace_back(piece->bytes);
      loop->stop();
    });
  }

  static timeline::Recorder& recorder() { return *timeline::Recorder::current(); }

  static void submit(std::uint32_t id) { recorder().submit(0, TensorId{id}, recorder().now()); }

  template <typename A>
  A ask(const Question& question) {
    lookout->ask(question);
    loop->run();
    return std::get<A>(answers.back());
  }
};

}  // namespace

TEST_CASE("an inspector reports what each rank is doing") {
  World world;
  World::submit(3);
  const auto view = world.ask<Viewed>(Look{});
  CHECK(view.problem.empty());
  REQUIRE(view.rows.size() == 1);
  CHECK(view.rows[0].rank == 5);
  CHECK(view.rows[0].pid == getpid());
  CHECK(view.rows[0].state == LiveState::waits);
  CHECK(view.rows[0].tensor == "tensor 3");
}

TEST_CASE("an inspector tells which ranks compute on which GPU of the host") {
  setenv("HORO_NVML_LIBRARY", HORO_TEST_NVML, 1);
  setenv("HORO_NVML_STANDIN", fmt::format("gpus=2 pid1={}", getpid()).c_str(), 1);
  World world;
  World::submit(3);
  // The first answers may come before the library has started.
  Viewed view;
  const auto waits = [&view] {
    return view.gpu_problem.empty() || view.gpu_problem.find("not answered") != std::string::npos;
  };
  while (view.gpus.empty() && waits()) view = world.ask<Viewed>(Look{});
  REQUIRE(view.gpus.size() == 2);
  CHECK(view.gpus[0].ranks.empty());
  CHECK(view.gpus[1].ranks == std::vector<int>{5});
  CHECK(view.gpus[1].busy == 42);
  unsetenv("HORO_NVML_LIBRARY");
}

TEST_CASE("the pieces of a snapshot make up the whole file of each rank") {
  World world;
  for (std::uint32_t i = 0; i < 60; ++i) World::submit(i);
  auto piece = world.ask<Piece>(Fetch{.asker = 1, .offset = 0});
  REQUIRE(piece.problem.empty());
  std::string whole;
  for (;;) {
    whole += world.pieces.back();
    if (whole.size() >= piece.size || world.pieces.back().empty()) break;
    piece = world.ask<Piece>(Fetch{.asker = 1, .offset = whole.size()});
  }
  REQUIRE(whole.size() == piece.size);
  CHECK(whole.substr(0, 4) == std::string("\5\0\0\0", 4));
  std::size_t records = 0;
  timeline::FileParser parser({.about = [](const auto& about) { CHECK(about.identity.rank == 5); },
                               .name = [](const auto&) {},
                               .record = [&records](const auto&) { ++records; }});
  REQUIRE(parser.feed(std::string_view(whole).substr(12)));
  CHECK(parser.missing().empty());
  CHECK(records >= 60);
}

TEST_CASE("a viewer whose snapshot was replaced by another viewer gets an error") {
  World world;
  World::submit(1);
  CHECK(world.ask<Piece>(Fetch{.asker = 1, .offset = 0}).problem.empty());
  CHECK(world.ask<Piece>(Fetch{.asker = 2, .offset = 0}).problem.empty());
  const auto late = world.ask<Piece>(Fetch{.asker = 1, .offset = 100});
  CHECK_THAT(late.problem, Catch::Contains("another snapshot"));
}

TEST_CASE("an inspector that is destroyed during an inspection does not block") {
  World world;
  world.lookout->ask(Look{});
  world.lookout->ask(Fetch{});
  world.lookout.reset();
  CHECK(world.answers.empty());
}

TEST_CASE("a row is cut to the limits of an answer, between characters") {
  timeline::LiveRow row{.tensor = std::string(kMostTensorText - 1, 'x') + "\xc3\xa4",
                        .missing = std::vector<int>(100, 7)};
  bound(row);
  CHECK(row.tensor == std::string(kMostTensorText - 1, 'x'));
  CHECK(row.missing.size() == kMostMissing);
}
