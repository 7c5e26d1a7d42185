// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/agreement/root_log.hpp"

#include <array>

#include <catch2/catch.hpp>

#include "runtime/tensor/mismatch_report.hpp"

using namespace horo;                 // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;        // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime::tree;  // NOLINT(google-build-using-namespace): a test of it

namespace {

constexpr int kRanks = 4;

Signature vector_of(std::int64_t count, Kind kind = Kind::allreduce) {
  Signature s{.kind = kind};
  const std::array shape{count};
  REQUIRE(set_shape(s, shape));
  return s;
}

struct Job {
  explicit Job(CutRules rules = {}) : root_log(SetId{}, RankRanges::of(0, kRanks), rules) {}

  void declare(const std::string& name, Variants variants) {
    SubtreeUpdate news;
    news.declared.push_back({.name = name, .variants = std::move(variants)});
    REQUIRE(root_log.add(std::move(news), now));
  }

  void declare(const std::string& name, const Signature& signature) {
    declare(name, {{signature, RankRanges::of(0, kRanks)}});
  }

  void ready(Ids ids) {
    SubtreeUpdate news;
    news.ready = std::move(ids);
    REQUIRE(root_log.add(std::move(news), now));
  }

  void ready_with_inputs(std::vector<CarriedTensor> tensors) {
    SubtreeUpdate news;
    news.carried = std::move(tensors);
    REQUIRE(root_log.add(std::move(news), now));
  }

  void leave(int rank) {
    SubtreeUpdate news;
    news.leaving = RankRanges::of(rank, 1);
    REQUIRE(root_log.add(std::move(news), now));
  }

  void join(int rank) {
    SubtreeUpdate news;
    news.joined = RankRanges::of(rank, 1);
    REQUIRE(root_log.add(std::move(news), now));
  }

  std::vector<LogEntry> cut() {
    std::vector<LogEntry> entries;
    root_log.cut(now, entries);
    return entries;
  }

  RootLog root_log;
  TimePoint now{};
};

}  // namespace

TEST_CASE("tensors that are ready together run together and are defined once") {
  Job job;
  job.declare("b", vector_of(4));
  job.declare("a", vector_of(4));
  const auto first = job.cut();
  REQUIRE(first.size() == 1);
  CHECK(first[0].ids == Ids{0, 1});
  REQUIRE(first[0].definitions.size() == 2);
  CHECK(first[0].definitions[0].name == "b");
  job.root_log.done(1);
  job.ready({0, 1});
  const auto second = job.cut();
  REQUIRE(second.size() == 1);
  CHECK(second[0].sequence == 1);
  CHECK(second[0].definitions.empty());
}

TEST_CASE("an entry carries the inputs of its tensors if all of them came with theirs") {
  Job job({.depth = 100});
  job.declare("b", vector_of(1));
  job.declare("a", vector_of(1));
  CHECK(job.cut().at(0).kind == LogKind::work);
  const std::string a(kRanks * sizeof(float), 'a'), b(kRanks * sizeof(float), 'b');
  job.ready_with_inputs({{.number = 1, .inputs = a}, {.number = 0, .inputs = b}});
  const auto both = job.cut();
  REQUIRE(both.size() == 1);
  CHECK(both[0].kind == LogKind::carried);
  CHECK(both[0].ids == Ids{0, 1});
  CHECK(both[0].inputs == std::vector<std::string>{b, a});
  job.ready({1});
  job.ready_with_inputs({{.number = 0, .inputs = b}});
  const auto one = job.cut();
  REQUIRE(one.size() == 1);
  CHECK(one[0].kind == LogKind::work);
  CHECK(one[0].ids == Ids{0, 1});
  CHECK(one[0].inputs.empty());
}

TEST_CASE("an entry carries no more than the logs of the hosts have room for") {
  Job job({.depth = 100, .most_words = 8});
  job.declare("a", vector_of(3));
  job.declare("b", vector_of(4));
  job.cut();
  job.ready_with_inputs({{.number = 0, .inputs = std::string(48, 'x')}});
  CHECK(job.cut().at(0).kind == LogKind::carried);
  job.ready_with_inputs({{.number = 1, .inputs = std::string(64, 'x')}});
  CHECK(job.cut().at(0).kind == LogKind::work);
}

