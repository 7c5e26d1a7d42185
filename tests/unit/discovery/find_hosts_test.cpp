// SPDX-License-Identifier: Apache-2.0
#include "discovery/search/find_hosts.hpp"

#include <cerrno>
#include <fstream>
#include <map>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"

using namespace horo;
using namespace horo::discovery;
using namespace std::chrono_literals;

namespace {

using Variables = std::map<std::string, std::string>;

Result<FoundHosts> find(HostRequest request, const Variables& variables = {}) {
  request.environment = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  if (request.timeout == Duration{}) request.timeout = 30s;
  return find_hosts(request);
}

class Script {
 public:
  explicit Script(const std::string& text, mode_t mode = 0700) {
    const int fd = mkstemp(path_.data());
    REQUIRE(fd >= 0);
    close(fd);
    std::ofstream(path_) << text;
    chmod(path_.c_str(), mode);
  }

  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  ~Script() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/horo-script-XXXXXX";
};

const Variables kSlurm{
    {"SLURM_JOB_ID", "42"}, {"SLURM_JOB_NODELIST", "h[1-2]"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}};

}  // namespace

TEST_CASE("given hosts have priority over the scheduler, and the scheduler over this machine") {
  CHECK(find({.list = "a:2", .here_slots = 1}, kSlurm).value().source == "-H");
  const auto job = find({.here_slots = 1}, kSlurm);
  REQUIRE(job);
  CHECK(job->source == "Slurm job 42");
  CHECK(job->hosts.slots() == 4);
  CHECK_THAT(job->why, Catch::Contains("SLURM_JOB_ID is set; nodes from SLURM_JOB_NODELIST"));
  auto both = kSlurm;
  both.emplace("LSB_JOBID", "7");
  CHECK(find({}, both).value().source == "Slurm job 42");
  const auto here = find({.here_slots = 3});
  CHECK(here.value().source == "this machine");
  CHECK(here.value().hosts.hosts() == std::vector<Host>{{"localhost", 3}});
  CHECK_THAT(find({}).error().message, Catch::Contains("add -np N"));
}

TEST_CASE("an allocation that cannot be read is never replaced by this machine") {
  for (const auto* job : {"SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID"}) {
    INFO(job);
    const auto found = find({.here_slots = 2}, {{job, "1"}});
    REQUIRE(!found);
    CHECK(found.error().code == Errc::unavailable);
    CHECK_THAT(found.error().message, Catch::Contains("with -H"));
  }
}

TEST_CASE("a discovery script prints hosts in the form of a host file") {
  const Script script("#!/bin/sh\necho a:2\necho '# none'\necho b\n");
  const auto found = find({.script = script.path(), .default_slots = 4});
  REQUIRE(found);
  CHECK(found->hosts.hosts() == std::vector<Host>{{"a", 2}, {"b", 4}});
  CHECK(found->source == fmt::format("discovery script '{}'", script.path()));
}

TEST_CASE("a discovery script may have arguments, which are split as a shell does") {
  const Script script("#!/bin/sh\necho \"$1:$#\"\n");
  const auto found = find({.script = fmt::format("{} 'node7' \"a b\"", script.path())});
  REQUIRE(found);
  CHECK(describe(found->hosts) == "node7:2");
}

TEST_CASE("a discovery script with signs of the shell is run by the shell") {
  const Script script("#!/bin/sh\necho a:2\necho b:3\n");
  const auto found =
      find({.script = fmt::format("{} | grep -v a; echo c:$((1 + 1))", script.path())});
  REQUIRE(found);
  CHECK(describe(found->hosts) == "b:3, c:2");
}

TEST_CASE("a discovery script may name no host only for a job that waits for hosts") {
  const Script script("#!/bin/sh\n");
  const auto found = find({.script = script.path(), .no_hosts = NoHosts::allowed});
  REQUIRE(found);
  CHECK(found->hosts.empty());
  CHECK(found->may_change);
  CHECK_FALSE(find({.list = "a:2"})->may_change);
}

