// SPDX-License-Identifier: Apache-2.0
// A rank that the kernel kills for memory is reported as such. Needs a memory control group.
#include "agent_job.hpp"

#include <csignal>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::test;

namespace {

/// A group with a limit below this process's group; removed when its last process has ended.
class MemoryGroup {
 public:
  MemoryGroup() {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
      const auto path = line.substr(line.rfind(':') + 1);
      if (line.find(":memory:") != std::string::npos) {
        make("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
      } else if (line.starts_with("0::")) {
        make("/sys/fs/cgroup", path, "memory.max");
      }
      if (ready()) return;
    }
  }

  ~MemoryGroup() {
    if (ready()) rmdir(folder_.c_str());
  }

  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool ready() const { return !folder_.empty(); }

  bool enter() const { return write(folder_ + "/cgroup.procs", "0"); }

 private:
  static bool write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good();
  }

  void make(const std::string& mount, const std::string& path, const std::string& limit) {
    const auto folder = fmt::format("{}{}/horo-test-{}", mount, path, getpid());
    if (mkdir(folder.c_str(), 0755) != 0) return;
    if (write(fmt::format("{}/{}", folder, limit), "67108864")) {
      folder_ = folder;
    } else {
      rmdir(folder.c_str());
    }
  }

  std::string folder_;
};

}  // namespace

TEST_CASE("a rank that was killed for memory is distinguished from one that was killed by a user") {
  const MemoryGroup group;
  if (!group.ready()) {
    WARN("no memory control group can be made here: not tested");
    return;
  }
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!group.enter()) _exit(2);
    auto loop = make_loop();
    Job job(*loop);
    auto spec = spec_for(2, {actor(), "say=up", "only=1", "eat=256", "wait"});
    if (!job.start(std::move(spec)) || !job.run()) _exit(3);
    const auto& eater = job.exits.at(Rank{1});
    if (!WIFSIGNALED(eater.wait_status) || WTERMSIG(eater.wait_status) != SIGKILL) _exit(4);
    _exit(eater.oom_killed && !job.exits.at(Rank{0}).oom_killed ? 0 : 5);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
