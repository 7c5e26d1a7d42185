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
