// SPDX-License-Identifier: Apache-2.0
// The environment and descriptors of ranks, and starts that fail.
#include "agent_job.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "discovery/this_machine.hpp"
#include "discovery/topology/machine_topology.hpp"
#include "launcher/binding/binding.hpp"
#include "launcher/ranks/rank_board.hpp"
#include "launcher/ranks/rank_timeline.hpp"

using namespace horo;
using namespace horo::test;

namespace {

launcher::AgentSpec acting(int ranks, std::vector<std::string> actions) {
  actions.insert(actions.begin(), actor());
  return spec_for(ranks, std::move(actions));
}

std::unique_ptr<Job> ran(Loop& loop, launcher::AgentSpec spec) {
  auto job = std::make_unique<Job>(loop);
  REQUIRE(job->start(std::move(spec)));
  REQUIRE(job->run());
  CHECK(living_with(job->marker()).empty());
  return job;
}

class LimitedDescriptors {
 public:
  explicit LimitedDescriptors(rlim_t soft, rlim_t hard) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limited{.rlim_cur = soft, .rlim_max = hard == 0 ? before_.rlim_max : hard};
    setrlimit(RLIMIT_NOFILE, &limited);
  }

  ~LimitedDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

struct TemporaryFile {
  explicit TemporaryFile(const std::string& content, mode_t mode) {
    path = fmt::format("/tmp/horo-test-{}-{}", getpid(), mode);
    std::ofstream(path) << content;
    chmod(path.c_str(), mode);
  }

  ~TemporaryFile() { unlink(path.c_str()); }

  std::string path;
};

}  // namespace

TEST_CASE("a rank sees its identity, its environment and unbuffered Python") {
  auto loop = make_loop();
  auto spec = acting(2, {"env=HORO_RANK", "env=HORO_SIZE", "say= ", "env=COLOUR",
                         "say= ", "env=PYTHONUNBUFFERED", "say= ", "env=HOME"});
  spec.environment.emplace_back("COLOUR", "red");
  spec.environment.emplace_back("HORO_RANK", "77");  // Horo's value overrides it.
  const auto job = ran(*loop, std::move(spec));
  CHECK(job->out[Rank{0}] == "02 red 1 (unset)");
  CHECK(job->out[Rank{1}] == "12 red 1 (unset)");
}

TEST_CASE("an agent gives each rank its part of the cores and sets its number of threads") {
  const auto cpus = discovery::usable_cpus();
  const auto machine = discovery::read_topology(discovery::Detail::cores).value();
  const int ranks = std::min<int>(2, static_cast<int>(machine.cores.size()));
  auto loop = make_loop();
  auto spec = spec_for(ranks, {"/bin/sh", "-c",
                               "sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status; "
                               "echo ${OMP_NUM_THREADS-none}"});
  spec.bind_to = BindTo::core;
  const auto job = ran(*loop, std::move(spec));
  const auto parts = launcher::share_machine(machine, BindTo::core, ranks, {}).value();
  for (int rank = 0; rank < ranks; ++rank) {
    const auto threads = static_cast<int>(cpus.size()) / ranks;
    CHECK(job->out[Rank{rank}] ==
          fmt::format("{}\n{}\n",
                      discovery::describe_cpus(parts[static_cast<std::size_t>(rank)].cpus),
                      ranks == 1 ? "none" : std::to_string(threads)));
  }
}

TEST_CASE("a binding that the host does not allow ends the job before any rank starts") {
  const auto machine = discovery::read_topology(discovery::Detail::cores).value();
  auto loop = make_loop();
  auto spec = acting(static_cast<int>(machine.cores.size()) + 1, {"say=started"});
  spec.bind_to = BindTo::core;
  Job job(*loop);
  REQUIRE(job.start(std::move(spec)));
  REQUIRE(job.run());
  REQUIRE(job.lost);
  CHECK_THAT(job.lost->message, Catch::Contains("want a core each"));
  CHECK(job.pids.empty());
}

TEST_CASE("a rank inherits standard input, output, error, board and recorder, and nothing else") {
  const int leaky = open("/dev/null", O_RDONLY);  // NOLINT: without close-on-exec on purpose
  REQUIRE(leaky >= 0);
  auto loop = make_loop();
  const auto job = ran(*loop, acting(3, {"fds"}));
  close(leaky);
  const auto expected =
      fmt::format("0 1 2 {} {} ", launcher::kBoardDescriptor, launcher::kTimelineDescriptor);
  for (int rank = 0; rank < 3; ++rank) CHECK(job->out[Rank{rank}] == expected);
}

TEST_CASE("a rank gets the descriptor limit that the launcher was started with") {
  const LimitedDescriptors limited(64, 0);
  auto loop = make_loop();
  const auto job = ran(*loop, acting(40, {"limit"}));
  REQUIRE(job->exits.size() == 40);
  for (int rank = 0; rank < 40; ++rank) CHECK(job->out[Rank{rank}] == "64");
}