TEST_CASE("an entry carries no inputs whose size is not that of all ranks' tensors") {
  Job job({.depth = 100});
  job.declare("a", vector_of(2));
  job.cut();
  for (const std::size_t bytes : {8U, 31U, 33U}) {
    job.ready_with_inputs({{.number = 0, .inputs = std::string(bytes, 'x')}});
    CHECK(job.cut().at(0).kind == LogKind::work);
  }
  job.ready_with_inputs({{.number = 0, .inputs = std::string(32, 'x')}});
  CHECK(job.cut().at(0).kind == LogKind::carried);
}

TEST_CASE("a new name takes the place of the least recently used one when the limit is reached") {
  Job job({.depth = 100, .most_names = 2});
  const auto number_of = [&job](const std::string& name) {
    job.declare(name, vector_of(4));
    const auto entries = job.cut();
    REQUIRE(entries.size() == 1);
    return entries[0].ids.at(0);
  };
  CHECK(number_of("a") == 0);
  CHECK(number_of("b") == 1);
  job.ready({0});
  CHECK(job.cut().at(0).ids == Ids{0});
  CHECK(number_of("c") == kMostTensors + 1);  // In b's place.
  CHECK(number_of("b") == kMostTensors);      // In a's, as a new name.
  job.ready({kMostTensors + 1});
  CHECK(job.cut().at(0).definitions.empty());
}

TEST_CASE("a name that waits for an entry is never evicted") {
  Job job({.fusion_threshold = 0, .depth = 1, .most_names = 1});
  for (const auto* name : {"a", "b", "c"}) job.declare(name, vector_of(4));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto entries = job.cut();
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].definitions.at(0).name == std::string(1, static_cast<char>('a' + i)));
    CHECK(entries[0].ids == Ids{i * kMostTensors});
    job.root_log.done(i + 1);
  }
}

TEST_CASE("no more entries are in flight than the depth allows") {
  Job job({.fusion_threshold = 0, .depth = 2});
  for (const auto* name : {"a", "b", "c"}) job.declare(name, vector_of(4));
  CHECK(job.cut().size() == 2);
  CHECK(job.cut().empty());
  job.root_log.done(1);
  CHECK(job.cut().size() == 1);
}

TEST_CASE("a mismatch ends one submission, and the last agreement still counts") {
  Job job;
  job.declare("x", vector_of(4));
  CHECK(job.cut().at(0).kind == LogKind::work);
  job.root_log.done(1);
  job.declare("x", {{std::nullopt, RankRanges::of(0, 3)}, {vector_of(5), RankRanges::of(3, 1)}});
  const auto entries = job.cut();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].kind == LogKind::mismatch);
  CHECK(entries[0].text.find("[4] on ranks 0-2, [5] on rank 3") != std::string::npos);
  job.root_log.done(2);
  job.ready({0});
  CHECK(job.cut().at(0).kind == LogKind::work);
}

TEST_CASE("an allgather's row counts come in the order of the ranks") {
  Job job;
  job.declare("g", {{vector_of(7, Kind::allgather), RankRanges::of(1, 2)},
                    {vector_of(2, Kind::allgather), RankRanges::of(0, 1)},
                    {vector_of(0, Kind::allgather), RankRanges::of(3, 1)}});
  CHECK(job.cut().at(0).rows == std::vector<std::uint64_t>{2, 7, 7, 0});
}

TEST_CASE("a join ends when the last rank has joined, after the tensors that were ready") {
  Job job({.depth = 1});
  job.declare("a", vector_of(4));
  CHECK(job.cut().size() == 1);
  job.declare("b", vector_of(4));
  for (const int rank : {2, 0, 3, 1}) job.join(rank);
  CHECK(job.cut().empty());
  job.root_log.done(1);
  CHECK(job.cut().at(0).kind == LogKind::work);
  job.root_log.done(2);
  CHECK(job.cut().empty());
}

