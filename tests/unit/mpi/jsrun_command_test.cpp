// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/jsrun_command.hpp"

#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using Words = std::vector<std::string>;

namespace {

const std::vector<PlacedHost> kHosts{{.name = "a", .ranks = {Rank{0}, Rank{1}, Rank{2}}},
                                     {.name = "b", .ranks = {Rank{3}}}};

}  // namespace

TEST_CASE("a resource file gives each rank an equal part of its host, as the fullest host allows") {
  CHECK(compose_erf(kHosts, 16).value() ==
        "overlapping_rs: allow\n"
        "cpu_index_using: logical\n"
        "\n"
        "rank: 0: { hostname: a; cpu: {0-4} ; gpu: * ; mem: * }\n"
        "rank: 1: { hostname: a; cpu: {5-9} ; gpu: * ; mem: * }\n"
        "rank: 2: { hostname: a; cpu: {10-14} ; gpu: * ; mem: * }\n"
        "\n"
        "rank: 3: { hostname: b; cpu: {0-4} ; gpu: * ; mem: * }\n");
  CHECK(compose_erf(kHosts, 2).error().message.starts_with(
      "3 ranks on host 'a', which has 2 hardware threads"));
}

TEST_CASE("jsrun gets the resource file, or the user's binding options instead") {
  JsrunRequest request{.program = "jsrun", .erf = "/tmp/erf", .agent = {"agent", "--dial-in"}};
  CHECK(compose_jsrun(request) == Words{"jsrun", "--erf_input", "/tmp/erf", "agent", "--dial-in"});
  request.binding = {"-n", "4"};
  request.smp_arguments = "-tcp -x A";
  CHECK(compose_jsrun(request) ==
        Words{"jsrun", "-n", "4", "--smpiargs", "-tcp -x A", "agent", "--dial-in"});
}

TEST_CASE("the threads of a core are read from lscpu's English output") {
  CHECK(threads_per_core("CPU(s): 8\nThread(s) per core:  4\nCore(s) per socket: 2\n") == 4);
  CHECK(threads_per_core("Thread(s) per core: many\n") == 0);
  CHECK(threads_per_core("Thread(s) pro Kern: 4\n") == 0);
}

TEST_CASE("a scratch file is readable by its user only, and removed with its object") {
  std::string path;
  {
    const auto file = ScratchFile::write("text\n").value();
    path = file.path();

    struct stat status {};

    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600U);
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    CHECK(text.str() == "text\n");
  }
  CHECK(access(path.c_str(), F_OK) != 0);
}
