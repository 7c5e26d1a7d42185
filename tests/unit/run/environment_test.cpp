// SPDX-License-Identifier: Apache-2.0
#include "apps/run/environment.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "launcher/agent/free_ports.hpp"

using namespace horo;
using namespace horo::apps;

TEST_CASE("ranks inherit everything but what describes a rank, shell functions and OLDPWD") {
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

TEST_CASE("what all ranks get anyway is not inherited") {
  const char* const entries[] = {"HORO_CYCLE_TIME=1ms", "HOROVOD_CYCLE_TIME=1", "A=b", nullptr};
  CHECK(inherited_environment(entries, {{"HORO_CYCLE_TIME", "5ms"}, {"HOROVOD_CYCLE_TIME", "5"}}) ==
        Environment{{"A", "b"}});
}

TEST_CASE("free ports are different and outside the range that the kernel hands out") {
  const auto ports = launcher::free_ports(65).value();
  REQUIRE(ports.size() == 65);
  CHECK(std::set<int>(ports.begin(), ports.end()).size() == 65);
  CHECK(std::all_of(ports.begin(), ports.end(),
                    [](int port) { return port >= 10'000 && port < 32'768; }));
}

TEST_CASE("more ports than there are is an error") {
  const auto ports = launcher::free_ports(30'000);
  REQUIRE(!ports);
  CHECK(ports.error().code == Errc::unavailable);
}
