// SPDX-License-Identifier: Apache-2.0
// Workers leave a generation at any point, many times, and nothing of it is left.
#include "elastic_job.hpp"

#include <csignal>
#include <cstdio>

#include <catch2/catch.hpp>

using namespace elastic_test;
using horo::Notice;

namespace {

const std::vector<Member> kTwo{{0}, {1}};

void next(Job& job) {
  for (const int worker : {0, 1}) job[worker].tell("init");
  job.form(kTwo, 2);
  for (const int worker : {0, 1})
    CHECK(job[worker].hear() == fmt::format("in {} {} 2 2", job.generation(), worker));
}

}  // namespace

TEST_CASE("a notice is seen until a generation includes it") {
  Job job(2);
  job.begin_with({0, 0});
  job.all({0, 1}, "change", "change 0 0");
  horo::post_notice(job.board(), {.sequence = 1, .flags = Notice::kAdded});
  job.all({0, 1}, "change", "change 1 2");
  horo::post_notice(job.board(), {.sequence = 2, .flags = Notice::kRemoved});
  job.all({0, 1}, "change", "change 2 1");
  job.all({0, 1}, "shutdown", "out");
  for (const int worker : {0, 1}) job[worker].tell("init");
  job.form(kTwo, 2, 1);
  for (const int worker : {0, 1}) job[worker].hear();
  job.all({0, 1}, "change", "change 2 1");
  job.all({0, 1}, "shutdown", "out");
  for (const int worker : {0, 1}) job[worker].tell("init");
  job.form(kTwo, 2, 2);
  for (const int worker : {0, 1}) job[worker].hear();
  job.all({0, 1}, "change", "change 0 0");
}

TEST_CASE("a generation is left with operations, sets, memory and a join in use") {
  const auto trace = [](const char* generation) {
    return fmt::format("/tmp/horo-elastic-{}{}.json", getpid(), generation);
  };
  Job job(3, {{"HOROVOD_TIMELINE", trace("")}, {"HORO_AUTOTUNE", "1"}});
  job.begin_with({0, 0, 0});
  job.all({0, 1, 2}, "sum", "sum 6");
  job.all({0, 1, 2}, "set", "set");
  job.all({0, 1, 2}, "alloc", "held 1");
  job.all({0, 1}, "pend 500", "pending 500");
  job[0].kill(SIGCONT);  // Harmless; the worker is in no special state.
  job[2].kill(SIGKILL);
  job.all({0, 1}, "ends", "ended peer_lost");
  job.all({0, 1}, "shutdown", "out");
  next(job);
  job.all({0, 1}, "sum", "sum 3");
  job.all({0, 1}, "alloc", "held 2");
  CHECK(job[0].ask("join") == "joining");
  job.all({0, 1}, "shutdown", "out");
  next(job);
  job.all({0, 1}, "set", "failed duplicate");  // Ranks 0 and 1 are the world now.
  job.all({0, 1}, "alloc", "held 3");
  job.all({0, 1}, "sum", "sum 3");
  for (const char* generation : {"", ".g2", ".g3"}) {
    INFO("the trace of generation '" << generation << "'");
    CHECK(std::remove(trace(generation).c_str()) == 0);
  }
}

TEST_CASE("operations and tensors of an earlier generation are not taken for those of this one") {
  Job job(2);
  job.begin_with({0, 0});
  job.all({0, 1}, "pend 1", "pending 1");
  job.all({0, 1}, "shutdown", "out");
  next(job);
  for (const int worker : {0, 1}) {
    job[worker].tell("pend 0");
    CHECK(job[worker].hear() == "pending 0");
    CHECK(job[worker].ask("stale") == "stale not_found invalid_argument");
  }
  job.all({0, 1}, "sum", "sum 3");
}

TEST_CASE("a rank that leaves ends the operations of the others with shut_down") {
  Job job(2);
  job.begin_with({0, 0});
  job[0].tell("sum");
  job.all({1}, "shutdown", "out");
  CHECK(job[0].hear().substr(0, 16) == "failed shut_down");
  job.all({0}, "shutdown", "out");
  next(job);
  job.all({0, 1}, "sum", "sum 3");
}

TEST_CASE("a hundred generations leave no descriptor, thread, mapping or memory") {
  struct Counts {
    int descriptors = 0, threads = 0, mappings = 0;
    long private_kib = 0;
  };

  Job job(2);
  job.begin_with({0, 0});
  const auto count = [&job] {
    Counts c;
    const auto text = job[1].ask("counts");
    REQUIRE(std::sscanf(text.c_str(), "counts %d %d %d %ld", &c.descriptors, &c.threads,
                        &c.mappings, &c.private_kib) == 4);
    return c;
  };
  Counts before;
  for (int i = 0; i < 100; ++i) {
    job.all({0, 1}, "sum", "sum 3");
    if (i % 3 == 0) job.all({0, 1}, "pend 3", "pending 3");
    job.all({0, 1}, "shutdown", "out");
    next(job);
    if (i == 9) before = count();
  }
  const auto after = count();
  CHECK(after.descriptors <= before.descriptors);
  CHECK(after.threads <= before.threads);
  CHECK(after.mappings <= before.mappings + 4);
  CHECK(after.private_kib <= before.private_kib + 4096);
}
