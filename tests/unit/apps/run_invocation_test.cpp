// SPDX-License-Identifier: Apache-2.0
#include "apps/common/run_invocation.hpp"

#include <array>
#include <map>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/knobs/knobs.hpp"

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals
using apps::RunAction;

namespace {

using Variables = std::map<std::string, std::string>;

Result<apps::RunInvocation> parse(const std::vector<const char*>& words,
                                  const Variables& variables = {}) {
  return apps::parse_run(words, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const std::vector<const char*>& words, const Variables& variables = {}) {
  const auto invocation = parse(words, variables);
  return invocation ? "accepted" : invocation.error().message;
}

/// A config file for one test.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text) {
    const int fd = mkstemp(path_.data());
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(fd);
  }

  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  ~TemporaryFile() { unlink(path_.data()); }

  const char* path() const { return path_.data(); }

 private:
  std::array<char, 32> path_{"/tmp/horo-config-XXXXXX"};
};

}  // namespace

TEST_CASE("ranks, hosts and the command are read from the flags") {
  const auto invocation =
      parse({"-np", "2", "-H", "localhost:2", "--", "python", "t.py", "--np", "7"});
  REQUIRE(invocation);
  CHECK(invocation->action == RunAction::run);
  CHECK(invocation->options.np == 2);
  CHECK(invocation->options.hosts == "localhost:2");
  CHECK(invocation->options.command == std::vector<std::string>{"python", "t.py", "--np", "7"});
  CHECK_FALSE(invocation->options.dry_run);
}

TEST_CASE("without -np, the given hosts decide the number of ranks") {
  const auto invocation = parse({"--hostfile", "hosts", "x"});
  REQUIRE(invocation);
  CHECK_FALSE(invocation->options.np);
  CHECK(invocation->options.hostfile == "hosts");
}

TEST_CASE("knobs reach the settings from flags, variables and file") {
  const TemporaryFile file(
      "controller: gloo\nparams:\n  fusion_threshold_mb: 8\n  cycle_time_ms: 3\n");
  const auto invocation = parse({"-np", "1", "--config-file", file.path(), "--no-stall-check", "x"},
                                {{"HORO_CYCLE_TIME", "5ms"}});
  REQUIRE(invocation);
  CHECK(invocation->settings.get(knobs::kFusionThreshold) == Bytes{8U << 20U});
  CHECK(invocation->settings.get(knobs::kCycleTime) == 5ms);
  CHECK_FALSE(invocation->settings.get(knobs::kStallCheck));
  CHECK(invocation->settings.origin("fusion.threshold").text() ==
        fmt::format("config {}:3:24", file.path()));

  const auto horovod = parse({"-np", "1", "--horovod", "x"},
                             {{"HORO_CYCLE_TIME", "5ms"}, {"HORO_CONFIG_FILE", file.path()}});
  REQUIRE(horovod);
  CHECK(horovod->settings.get(knobs::kCycleTime) == 3ms);
}

TEST_CASE("an error in a config file names its place") {
  const TemporaryFile file("fusion:\n  treshold: 1\n");
  CHECK(refusal({"-np", "1", "--config-file", file.path(), "x"}) ==
        fmt::format("{}:2:3: unknown key 'fusion.treshold'; did you mean 'fusion.threshold'?",
                    file.path()));
  const TemporaryFile other("controller: smoke\n");
  CHECK(refusal({"-np", "1", "--config-file", other.path(), "x"}) ==
        fmt::format("controller: 'smoke' (config {}:1:1) must be gloo or mpi", other.path()));
  CHECK(refusal({"-np", "1", "--config-file", "no/such", "x"}) ==
        "config file 'no/such': No such file or directory");
}

TEST_CASE("the config file may choose mpirun, and --gloo overrides it") {
  const TemporaryFile file("controller: MPI\n");
  CHECK(parse({"-np", "1", "--config-file", file.path(), "x"})->options.mpi);
  CHECK_FALSE(parse({"-np", "1", "--gloo", "--config-file", file.path(), "x"})->options.mpi);
  CHECK(refusal({"-np", "1", "--gloo", "--mpi", "x"}) == "--gloo excludes --mpi");
}

TEST_CASE("a missing command is refused") {
  CHECK(refusal({"-np", "2"}) == "no command to run is given");
}

TEST_CASE("the number of ranks is a positive whole number") {
  for (const auto* text : {"0", "-1", "two", "1.5", "1000000000", "99999999999999999999"}) {
    CHECK(refusal({"-np", text, "x"}) ==
          fmt::format("--num-proc: '{}' must be a whole number from 1 to 1000000", text));
  }
  CHECK(refusal({"-np=", "x"}) == "option '--np' is empty");
}

TEST_CASE("hosts and hostfile exclude each other") {
  CHECK(refusal({"-np", "1", "-H", "a:1", "-hostfile", "f", "x"}) == "--hosts excludes --hostfile");
}

TEST_CASE("help and version need nothing else, and ignore a wrong environment") {
  const Variables wrong{{"HORO_SHM_RING", "x"}};
  for (const auto& [word, action] :
       {std::pair{"--help", RunAction::help}, {"-v", RunAction::version}}) {
    const auto invocation = parse({word}, wrong);
    REQUIRE(invocation);
    CHECK(invocation->action == action);
  }
  CHECK(refusal({"--explain-config"}, wrong) ==
        "shm.ring: 'x' (environment HORO_SHM_RING) must be a whole number from 2 to 64");
}

TEST_CASE("explain-config and check-build need no command") {
  CHECK(parse({"--explain-config", "--json"})->action == RunAction::explain_config);
  CHECK(parse({"-cb"})->action == RunAction::check_build);
}

TEST_CASE("of an option that is given twice, the last one counts") {
  CHECK(parse({"-np", "2", "-n", "3", "x"})->options.np == 3);
  CHECK(parse({"-H", "a:1", "-H", "b:1", "x"})->options.hosts == "b:1");
}
