// SPDX-License-Identifier: Apache-2.0
#include "timeline/view/live_view.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "apps/common/running_job/running_launchers.hpp"
#include "apps/common/running_job/watch_options.hpp"
#include "timeline/live/live_rank.hpp"
#include "timeline/view/live_gpus.hpp"
#include "timeline/view/merge_views.hpp"

using namespace horo::apps;
using namespace horo::timeline;

namespace {

/// Records as a rank writes them. A tick is a nanosecond.
class Rank {
 public:
  LiveRank state;

  void submit(std::int64_t at, std::uint32_t id) {
    take({.ticks = static_cast<std::uint64_t>(at), .kind = RecordKind::submit, .id = id});
  }

  void begin(std::int64_t at, std::uint64_t entry, std::vector<std::uint32_t> ids) {
    take(encode(
        Begin{.tensors = static_cast<std::uint32_t>(ids.size()), .entry = entry, .bytes = 100},
        static_cast<std::uint64_t>(at)));
    for (const auto id : ids) {
      take({.ticks = static_cast<std::uint64_t>(at),
            .kind = RecordKind::members,
            .detail = 1,
            .id = id});
    }
  }

  void end(std::int64_t at, std::uint64_t entry) {
    take({.ticks = static_cast<std::uint64_t>(at), .kind = RecordKind::end, .x = entry});
  }

