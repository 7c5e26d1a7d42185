// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/variable_warnings.hpp"

#include <map>
#include <string>

#include <catch2/catch.hpp>

#include "base/knobs/controller.hpp"

using namespace horo;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

std::vector<KnobWarning> warnings_of(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return variable_warnings(environment.data());
}

/// The text of the only warning; empty: there is none.
std::string warning_of(const char* entry) {
  const auto warnings = warnings_of({"PATH=/", entry});
  if (warnings.empty()) return {};
  REQUIRE(warnings.size() == 1);
  return warnings.front().text;
}

}  // namespace

TEST_CASE("a variable whose name is almost a knob's gives a warning") {
  CHECK(warnings_of({"HOME=/", "HORO_FUSION_TRESHOLD=1MiB"}) ==
        std::vector<KnobWarning>{{"HORO_FUSION_TRESHOLD",
                                  "the variable HORO_FUSION_TRESHOLD has no effect; did you mean "
                                  "HORO_FUSION_THRESHOLD?"}});
}

TEST_CASE("correct names, ranks' variables and other programs' variables give no warning") {
  for (const auto* entry :
       {"HORO_FUSION_THRESHOLD=1MiB", "HORO_TAG=off", "HORO_RANK=0", "HORO_SIZE=2",
        "HORO_LOCAL_RANK=0", "HORO_CONFIG_FILE=x", "HORO_TAIL=x", "HORO_BIN=x", "HORO_LIBRARY=x",
        "HORO_WARNED=x", "PATH=x", "HOROVOD_RANK=0", "HOROVOD_FUSION_THRESHOLD=1",
        "HOROVOD_GLOO_RENDEZVOUS_ADDR=h"}) {
    CHECK(warning_of(entry).empty());
  }
}

TEST_CASE("an unknown variable of Horovod gives a warning that names the nearest known one") {
  CHECK(warning_of("HOROVOD_FUSION_TRESHOLD=1") ==
        "the variable HOROVOD_FUSION_TRESHOLD is unknown and has no effect; did you mean "
        "'HOROVOD_FUSION_THRESHOLD'?");
  CHECK(warning_of("HOROVOD_ZZZZZZZZ=1") ==
        "the variable HOROVOD_ZZZZZZZZ is unknown and has no effect");
}

TEST_CASE("variables of Horovod that have no effect here give a warning with the reason") {
  for (const auto* entry :
       {"HOROVOD_ENABLE_XLA_OPS=1", "HOROVOD_BATCH_D2D_MEMCOPIES=0",
        "HOROVOD_ADASUM_MPI_CHUNK_SIZE=4096", "HOROVOD_CCL_CACHE=1", "HOROVOD_SPARK_WORK_DIR=/"}) {
    const std::string name(entry, std::string(entry).find('='));
    CAPTURE(name);
    CHECK(warning_of(entry).starts_with("the variable " + name + " has no effect: "));
  }
}

TEST_CASE("switches of Horovod that are off, and variables of its build, give no warning") {
  for (const auto* entry : {"HOROVOD_ELASTIC=1", "HOROVOD_ELASTIC_TIMEOUT=9",
                            "HOROVOD_ENABLE_XLA_OPS=", "HOROVOD_DISABLE_GROUP_FUSION=1",
                            "HOROVOD_DYNAMIC_PROCESS_SETS=1", "HOROVOD_GPU_OPERATIONS=NCCL",
                            "HOROVOD_WITH_PYTORCH=1", "HOROVOD_NCCL_HOME=/usr"}) {
    CHECK(warning_of(entry).empty());
  }
}

TEST_CASE("ranks leave out what the launcher has warned of") {
  const std::vector<KnobWarning> all{{"autotune", "a"}, {"auto", "b"}, {"HOROVOD_X", "c"}};
  CHECK(without_warned(all, "") == all);
  CHECK(without_warned(all, "autotune,HOROVOD_X") == std::vector<KnobWarning>{{"auto", "b"}});
}

TEST_CASE("a controller is gloo or mpi, in any case of letters, except in a rank") {
  std::map<std::string, std::string> variables;
  const auto check = [&variables] {
    return check_controllers([&variables](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK(check());
  variables["HOROVOD_CONTROLLER"] = "MPI";
  CHECK(check());
  variables["HOROVOD_CONTROLLER"] = "x";
  REQUIRE_FALSE(check());
  CHECK(check().error().message ==
        "controller: 'x' (environment HOROVOD_CONTROLLER) must be gloo or mpi");
  variables["HORO_RANK"] = "0";
  CHECK(check());
  CHECK(is_mpi_controller("Mpi"));
  CHECK_FALSE(is_mpi_controller("gloo"));
}
