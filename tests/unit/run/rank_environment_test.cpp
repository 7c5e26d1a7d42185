// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/rank_environment.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "launcher/protocol/free_ports.hpp"

using namespace horo;
using namespace horo::launcher;

TEST_CASE(
    "ranks inherit all variables except those that describe a rank, shell functions and OLDPWD") {
  const char* const entries[] = {"HOME=/root",
                                 "EMPTY=",
                                 "EQUALS=a=b",
                                 "HORO_RANK=3",
                                 "RANK=3",
                                 "TF_CONFIG={}",
                                 "OLDPWD=/elsewhere",
                                 "BASH_FUNC_f%%=() { :; }",
                                 "OLDPWD2=x",
                                 "=odd",
                                 "odd",
                                 "HORO_JOB_ID=1",
                                 "HOME=/again",
                                 nullptr};
  const auto environment = inherited_environment(entries, {});
  CHECK(environment ==
        Environment{{"HOME", "/root"}, {"EMPTY", ""}, {"EQUALS", "a=b"}, {"OLDPWD2", "x"}});
}

TEST_CASE("a variable that all ranks get anyway is not inherited") {
  const char* const entries[] = {"HORO_CYCLE_TIME=1ms", "HOROVOD_CYCLE_TIME=1", "A=b", nullptr};
  CHECK(inherited_environment(entries, {{"HORO_CYCLE_TIME", "5ms"}, {"HOROVOD_CYCLE_TIME", "5"}}) ==
        Environment{{"A", "b"}});
}

TEST_CASE("variables of the launcher's own task and node of Slurm are not inherited") {
  const char* const entries[] = {
      "SLURM_JOB_ID=5", "SLURM_PROCID=0", "SLURM_LOCALID=0",   "SLURM_TASK_PID=17",
      "SLURM_GTIDS=0",  "SLURM_NODEID=0", "SLURMD_NODENAME=a", "SLURM_JOB_NODELIST=a[1-2]",
      nullptr};
  CHECK(inherited_environment(entries, {}) ==
        Environment{{"SLURM_JOB_ID", "5"}, {"SLURM_JOB_NODELIST", "a[1-2]"}});
}

TEST_CASE("a filter passes the names that it allows and does not deny") {
  const EnvironmentFilter filter{.allow = "SLURM*,HOME", .deny = "SLURM_NODE*"};
  CHECK(filter.passes("SLURM_JOB_ID"));
  CHECK(filter.passes("HOME"));
  CHECK_FALSE(filter.passes("SLURM_NODEID"));
  CHECK_FALSE(filter.passes("USER"));
}

TEST_CASE("each host's ranks get that host's name and number of Slurm") {
  const char* const entries[] = {"SLURM_JOB_ID=5", "SLURM_JOB_NODELIST=a[1-3]",
                                 "SLURMD_NODENAME=a2", nullptr};
  const auto lookup = [&](const char* name) { return find_variable(entries, name); };
  CHECK(slurm_node_variables(lookup, "a1", false) ==
        Environment{{"SLURMD_NODENAME", "a1"}, {"SLURM_NODEID", "0"}});
  CHECK(slurm_node_variables(lookup, "a3", false) ==
        Environment{{"SLURMD_NODENAME", "a3"}, {"SLURM_NODEID", "2"}});
  CHECK(slurm_node_variables(lookup, "localhost", true) ==
        Environment{{"SLURMD_NODENAME", "a2"}, {"SLURM_NODEID", "1"}});
  CHECK(slurm_node_variables(lookup, "other", false).empty());
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  CHECK(slurm_node_variables(nothing, "a1", false).empty());
}

TEST_CASE("free ports differ and are outside the kernel's range of temporary ports") {
  const auto ports = launcher::free_ports(65).value();
  REQUIRE(ports.size() == 65);
  CHECK(std::set<int>(ports.begin(), ports.end()).size() == 65);
  CHECK(std::all_of(ports.begin(), ports.end(),
                    [](int port) { return port >= 10'000 && port < 32'768; }));
}

TEST_CASE("asking for more ports than exist is an error") {
  const auto ports = launcher::free_ports(30'000);
  REQUIRE(!ports);
  CHECK(ports.error().code == Errc::unavailable);
}
