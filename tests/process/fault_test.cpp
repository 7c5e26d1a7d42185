// SPDX-License-Identifier: Apache-2.0
// The first, the second, the third, ... system call of an agent's start fails: each time the job
// works or ends with one stated error, and nothing is left.
#include "agent_job.hpp"

#include <fcntl.h>
#include <fstream>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::test;

namespace {

/// The agent that is started next, and its guard, fail at call number `at` (fault.c).
class Fault {
 public:
  explicit Fault(int at) : log_(fmt::format("/tmp/horo-test-fault-{}", getpid())) {
    unlink(log_.c_str());
    setenv("LD_PRELOAD", HORO_TEST_FAULT, 1);
    setenv("HORO_FAULT_AT", std::to_string(at).c_str(), 1);
    setenv("HORO_FAULT_LOG", log_.c_str(), 1);
  }

  ~Fault() {
    for (const char* name : {"LD_PRELOAD", "HORO_FAULT_AT", "HORO_FAULT_LOG"}) unsetenv(name);
    unlink(log_.c_str());
  }

  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

  /// The call that failed; empty: there were fewer calls.
  std::string name() const {
    std::string text;
    std::ifstream file(log_);
    std::getline(file, text);
    return text;
  }

 private:
  std::string log_;
};

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

bool has_living_child() {
  for (const int pid : children_of(getpid())) {
    if (alive(pid)) return true;
  }
  return false;
}

constexpr std::size_t kRanks = 3;

bool all_well(const Job& job) {
  if (job.survivors != 0 || job.exits.size() != kRanks) return false;
  for (const auto& [rank, exit] : job.exits) {
    if (exit.wait_status != 0) return false;
  }
  return true;
}

void run(Job& job) {
  REQUIRE(job.start(spec_for(kRanks, {actor(), "escape", "say=up"})));
  REQUIRE(job.run());
  CHECK(living_with(job.marker()).empty());
}

void check_refusal(const Job& job) {
  if (job.lost) {
    CHECK_THAT(job.lost->message, Catch::Contains("'testhost'"));
    CHECK_THAT(job.lost->message, !Catch::Contains("no reason"));
    return;
  }
  REQUIRE(job.spawn_failures.size() == 1);
  CHECK_THAT(job.spawn_failures.begin()->second.message, Catch::Contains(" "));
  CHECK(job.survivors == 0);
}

}  // namespace

TEST_CASE("whichever call of an agent's start fails, the error is stated and nothing is left") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // Their runtime has to be the first library that is loaded.
#endif
  auto loop = make_loop();
  {
    Job job(*loop);  // The first job creates things that later jobs use.
    run(job);
  }
  const int descriptors = open_descriptors();
  int worked = 0;
  int refused = 0;
  for (bool failed = true; failed;) {
    const int at = worked + refused;
    REQUIRE(at < 1000);
    const Fault fault(at);
    INFO("call " << at);
    Job job(*loop);
    run(job);
    INFO("it was " << fault.name());
    failed = !fault.name().empty();
    if (all_well(job)) {
      ++worked;
    } else {
      ++refused;
      check_refusal(job);
    }
    job.drop_agent();
    if (job.control_group)
      CHECK(eventually([&] { return access(job.control_group->path.c_str(), F_OK) != 0; }));
    CHECK(eventually([] { return !has_living_child(); }));
    CHECK(open_descriptors() == descriptors);
  }
  CHECK(worked > 1);
  CHECK(refused > 10);
}
