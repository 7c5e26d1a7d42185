// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/line_grouper.hpp"

#include <map>
#include <random>

#include <catch2/catch.hpp>

#include "launcher/output/tag.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

struct Bench {
  explicit Bench(std::size_t ranks) : folder(ranks) {}

  void say(int rank, std::string_view text, std::string_view end = "\n") {
    folder.add(Rank{rank}, Stream::out, {.body = text, .end = end}, "", {}, now);
  }

  /// The next row as "0-2:text"; empty: none is ready.
  std::string next() { return show(folder.next(now)); }

  std::string pop() { return show(folder.pop()); }

  static std::string show(const std::optional<LineGrouper::Row>& row) {
    if (!row) return {};
    auto ranks = row->ranks;
    std::sort(ranks.begin(), ranks.end());
    return list_ranks(ranks) + ":" + row->body;
  }

  LineGrouper folder;
  TimePoint now{};
};

}  // namespace

TEST_CASE("an equal line of all ranks becomes one row at once") {
  Bench bench(4);
  for (const int rank : {2, 0, 3}) bench.say(rank, "epoch 1");
  CHECK(bench.next().empty());
  bench.say(1, "epoch 1");
  CHECK(bench.next() == "0-3:epoch 1");
  CHECK(bench.next().empty());
}

TEST_CASE("a row waits a limited time for other ranks") {
  Bench bench(4);
  bench.say(1, "slow");
  bench.say(3, "slow");
  bench.now += LineGrouper::kWindow - 1ns;
  CHECK(bench.next().empty());
  bench.now += 1ns;
  CHECK(bench.folder.due() <= bench.now);
  CHECK(bench.next() == "1,3:slow");
  CHECK(!bench.folder.due());
  bench.say(0, "slow");
  CHECK(bench.pop() == "0:slow");
}

TEST_CASE("a row does not wait for ranks that have ended") {
  Bench bench(3);
  bench.folder.leave(Rank{1});
  bench.say(0, "x");
  bench.say(2, "x");
  CHECK(bench.next() == "0,2:x");
}

TEST_CASE("a row waits for running ranks, however many others wrote the line and ended") {
  Bench bench(4);
  for (const int rank : {0, 1, 2}) {
    bench.say(rank, "x");
    bench.folder.leave(Rank{rank});
    CHECK(bench.next().empty());
  }
  bench.say(3, "x");
  CHECK(bench.next() == "0-3:x");
}

TEST_CASE("a line does not join a row before its rank's last one") {
  Bench bench(3);
  bench.say(0, "a");
  bench.say(0, "b");
  bench.say(1, "b");
  bench.say(1, "a");  // Behind its b: not the a of rank 0.
  bench.say(2, "a");  // It has none yet: the first.
  bench.say(2, "a");  // And the second.
  CHECK(bench.pop() == "0,2:a");
  CHECK(bench.pop() == "0-1:b");
  CHECK(bench.pop() == "1-2:a");
  CHECK(bench.pop().empty());
}

TEST_CASE("lines with different ends or streams, and pieces of lines, are not joined") {
  Bench bench(2);
  bench.say(0, "50%", "\r");
  bench.say(1, "50%", "\n");
  bench.folder.add(Rank{0}, Stream::err, {.body = "50%", .end = "\n"}, "", {}, bench.now);
  bench.say(0, "half", "");
  bench.say(1, "half", "");
  for (const auto* row : {"0:50%", "1:50%", "0:50%", "0:half", "1:half"}) CHECK(bench.pop() == row);
}

TEST_CASE("the memory of waiting rows is bounded") {
  Bench bench(2);
  const std::string text(1000, 'x');
  std::size_t rows = 0;
  for (int i = 0; i < 1000; ++i) {
    bench.say(0, text + std::to_string(i));
    while (!bench.next().empty()) ++rows;
  }
  CHECK(rows > 700);
  CHECK(rows < 1000);
}

TEST_CASE("for random input, each rank's lines keep their order and none is lost") {
  const auto seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  Bench bench(5);
  std::map<int, std::vector<std::string>> said;
  std::map<int, std::vector<std::string>> seen;
  const auto see = [&](const std::optional<LineGrouper::Row>& row) {
    if (!row) return false;
    for (const Rank rank : row->ranks) seen[rank.value()].push_back(row->body);
    return true;
  };
  for (int i = 0; i < 20'000; ++i) {
    const int rank = static_cast<int>(random() % 5);
    const auto text = std::string(1, static_cast<char>('a' + random() % 4));
    said[rank].push_back(text);
    bench.say(rank, text, random() % 10 == 0 ? "" : "\n");
    bench.now += std::chrono::milliseconds(random() % 20);
    while (random() % 3 == 0 && see(bench.folder.next(bench.now))) {
    }
  }
  while (see(bench.folder.pop())) {
  }
  CHECK(seen == said);
}