TEST_CASE("an elastic job follows the nodes that its Slurm job has now") {
  std::string folder = "/tmp/horo-squeue-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const auto program = folder + "/squeue";
  const auto answers = [&](const std::string& text) {
    std::ofstream(program) << "#!/bin/sh\n" << text << '\n';
    chmod(program.c_str(), 0700);
  };
  auto variables = kSlurm;
  variables["SLURM_TASKS_PER_NODE"] = "2,3";
  variables["PATH"] = "/nowhere:" + folder;
  const HostRequest elastic{.no_hosts = NoHosts::allowed};

  answers(R"(echo "h[2-3]"; [ "$*" = "--noheader --jobs=42 --format=%N" ])");
  const auto found = find(elastic, variables);
  REQUIRE(found);
  CHECK(found->hosts.hosts() == std::vector<Host>{{"h2", 3}, {"h3", 2}});
  CHECK(found->may_change);
  CHECK(found->pause == 10s);  // Slurm's controller serves all users.
  CHECK_THAT(found->why, Catch::Contains("asked again by squeue"));

  answers("echo");
  CHECK(find(elastic, variables).value().hosts.empty());
  answers("echo invalid job id >&2; exit 1");
  CHECK_THAT(find(elastic, variables).error().message,
             Catch::Contains("Slurm job 42") && Catch::Contains("invalid job id"));
  answers("echo 'h[2-'");
  CHECK_THAT(find(elastic, variables).error().message, Catch::Contains("squeue's list"));

  // Other jobs, and jobs of several components, keep the nodes of their environment.
  CHECK(find({}, variables).value().hosts.find("h1") != nullptr);
  variables["SLURM_HET_SIZE"] = "1";
  CHECK_FALSE(find(elastic, variables).value_or(FoundHosts{}).may_change);
  variables.erase("SLURM_HET_SIZE");
  unlink(program.c_str());
  CHECK_FALSE(find(elastic, variables)->may_change);
  rmdir(folder.c_str());
}

TEST_CASE("an elastic job follows the file of its LSF or PBS job, and another job does not") {
  const Script file("a\nb\n");
  const HostRequest elastic{.no_hosts = NoHosts::allowed};
  const std::vector<Variables> jobs{
      {{"LSB_JOBID", "7"}, {"LSB_DJOB_HOSTFILE", file.path()}, {"LSB_MCPU_HOSTS", "a 1 b 1 c 1"}},
      {{"PBS_JOBID", "7"}, {"PBS_NODEFILE", file.path()}}};
  for (const auto& job : jobs) {
    INFO(job.begin()->first);
    CHECK(find(elastic, job)->may_change);
    CHECK_FALSE(find({}, job)->may_change);
    CHECK(find(elastic, job)->hosts.size() == 2);
    std::ofstream(file.path()) << "a\n";
    CHECK(find(elastic, job)->hosts.size() == 1);
    std::ofstream(file.path()) << "";
    CHECK_FALSE(find(elastic, job));
    std::ofstream(file.path()) << "a\nb\n";
  }
  CHECK_FALSE(find(elastic, {{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "a 1"}})->may_change);
}

TEST_CASE("the error for a failed discovery script has its end and the last line of its errors") {
  const auto [text, part] = GENERATE(table<std::string, std::string>({
      {"#!/bin/sh\necho a:2\necho first >&2\necho 'no cluster' >&2\nexit 3\n",
       "it ended with exit code 3: no cluster"},
      {"#!/bin/sh\nkill -9 $$\n", "it was killed by signal 9"},
      {"#!/bin/sh\necho a:2\necho b:x\n", "line 2: slots in 'b:x'"},
      {"#!/bin/sh\n", "it names no host"},
      {"echo a:2\n", "a script must begin with #!"},
      {"#!/nonexistent\n", "the interpreter that its first line names, is missing"},
  }));
  const Script script(text);
  INFO(text);
  const auto found = find({.script = script.path()});
  REQUIRE(!found);
  CHECK_THAT(found.error().message, Catch::Contains(script.path()) && Catch::Contains(part));
  const Script plain("#!/bin/sh\n", 0600);
  // Root may read the file but not execute it.
  CHECK(find({.script = plain.path()}).error().code == Errc::permission_denied);
}

TEST_CASE("a discovery script ends when nobody waits for its hosts any longer") {
  const UniqueFd cancel(eventfd(1, EFD_CLOEXEC));
  const Script script("#!/bin/sh\nkill -STOP $$\n");
  const auto found = find({.script = script.path(), .timeout = 1h, .cancel = cancel.value()});
  REQUIRE(!found);
  CHECK(found.error().code == Errc::cancelled);
  // No child is left, not even a zombie.
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE(
    "a discovery script that does not end is killed together with the processes that it started") {
  const auto mark = fmt::format("/tmp/horo-script-mark-{}", getpid());
  const Script script(fmt::format("#!/bin/sh\nsleep 1000 &\necho $! > {}\nsleep 1000\n", mark));
  const auto found = find({.script = script.path(), .timeout = 1s});
  REQUIRE(!found);
  CHECK(found.error().code == Errc::timed_out);
  pid_t left = 0;
  std::ifstream(mark) >> left;
  unlink(mark.c_str());
  REQUIRE(left > 0);
  // The kernel ends the process a little later, and process 1 may reap it late: it is gone or a
  // zombie.
  const auto over = [left] {
    std::string line;
    std::getline(std::ifstream(fmt::format("/proc/{}/stat", left)), line);
    return line.empty() || line.find(") Z ") != std::string::npos ||
           line.find(") X ") != std::string::npos;
  };
  const auto deadline = Deadline::in(SteadyClock::instance(), 20s);
  while (!over() && !deadline.expired(SteadyClock::instance().now())) poll(nullptr, 0, 5);
  CHECK(over());
}
