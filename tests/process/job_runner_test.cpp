// SPDX-License-Identifier: Apache-2.0
// Jobs that a program runs through JobRunner, without horo run: real agents and real ranks on this
// machine.
#include "launcher/run/job_runner.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/exit_code.hpp"
#include "base/unique_fd.hpp"

using namespace horo;
using namespace horo::launcher;

namespace {

/// One job, and what its events told.
struct Run {
  std::unique_ptr<Loop> loop = Loop::make(Loop::BrokenPipes::untouched).value();
  UniqueFd null{open("/dev/null", O_WRONLY | O_CLOEXEC)};

  /// `script` names the hosts; empty: the ranks run on this machine.
  Run(std::vector<std::string> command, int np, std::vector<Given> flags = {},
      std::string script = {}) {
    setenv("HORO_AGENT_PATH", HORO_TEST_AGENT, 1);
    flags.push_back({.name = "stdin", .value = "none"});
    JobRequest request{.command = std::move(command), .directory = "/", .environment = environ};
    request.np = np;
    request.out_fd = request.err_fd = null.value();
    request.script = std::move(script);
    if (request.script.empty()) request.hosts = fmt::format("localhost:{}", np);
    request.settings = Settings::resolve({.flags = std::move(flags)}).value();
    runner.emplace(*loop, std::move(request), [this](const RunEvent& event) { take(event); });
  }

  Result<JobOutcome> run() {
    HORO_TRY(auto plan, runner->plan());
    return runner->run(std::move(plan));
  }

  void take(const RunEvent& event) {
    if (const auto* wrote = std::get_if<RankWrote>(&event)) {
      text[wrote->rank] += wrote->bytes;
      if (on_text) on_text();
    } else if (const auto* starting = std::get_if<GenerationStarting>(&event)) {
      job_ids.push_back(starting->plan.job_id);
    } else if (std::holds_alternative<RanksStarted>(event)) {
      ++all_started;
    } else if (const auto* ended = std::get_if<GenerationEnded>(&event)) {
      restarted.push_back(ended->decision.restart);
    }
  }

  std::optional<JobRunner> runner;
  std::map<Rank, std::string> text;
  std::vector<std::string> job_ids;
  std::vector<bool> restarted;
  int all_started = 0;
  std::function<void()> on_text;
};

std::vector<std::string> shell(const char* script) {
  return {"/bin/sh", "-c", script};
}

}  // namespace

TEST_CASE("a program runs a job of three ranks and reads their output from its events") {
  Run job(shell("echo rank $HORO_RANK of $HORO_SIZE"), 3);
  const auto outcome = job.run();
  REQUIRE(outcome);
  CHECK(outcome->exit_code == 0);
  CHECK(outcome->state.generation.all_succeeded());
  CHECK(job.text[Rank{2}] == "rank 2 of 3\n");
  CHECK(job.text.size() == 3);
  CHECK(job.all_started == 1);
  CHECK(job.restarted == std::vector<bool>{false});
}

TEST_CASE("the outcome of a failed job names the rank and its exit code") {
  Run job(shell("test $HORO_RANK = 0 || exit 7; exec sleep 60"), 2);
  const auto outcome = job.run();
  REQUIRE(outcome);
  CHECK(outcome->exit_code == 7);
  const auto& first = outcome->state.generation.first_failure;
  REQUIRE(first);
  CHECK(first->rank == Rank{1});
}

TEST_CASE("a restart is another generation of the same job, with the same number of ranks") {
  Run job(shell("test $HORO_RESTART_COUNT = 1 || exit 75; echo again"), 2,
          {{.name = "max-restarts", .value = "1"}, {.name = "restart-on", .value = "75"}});
  const auto outcome = job.run();
  REQUIRE(outcome);
  CHECK(outcome->exit_code == 0);
  CHECK(outcome->state.generation.epoch == Epoch{2});
  REQUIRE(outcome->earlier.size() == 1);
  CHECK(outcome->earlier.front().exit_code == 75);
  CHECK(job.restarted == std::vector<bool>{true, false});
  REQUIRE(job.job_ids.size() == 2);
  CHECK(job.job_ids[0] != job.job_ids[1]);
  CHECK(job.text[Rank{1}] == "again\n");
}

namespace {

/// A script that names this machine as the only host. From its second call on it says so first, and
/// waits for an answer as long as it takes.
class SlowScript {
 public:
  SlowScript() {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
    for (const char* name : {"asked", "answer"})
      REQUIRE(mkfifo((folder_ + "/" + name).c_str(), 0600) == 0);
    asked = UniqueFd(open((folder_ + "/asked").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    answer = UniqueFd(open((folder_ + "/answer").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    REQUIRE((asked && answer));
    std::ofstream(path()) << "#!/bin/sh\ncd " << folder_
                          << "\necho $$ >>calls\n"
                             "if [ $(wc -l <calls) != 1 ]; then echo asked >asked; "
                             "read word <answer; fi\necho localhost:1\n";
    REQUIRE(chmod(path().c_str(), 0700) == 0);
  }

  ~SlowScript() { std::filesystem::remove_all(folder_); }

  SlowScript(const SlowScript&) = delete;
  SlowScript& operator=(const SlowScript&) = delete;

  std::string path() const { return folder_ + "/hosts"; }

  /// The process of each call.
  std::vector<pid_t> calls() const {
    std::ifstream file(folder_ + "/calls");
    return {std::istream_iterator<pid_t>(file), {}};
  }

  UniqueFd asked;
  UniqueFd answer;

 private:
  std::string folder_ = "/tmp/horo-test-XXXXXX";
};

}  // namespace

TEST_CASE("the loop runs while the next generation is planned, so that heartbeats go on") {
  SlowScript script;
  Run job(shell("test $HORO_RESTART_COUNT = 1 || exit 75; echo again"), 1,
          {{.name = "max-restarts", .value = "1"},
           {.name = "restart-on", .value = "75"},
           {.name = "discovery-timeout", .value = "3600"}},
          script.path());
  auto asked = job.loop->watch(script.asked.value());
  REQUIRE(asked);
  int heard = 0;
  asked->on_readable([&] {
    std::array<char, 64> text{};
    while (read(script.asked.value(), text.data(), text.size()) > 0) ++heard;
    REQUIRE(write(script.answer.value(), "go\n", 3) == 3);
  });
  SECTION("and the job goes on") {
    const auto outcome = job.run();
    REQUIRE(outcome);
    CHECK(outcome->exit_code == 0);
    CHECK(job.text[Rank{0}] == "again\n");
    CHECK(script.calls().size() == 2);
  }
  SECTION("and a signal ends the job, and the script with it") {
    asked->on_readable([&] {
      std::array<char, 64> text{};
      while (read(script.asked.value(), text.data(), text.size()) > 0) ++heard;
      job.runner->signal(SIGTERM);
    });
    const auto outcome = job.run();
    REQUIRE(outcome);
    CHECK(outcome->exit_code == exit_code::kSignalBase + SIGTERM);
    CHECK(job.text.empty());
    const auto calls = script.calls();
    REQUIRE(calls.size() == 2);
    CHECK(kill(calls[1], 0) == -1);
    CHECK(errno == ESRCH);
  }
}

TEST_CASE("a program stops its job with a signal of its own") {
  Run job(shell("echo here; exec sleep 60"), 1);
  job.on_text = [&] { job.runner->signal(SIGTERM); };
  const auto outcome = job.run();
  REQUIRE(outcome);
  CHECK(outcome->exit_code == exit_code::kSignalBase + SIGTERM);
}
