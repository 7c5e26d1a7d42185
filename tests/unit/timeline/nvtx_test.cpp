// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/nvtx.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <catch2/catch.hpp>

using horo::timeline::Nvtx;

TEST_CASE("each range reaches the NVTX library with its text and its end") {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("horo-nvtx-{}", getpid());
  REQUIRE(setenv("NVTX_STANDIN_FILE", path.c_str(), 1) == 0);
  const auto nvtx = Nvtx::load(HORO_TEST_NVTX);
  REQUIRE(nvtx);
  const auto one = nvtx->begin("ALLREDUCE one");
  const auto two = nvtx->begin("ALLREDUCE two");
  nvtx->end(one);
  nvtx->end(two);
  std::ostringstream lines;
  lines << std::ifstream(path).rdbuf();
  const auto line = [](const char* what, std::uint64_t range, const char* text) {
    return fmt::format("{} {} {} {}\n", getpid(), what, range, text);
  };
  CHECK(lines.str() == line("begin", one, "ALLREDUCE one") + line("begin", two, "ALLREDUCE two") +
                           line("end", one, "") + line("end", two, ""));
  std::filesystem::remove(path);
}

TEST_CASE("a library without the NVTX functions is refused, and the error names what is missing") {
  const auto none = Nvtx::load("libhoro-no-such.so.1");
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("libhoro-no-such.so.1") != std::string::npos);
  const auto other = Nvtx::load("libc.so.6");
  REQUIRE_FALSE(other);
  CHECK(other.error().message == "no NVTX ranges: libc.so.6 has no nvtxRangeStartA");
}
