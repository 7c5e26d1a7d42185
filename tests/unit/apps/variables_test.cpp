// SPDX-License-Identifier: Apache-2.0
#include "apps/common/variables.hpp"

#include <catch2/catch.hpp>

using horo::apps::mistyped_variables;

TEST_CASE("a variable whose name is almost a knob's gives a warning") {
  const std::vector<const char*> environment{"HOME=/", "HORO_FUSION_TRESHOLD=1MiB", nullptr};
  CHECK(
      mistyped_variables(environment.data()) ==
      std::vector<std::string>{
          "the variable HORO_FUSION_TRESHOLD has no effect; did you mean HORO_FUSION_THRESHOLD?"});
}

TEST_CASE("correct names, ranks' variables and other programs' variables give no warning") {
  const std::vector<const char*> environment{"HORO_FUSION_THRESHOLD=1MiB",
                                             "HORO_TAG=off",
                                             "HORO_RANK=0",
                                             "HORO_SIZE=2",
                                             "HORO_LOCAL_RANK=0",
                                             "HORO_CONFIG_FILE=x",
                                             "HORO_TAIL=x",
                                             "HORO_BIN=x",
                                             "HORO_LIBRARY=x",
                                             "PATH=x",
                                             "HOROVOD_FUSION_TRESHOLD=1",
                                             nullptr};
  CHECK(mistyped_variables(environment.data()).empty());
}
