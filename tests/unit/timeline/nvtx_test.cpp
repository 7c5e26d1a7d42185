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

TEST_CASE("ranges reach a profiler that has named its library, without a library of NVTX") {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("horo-nvtx-{}", getpid());
  REQUIRE(setenv("NVTX_STANDIN_FILE", path.c_str(), 1) == 0);
  REQUIRE(setenv("NVTX_STANDIN_REFUSES", "1", 1) == 0);
  const auto refused = Nvtx::attach(HORO_TEST_NVTX);
  unsetenv("NVTX_STANDIN_REFUSES");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == fmt::format("no NVTX ranges: {} takes none", HORO_TEST_NVTX));
  REQUIRE(setenv("NVTX_INJECTION64_PATH", HORO_TEST_NVTX, 1) == 0);
  const auto nvtx = Nvtx::find();
  unsetenv("NVTX_INJECTION64_PATH");
  REQUIRE(nvtx);
  const auto range = nvtx->begin("ALLREDUCE one");
  nvtx->end(range);
  std::ostringstream lines;
  lines << std::ifstream(path).rdbuf();
  CHECK(lines.str() == fmt::format("{0} begin {1} ALLREDUCE one\n{0} end {1} \n", getpid(), range));
  std::filesystem::remove(path);
  const auto other = Nvtx::attach("libc.so.6");
  REQUIRE_FALSE(other);
  CHECK(other.error().message == "no NVTX ranges: libc.so.6 has no InitializeInjectionNvtx2");
  CHECK_FALSE(Nvtx::attach("libhoro-no-such.so.1"));
}

TEST_CASE("a library without the NVTX functions is refused, and the error names what is missing") {
  const auto none = Nvtx::load("libhoro-no-such.so.1");
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("libhoro-no-such.so.1") != std::string::npos);
  const auto other = Nvtx::load("libc.so.6");
  REQUIRE_FALSE(other);
  CHECK(other.error().message == "no NVTX ranges: libc.so.6 has no nvtxRangeStartA");
}
