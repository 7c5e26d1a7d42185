// SPDX-License-Identifier: Apache-2.0
// Jobs that are tuned while they run, on one host and on several.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/spanning/hosts.hpp"

using namespace horo;            // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;   // NOLINT(google-build-using-namespace): a test of it
using namespace horo::spanning;  // NOLINT(google-build-using-namespace): a test of it
using horo::sim::vector_of;

namespace {

/// One host, and several.
const std::vector<Layout> kLayouts = {{{0, 1}}, {{0, 1}, {2}}};

/// A file that ends with this object.
class LogFile {
 public:
  LogFile()
      : path_(std::filesystem::temp_directory_path() / fmt::format("horo-tuning-{}", getpid())) {}

  ~LogFile() { std::filesystem::remove(path_); }

  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  std::string path() const { return path_.string(); }

  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  /// The search has written its last line.
  bool ended() const {
    const auto all = lines();
    if (all.empty()) return false;
    const auto& last = all.back();
    return std::any_of(std::begin(kEndings), std::end(kEndings), [&last](const char* ending) {
      return last.find(ending) != std::string::npos;
    });
  }

 private:
  static constexpr const char* kEndings[] = {"default is best", "default stays", "challenger won"};

  std::filesystem::path path_;
};

void tune(TestHosts& hosts, const LogFile& log) {
  hosts.options.tuner = {.on = true,
                         .tunable = {.small_message = true},
                         .steps_per_sample = 4,
                         .course = {.warmup_samples = 1, .most_samples = 5},
                         .log_file = log.path()};
}

std::string steps(Session& session, int count, int ranks) {
  for (int i = 0; i < count; ++i) {
    for (const char* name : {"a", "b", "c"}) {
      if (auto error = sum(session, kWorld, name, 300, ranks); !error.empty()) return error;
    }
  }
  return {};
}

/// Sums 1 if the search has ended: all ranks learn it at the same step.
bool all_know_end(Session& session, bool ended) {
  const auto id = session.declare(kWorld, "ended", vector_of(Kind::allreduce, DType::i32, 1));
  if (!id) return true;
  std::int32_t value = ended ? 1 : 0;
  const auto operation = session.submit(kWorld, *id, {.in = &value, .out = &value});
  if (!operation || !wait_for(session, **operation)) return true;
  session.operations().put(**operation);
  return value != 0;
}

/// Trains until the search has ended. Every rank's tuning at the end.
std::vector<Tuning> train(TestHosts& hosts, const LogFile& log) {
  std::vector<Tuning> tunings(static_cast<std::size_t>(hosts.size()));
  std::vector<std::string> errors(tunings.size());
  hosts.run([&](Session& session, int rank) {
    auto& error = errors[static_cast<std::size_t>(rank)];
    for (int i = 0; i < 4000 && error.empty(); ++i) {
      error = steps(session, 10, hosts.size());
      if (all_know_end(session, rank == 0 && log.ended())) break;
    }
    // The search asked for the last tuning before it ended.
    error += steps(session, 10, hosts.size());
    tunings[static_cast<std::size_t>(rank)] = session.sets().find(kWorld)->board->tuning().value();
  });
  for (const auto& error : errors) CHECK(error == "");
  return tunings;
}

/// Threads of this process that search for a tuning.
int searches() {
  int count = 0;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", none)) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    if (std::getline(file, name) && name == "horo-tune") ++count;
  }
  return count;
}

/// The values that the log has in that column.
std::set<std::string> small_messages(const LogFile& log) {
  std::set<std::string> values;
  for (const auto& line : log.lines()) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i <= 11; ++i) std::getline(fields, field, ',');
    if (field != "small_message_kib") values.insert(field);
  }
  return values;
}

}  // namespace

TEST_CASE("a job is tuned until the search has ended, and all ranks keep the same tuning") {
  for (const auto& layout : drawn_from(kLayouts)) {
    CAPTURE(layout.size());
    LogFile log;
    TestHosts hosts(layout);
    tune(hosts, log);
    const auto tunings = train(hosts, log);
    for (const auto& tuning : tunings) CHECK(tuning == tunings.front());
    CHECK(log.ended());
    // Only between hosts it makes sense to try other limits of small messages.
    CHECK((small_messages(log).size() > 1) == (layout.size() > 1));
    CHECK(log.lines().size() >= 4);
  }
}