 private:
  void take(const Record& record) { state.take(record, static_cast<std::int64_t>(record.ticks)); }
};

LiveView view_of_two() {
  LiveView view{
      .job = "j", .now_ns = 0, .size = 4, .others = "the others are on other hosts: look there"};
  view.rows.push_back({.rank = 0,
                       .host = "a",
                       .pid = 10,
                       .state = LiveState::waits,
                       .tensor = "gr\x1b[2Jad",
                       .tensors = 3,
                       .for_ns = 2'100'000'000,
                       .missing = {1}});
  view.rows.push_back({.rank = 1,
                       .host = "a",
                       .pid = 11,
                       .state = LiveState::stopped,
                       .for_ns = 5'000'000'000,
                       .lag_ns = 2'100'000'000});
  return view;
}

LiveGpu sample_gpu(const std::string& host, int index) {
  return {.host = host,
          .index = index,
          .name = "H100",
          .uuid = "GPU-1",
          .busy = 42,
          .used = std::uint64_t{20} << 30U,
          .memory = std::uint64_t{80} << 30U,
          .celsius = 61,
          .slices = 0,
          .links = {{"GPU 1", 2}},
          .ranks = {0, 3},
          .problem = {}};
}

int lines_of(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("a rank waits after a submission, moves data during an entry, and computes otherwise") {
  Rank rank;
  CHECK_FALSE(rank.state.waits());
  rank.submit(100, 7);
  rank.submit(110, 8);
  REQUIRE(rank.state.waits());
  CHECK(rank.state.waits()->tensor.id == 7);
  CHECK(rank.state.waits()->since == 100);
  CHECK(rank.state.waits()->tensors == 2);
  rank.begin(150, 0, {7, 8});
  CHECK_FALSE(rank.state.waits());
  REQUIRE(rank.state.moves());
  CHECK(rank.state.moves()->tensor.id == 7);
  CHECK(rank.state.moves()->since == 150);
  CHECK(rank.state.has_begun({0, 8}, 110));
  CHECK_FALSE(rank.state.has_begun({0, 8}, 151));
  rank.end(200, 0);
  CHECK_FALSE(rank.state.moves());
  CHECK(rank.state.last_ns() == 200);
}

TEST_CASE("a window counts the operations that ended in it") {
  Rank rank;
  rank.state.open_window(180);
  for (std::uint64_t i = 0; i < 4; ++i) {
    rank.begin(static_cast<std::int64_t>(100 + i * 50), i, {1});
    rank.end(static_cast<std::int64_t>(140 + i * 50), i);
  }
  CHECK(rank.state.done().operations == 3);
  CHECK(rank.state.done().bytes == 300);
  rank.state.open_window(300);
  CHECK(rank.state.done().operations == 0);
}

TEST_CASE("entry numbers tell how many operations a window with lost records had") {
  Rank rank;
  rank.begin(10, 0, {1});
  rank.end(20, 0);
  rank.state.open_window(20);
  rank.state.lose_before(1000);
  rank.begin(1010, 98, {1});
  rank.end(1020, 98);
  rank.begin(1030, 99, {1});
  rank.end(1040, 99);
  CHECK(rank.state.done().operations == 99);
  CHECK(rank.state.done().bytes == Approx(9900));
}

TEST_CASE("operations in progress are forgotten when records are lost") {
  Rank rank;
  rank.submit(10, 1);
  rank.begin(15, 0, {2});
  rank.state.lose_before(100);
  CHECK_FALSE(rank.state.waits());
  CHECK_FALSE(rank.state.moves());
  rank.submit(50, 3);  // This ring reaches further back than the others.
  CHECK_FALSE(rank.state.waits());
  CHECK(rank.state.known_from() == 100);
}

TEST_CASE("an end record also ends earlier entries whose end records were lost") {
  Rank rank;
  rank.begin(10, 0, {1});
  rank.begin(20, 1, {2});
  rank.end(30, 1);
  CHECK_FALSE(rank.state.moves());
}

TEST_CASE("the table names the ranks that others wait for, and where the absent ranks are") {
  const auto text = live_table(view_of_two(), 0, 0);
  CHECK(text.find("2 of 4 ranks; the others are on other hosts") != std::string::npos);
  CHECK(text.find("* rank 1 on a, process 11, keeps 1 of the others waiting for 2.1 s") !=
        std::string::npos);
  CHECK(text.find("waits for 1 ") != std::string::npos);
  CHECK(text.find("gr?[2Jad and 2 more") != std::string::npos);  // A terminal would obey it.
  CHECK(text.find("stopped") != std::string::npos);
}

TEST_CASE("the table fits its terminal") {
  auto view = view_of_two();
  for (int i = 2; i < 100; ++i) view.rows.push_back({.rank = i, .host = "\xc3\xa4"});
  const auto text = live_table(view, 30, 10);
  CHECK(std::count(text.begin(), text.end(), '\n') == 10);
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  CHECK(longest <= 30);
  CHECK(text.find("more lines") != std::string::npos);
}

TEST_CASE("on a small terminal, GPUs get half of the lines at most, and ranks the rest") {
  auto view = view_of_two();
  for (int i = 0; i < 8; ++i) view.gpus.push_back(sample_gpu("a", i));
  const auto whole = live_table(view, 0, 0);
  CHECK(whole.find("42 %") != std::string::npos);
  const auto ranks = lines_of(whole) - 9;
  CHECK(lines_of(live_table(view, 0, ranks + 9)) == ranks + 9);
  const auto few_gpus = live_table(view, 0, ranks + 3);
  CHECK(lines_of(few_gpus) == ranks + 3);
  for (int i = 2; i < 100; ++i) view.rows.push_back({.rank = i, .host = "a"});
  const auto many = live_table(view, 0, 20);
  CHECK(lines_of(many) == 20);
  CHECK(many.find("  7   42 %") != std::string::npos);
  CHECK(lines_of(live_table(view, 0, 2)) == 2);
}

TEST_CASE("a GPU shows what its driver tells, and why it cannot be used") {
  auto gpu = sample_gpu("a", 0);
  CHECK(gpu_line(gpu) ==
        "GPU 0 on a: 42 % busy, 20 GiB of 80 GiB used, 61 C, NVLinks 2 to GPU 1; ranks 0, 3");
  gpu.busy = gpu.celsius = -1;
  gpu.links.clear();
  gpu.ranks = {3};
  CHECK(gpu_line(gpu) == "GPU 0 on a: 20 GiB of 80 GiB used; rank 3");
  gpu.problem = "it is lost";
  CHECK(gpu_line(gpu) == "GPU 0 on a cannot be used: it is lost");
  CHECK(gpu_table({}).empty());
}

TEST_CASE("GPUs are restored from JSON, and merged by host") {
  auto view = view_of_two();
  view.gpus = {sample_gpu("b", 0), sample_gpu("b", 1)};
  view.gpus[1].busy = view.gpus[1].celsius = -1;
  view.gpus[1].problem = "it is lost";
  const auto got = parse_live(live_json(view));
  REQUIRE(got);
  REQUIRE(got->gpus.size() == 2);
  CHECK(gpu_line(got->gpus[0]) == gpu_line(view.gpus[0]));
  CHECK(got->gpus[0].uuid == "GPU-1");
  CHECK(got->gpus[1].busy == -1);
  CHECK(got->gpus[1].celsius == -1);
  CHECK(got->gpus[1].problem == "it is lost");
  LiveView all{.job = "j", .size = 2};
  all.gpus = {sample_gpu("b", 7)};
  LiveView other{.job = "j", .size = 2};
  other.gpus = {sample_gpu("a", 0), sample_gpu("b", 0)};
  join_views(all, other);
  REQUIRE(all.gpus.size() == 2);
  CHECK(all.gpus[0].host == "a");
  CHECK(all.gpus[1].index == 7);
}

TEST_CASE("a view as JSON is one line") {
  const auto text = live_json(view_of_two());
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(text.ends_with("}\n"));
  CHECK(text.find(R"("missing": [1])") != std::string::npos);
}

TEST_CASE("a view is restored from its line of JSON") {
  const auto sent = view_of_two();
  const auto got = parse_live(live_json(sent));
  REQUIRE(got);
  CHECK(got->job == "j");
  CHECK(got->size == 4);
  REQUIRE(got->rows.size() == 2);
  const auto& row = got->rows[0];
  CHECK(row.tensor == sent.rows[0].tensor);
  CHECK(row.host == "a");
  CHECK(row.pid == 10);
  CHECK(row.state == LiveState::waits);
  CHECK(row.tensors == 3);
  CHECK(row.for_ns == 2'100'000'000);
  CHECK(row.missing == std::vector<int>{1});
  CHECK(got->rows[1].lag_ns == 2'100'000'000);
  for (const auto* line : {"", "ssh: Could not resolve hostname", "{\"ranks\": [3]}", "[]"})
    CHECK_FALSE(parse_live(line));
}

TEST_CASE("a rank that waits for no rank of its host waits for idle ranks of other hosts") {
  LiveView here{.job = "j", .size = 3};
  here.rows.push_back({.rank = 2, .host = "b", .state = LiveState::waits, .for_ns = 700});
  LiveView there{.job = "j", .size = 4};
  there.rows.push_back({.rank = 0, .host = "a", .state = LiveState::computes});
  there.rows.push_back({.rank = 1, .host = "a", .state = LiveState::moves});
  there.rows.push_back({.rank = 2, .host = "a", .state = LiveState::ended});
  join_views(here, there);
  find_missing(here);
  CHECK(here.size == 4);
  REQUIRE(here.rows.size() == 3);
  CHECK(here.rows[0].rank == 0);
  CHECK(here.rows[0].lag_ns == 700);
  CHECK(here.rows[1].lag_ns == 0);
  CHECK(here.rows[2].host == "b");
  CHECK(here.rows[2].missing == std::vector<int>{0});
}

TEST_CASE("ranks that were observed separately also wait for idle ranks of their own host") {
  LiveView view{.job = "j", .size = 2};
  view.rows.push_back({.rank = 0, .host = "a", .state = LiveState::waits, .for_ns = 700});
  view.rows.push_back({.rank = 1, .host = "a", .state = LiveState::computes});
  auto by_host = view;
  find_missing(by_host);
  CHECK(by_host.rows[0].missing.empty());
  find_missing(view, Observed::by_rank);
  CHECK(view.rows[0].missing == std::vector<int>{1});
  CHECK(view.rows[1].lag_ns == 700);
}

TEST_CASE("rows of a host that does not answer show their age") {
  auto view = view_of_two();
  view.rows[1].age_ns = 3'200'000'000;
  CHECK(live_table(view, 0, 0).find("stopped, 3.2 s ago") != std::string::npos);
  CHECK(live_json(view).find(R"("age_ns": 3200000000)") != std::string::npos);
}

TEST_CASE("across hosts, the one rank that hardly waits is named when all others wait") {
  LiveView view{.job = "j", .size = 3};
  view.rows.push_back({.rank = 0, .host = "a", .waiting = 0.6});
  view.rows.push_back({.rank = 1, .host = "b", .waiting = 0.02});
  view.rows.push_back({.rank = 2, .host = "b", .waiting = 0.5});
  const auto named = [&view] {
    const auto lines = headlines(view);
    return std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
             return line.starts_with("rank 1 on b waits for 2 % of the time, all others for 50 %");
           }) != lines.end();
  };
  CHECK(named());
  view.rows[2].waiting = 0.1;  // So does another.
  CHECK_FALSE(named());
  view.rows[2] = {.rank = 2, .host = "a", .waiting = 0.5};
  view.rows[1].host = "a";  // The verdicts know better, of one host.
  CHECK_FALSE(named());
}

TEST_CASE("a launcher is known by the name of its socket") {
  const auto found = parse_launcher("horo-job/1000/4711/41f0a2c3d4e5");
  REQUIRE(found);
  CHECK(found->user == 1000);
  CHECK(found->pid == 4711);
  CHECK(found->job == "41f0a2c3d4e5");
  for (const auto* name : {"", "horo-job/", "horo-job/1000/4711", "horo-job/1000/4711/",
                           "horo-job/x/1/j", "horo-job/1/-1/j", "/tmp/horo-job/1/1/j"})
    CHECK_FALSE(parse_launcher(name));
}

TEST_CASE("a list of hosts is split, and words that ssh would take for options are refused") {
  const auto hosts = split_hosts("node1,eva@node2");
  REQUIRE(hosts);
  CHECK(*hosts == std::vector<std::string>{"node1", "eva@node2"});
  for (const auto* text : {"", "a,,b", "-oProxyCommand=x", "a,-F"}) CHECK_FALSE(split_hosts(text));
}

TEST_CASE(
    "a view of an elastic job tells its generation, its size and the hosts that it does not use") {
  auto view = view_of_two();
  view.members = LiveMembership{
      .generation = 3,
      .ranks = 4,
      .min_np = 2,
      .max_np = 8,
      .spares = 1,
      .wanted_spares = 2,
      .starting = 1,
      .state = "running",
      .hosts = {{.name = "a", .slots = 4, .ranks = 4, .processes = 6},
                {.name = "b",
                 .slots = 2,
                 .use = LiveHostUse::put_aside,
                 .why = "worker 5 on host b: exit code 3",
                 .for_ns = 53'000'000'000},
                {.name = "c",
                 .slots = 2,
                 .processes = 1,
                 .use = LiveHostUse::leaving,
                 .why = "host c got signal 15 (SIGTERM)",
                 .for_ns = 12'000'000'000},
                {.name = "d", .use = LiveHostUse::gone, .why = "it is no longer offered"}}};
  const auto lines = headlines(view);
  REQUIRE(lines.size() >= 3);
  CHECK(lines[0] == "generation 3: 4 ranks (2 to 8), 1 of 2 spares ready, 1 starting; running");
  CHECK(lines[1] == "host b is put aside for 53 s: worker 5 on host b: exit code 3");
  CHECK(lines[2] ==
        "host c leaves: host c got signal 15 (SIGTERM); 1 process is still there for at "
        "most 12 s");
  CHECK(std::none_of(lines.begin(), lines.end(),
                     [](const auto& line) { return line.starts_with("host d"); }));
  const auto json = live_json(view);
  CHECK_THAT(json, Catch::Contains("\"members\""));
  CHECK_THAT(json, Catch::Contains("\"put_aside\""));
  CHECK(parse_live(json)->size == 4);
}

TEST_CASE("a view of an elastic job has no rows of former members") {
  LiveView view{.job = "j", .size = 4};
  view.rows = {{.rank = 0}, {.rank = 1, .state = LiveState::ended}, {.rank = 1}, {.rank = 3}};
  keep_members(view, 2);
  REQUIRE(view.rows.size() == 2);
  CHECK(view.rows[1].state != LiveState::ended);
  CHECK(view.size == 2);
}