TEST_CASE("a command that does not exist or cannot be executed is reported with the reason") {
  auto loop = make_loop();
  const TemporaryFile text("just text\n", 0644);
  const TemporaryFile no_format("just text\n", 0755);
  const TemporaryFile no_interpreter("#! /nonexistent/interpreter -x\n", 0711);
  const TemporaryFile no_rights("#!/etc/passwd\n", 0700);
  const TemporaryFile dos("#!/bin/sh\r\nexit 0\r\n", 0701);
  const auto relative = [](const TemporaryFile& file) {
    return "./" + file.path.substr(std::string_view("/tmp/").size());
  };

  struct Case {
    std::string command;
    Errc code;
    std::string words;
  };

  const std::vector<Case> cases{
      {"no-such-program-here", Errc::not_found, "program 'no-such-program-here' not found in PATH"},
      {"/no/such/program", Errc::not_found, "program '/no/such/program' not found"},
      {text.path, Errc::permission_denied, "is not executable"},
      {"/tmp", Errc::permission_denied, "is not executable"},
      {no_format.path, Errc::permission_denied, "no #! line"},
      {no_interpreter.path, Errc::permission_denied,
       "was found, but its interpreter '/nonexistent/interpreter' is missing"},
      {relative(no_interpreter), Errc::permission_denied,
       "was found, but its interpreter '/nonexistent/interpreter' is missing"},
      {no_rights.path, Errc::permission_denied, "its interpreter '/etc/passwd' cannot be executed"},
      {dos.path, Errc::permission_denied, "carriage return"},
      {relative(text), Errc::permission_denied, "is not executable"},
      {"./no-such-program", Errc::not_found, "program './no-such-program' not found"},
  };
  for (const auto& one : cases) {
    auto spec = spec_for(3, {one.command});
    spec.directory = "/tmp";  // Another directory than the agent's.
    const auto job = ran(*loop, std::move(spec));
    REQUIRE(job->spawn_failures.size() == 1);  // One is enough: the others would be the same.
    const auto& error = job->spawn_failures.at(Rank{0});
    CHECK(error.code == one.code);
    CHECK_THAT(error.message, Catch::Contains(one.words));
    CHECK(job->exits.empty());
    CHECK(job->survivors == 0);
  }
}

TEST_CASE("a working directory that does not exist is reported by name") {
  auto loop = make_loop();
  auto spec = acting(2, {"exit=0"});
  spec.directory = "/no/such/folder";
  const auto job = ran(*loop, std::move(spec));
  REQUIRE(job->spawn_failures.size() == 1);
  CHECK_THAT(job->spawn_failures.at(Rank{0}).message, Catch::Contains("'/no/such/folder'"));
}

TEST_CASE("a missing agent is reported with its path") {
  auto loop = make_loop();
  setenv("HORO_AGENT_PATH", "/no/such/horo-agent", 1);
  const auto starter = launcher::make_local_starter(*loop);
  const auto probed = starter->probe();
  REQUIRE_FALSE(probed);
  CHECK(probed.error().code == Errc::not_found);
  CHECK_THAT(probed.error().message, Catch::Contains("/no/such/horo-agent"));
}

TEST_CASE(
    "too few descriptors end in a stated error, whatever their number, and leave no process") {
  std::size_t worked = 0;
  std::size_t refused = 0;
  for (rlim_t limit = 4; limit <= 96; limit += 4) {
    auto loop = make_loop();
    Job job(*loop);
    Status started;
    {
      // Only the agent has the limit: it inherits it and cannot raise it.
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        const rlimit low{.rlim_cur = limit, .rlim_max = limit};
        auto inner_loop = make_loop();
        Job inner(*inner_loop);
        setrlimit(RLIMIT_NOFILE, &low);
        if (!inner.start(acting(8, {"escape", "say=up"}))) _exit(2);
        if (!inner.run()) _exit(3);
        const bool told =
            inner.lost.has_value() || !inner.spawn_failures.empty() || inner.exits.size() == 8;
        if (!told || inner.survivors.value_or(0) != 0) _exit(4);
        setrlimit(RLIMIT_NOFILE, &low);
        _exit(inner.exits.size() == 8 ? 0 : 2);
      }
      int status = 0;
      REQUIRE(waitpid(child, &status, 0) == child);
      INFO("limit " << limit);
      REQUIRE(WIFEXITED(status));
      CHECK((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2));
      (WEXITSTATUS(status) == 0 ? worked : refused)++;
    }
  }
  CHECK(worked > 0);
  CHECK(refused > 0);
}

TEST_CASE("many jobs one after the other leak neither descriptors nor processes") {
  auto loop = make_loop();
  const auto open_descriptors = [] {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  };
  ran(*loop, acting(2, {"say=x"}));
  const int before = open_descriptors();
  for (int i = 0; i < 10; ++i) ran(*loop, acting(3, {"say=x"}));
  CHECK(open_descriptors() == before);
}