TEST_CASE("a job that is tuned survives ranks that join, and process sets") {
  for (const auto& layout : drawn_from(kLayouts)) {
    CAPTURE(layout.size());
    LogFile log;
    TestHosts hosts(layout);
    tune(hosts, log);
    std::vector<std::string> errors(static_cast<std::size_t>(hosts.size()));
    hosts.run([&](Session& session, int rank) {
      auto& error = errors[static_cast<std::size_t>(rank)];
      for (int round = 0; round < 3 && error.empty(); ++round) {
        error = steps(session, 30, hosts.size());
        // Rank 1 has no further data, while the others take more steps.
        if (rank != 1) error += steps(session, 20, hosts.size() - 1);
        const auto joined = session.declare(kWorld, "join", {.kind = Kind::join});
        if (!joined) return;
        const auto operation = session.submit(kWorld, *joined, {});
        if (!operation || !wait_for(session, **operation)) {
          error += "the join hangs";
          return;
        }
        session.operations().put(**operation);
        const auto alone = session.add_set({Rank{0}});
        if (!alone) {
          error += alone.error().message;
          return;
        }
        if (rank == 0) error += sum(session, *alone, "alone", 200, 1);
        if (const auto removed = session.remove_set(*alone); !removed)
          error += removed.error().message;
      }
    });
    for (const auto& error : errors) CHECK(error == "");
  }
}

TEST_CASE("a job that ends before its search ends at once, again and again") {
  LogFile log;
  TestHosts hosts({{0, 1}, {2}});
  tune(hosts, log);
  for (const int count : {0, 3, 40}) {
    std::vector<std::string> errors(static_cast<std::size_t>(hosts.size()));
    hosts.run([&](Session& session, int rank) {
      errors[static_cast<std::size_t>(rank)] = steps(session, count, hosts.size());
    });
    for (const auto& error : errors) CHECK(error == "");
    REQUIRE(log.lines().size() >= 2);
    CHECK(log.lines().front().find("hierarchical_allreduce,") == 0);
  }
}

TEST_CASE("when a rank is lost during the search, the others hear of it, and the search ends") {
  constexpr int kVictim = 1;
  for (const auto& layout : drawn_from(kLayouts)) {
    CAPTURE(layout.size());
    LogFile log;
    TestHosts hosts(layout);
    tune(hosts, log);
    hosts.options.tuner.course.most_samples = 1000;
    std::vector<std::string> errors(static_cast<std::size_t>(hosts.size()));
    std::atomic<int> during{0};
    std::atomic<int> ended{0};
    hosts.run_raw([&](std::unique_ptr<Session> session, int rank) {
      auto& error = errors[static_cast<std::size_t>(rank)];
      for (int i = 0; i < 4000 && error.empty(); ++i) {
        if (rank == kVictim && i == 60) {
          during = searches();
          hosts.poison(0, {.rank = Rank{kVictim}, .cause = LossCause::signalled, .detail = 9});
          // A rank that is killed does not shut down.
          while (ended != hosts.size() - 1 && !hosts.failed()) std::this_thread::yield();
          return;
        }
        error = steps(*session, 1, hosts.size());
      }
      ++ended;
    });
    CHECK(during == 1);
    CHECK(searches() == 0);
    for (int r = 0; r < hosts.size(); ++r) {
      const auto& error = errors[static_cast<std::size_t>(r)];
      CAPTURE(r, error);
      CHECK((r == kVictim) == error.empty());
      CHECK((r == kVictim || error.find("rank 1 on node0 was lost") != std::string::npos));
    }
    REQUIRE(log.lines().size() >= 2);
    // The loss may come before the first sample: steps may take microseconds.
    CHECK((log.lines().back().find("ended early") != std::string::npos ||
           log.lines().back().find("ended in warm-up") != std::string::npos));
  }
}