TEST_CASE("an operation that needs the joined ranks is refused") {
  Job job;
  job.join(3);
  job.declare("g", {{vector_of(7, Kind::allgather), RankRanges::of(0, 3)}});
  const auto entries = job.cut();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].kind == LogKind::mismatch);
  CHECK(mismatch_report_of(entries[0].text).text ==
        "tensor 'g': allgather is not possible while a rank has joined (rank 3)");
}

TEST_CASE("a tensor is defined anew for ranks that have joined and are reported after it") {
  Job job;
  job.declare("x", vector_of(4));
  job.cut();
  job.root_log.done(1);
  job.declare("x", {{vector_of(5), RankRanges::of(0, 3)}});
  const auto entry = job.cut().at(0);
  REQUIRE(entry.definitions.size() == 1);
  CHECK(entry.definitions[0].id == 0);
  CHECK(entry.definitions[0].signature == vector_of(5));
  job.join(3);
  job.declare("x", vector_of(5));
  CHECK(job.cut().at(0).definitions.empty());  // All have it, whoever has joined since.
}

TEST_CASE("a rank that returns from a join is compared with the current signatures of the others") {
  Job job;
  job.declare("x", vector_of(4));
  job.cut();
  job.root_log.done(1);
  job.join(3);
  job.declare("x", {{vector_of(5), RankRanges::of(0, 3)}});
  CHECK(job.cut().at(0).kind == LogKind::work);
  job.root_log.done(2);
  for (const int rank : {0, 1, 2}) job.join(rank);
  CHECK(job.cut().at(0).kind == LogKind::join);
  job.root_log.done(3);
  job.ready({0});  // Nobody has changed: rank 3 says 4 as before, the others 5 as before.
  CHECK(job.cut().at(0).kind == LogKind::mismatch);
}

TEST_CASE("ranks leave after the tensors that they took part in") {
  Job job({.depth = 1});
  job.declare("a", vector_of(4));
  CHECK(job.cut().size() == 1);
  job.declare("b", vector_of(4));
  job.leave(1);
  CHECK(job.cut().empty());
  job.root_log.done(1);
  const auto entries = job.cut();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].kind == LogKind::work);
  CHECK(entries[1].kind == LogKind::left);
  CHECK(entries[1].ranks == RankRanges::of(1, 1));
  job.leave(1);
  CHECK(job.cut().empty());
}

TEST_CASE("a new tuning is an entry of its own, and the entries behind it follow it") {
  Job job({.depth = 3});
  job.declare("a", vector_of(4));
  job.declare("b", vector_of(4));
  job.root_log.change_tuning({.fusion_threshold = 1});
  job.root_log.change_tuning({.fusion_threshold = 0, .cycle_ns = 7});  // In place of the first.
  const auto change = job.cut();
  REQUIRE(change.size() == 1);
  CHECK(change[0].kind == LogKind::tuning);
  CHECK(change[0].tuning == Tuning{.fusion_threshold = 0, .cycle_ns = 7});
  for (int i = 0; i < 2; ++i) {
    job.now += Duration(7);
    const auto entries = job.cut();
    REQUIRE(entries.size() == 1);
    CHECK(entries[0].ids.size() == 1);
  }
  job.root_log.change_tuning({});
  CHECK(job.cut().empty());  // As many entries as the depth allows are in flight.
  job.root_log.done(1);
  CHECK(job.cut().at(0).kind == LogKind::tuning);
}

TEST_CASE("with a cycle time an entry waits for more tensors") {
  Job job({.cycle = std::chrono::milliseconds(1)});
  job.declare("a", vector_of(4));
  CHECK(job.cut().empty());
  CHECK(job.root_log.next_cut() == job.now + std::chrono::milliseconds(1));
  job.declare("b", vector_of(4));
  job.now += std::chrono::milliseconds(1);
  CHECK(job.cut().at(0).ids == Ids{0, 1});
}

TEST_CASE("a tensor that was never agreed on cannot be declared as agreed") {
  Job job;
  SubtreeUpdate news;
  news.declared.push_back({.name = "x", .variants = {{std::nullopt, RankRanges::of(0, kRanks)}}});
  const auto status = job.root_log.add(std::move(news), job.now);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == Errc::protocol);
}
