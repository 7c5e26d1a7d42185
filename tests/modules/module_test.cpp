// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/module.hpp"

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/version.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

Error refusal(const char* name, const char* folder = HORO_TEST_WRONG_MODULES) {
  const auto entry = load_usable_module(name, folder);
  REQUIRE_FALSE(entry);
  return entry.error();
}

bool says(const Error& error, std::string_view what) {
  INFO(error.message);
  return error.message.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("the error for a missing module names its file and how to install it") {
  const auto error = refusal("gloo", "/nowhere");
  CHECK(error.code == Errc::not_found);
  CHECK(says(error, "no /nowhere/horo-backend-gloo.so"));
  CHECK(says(error, "HORO_GLOO=ON"));
  CHECK(says(refusal("tcp", "/nowhere"), "no /nowhere/horo-backend-tcp.so; install Horo again"));
  CHECK(says(refusal("gluu"), "no backend 'gluu'"));
}

TEST_CASE("a module of another version or layout is refused before any call") {
  const auto version = refusal("version");
  CHECK(version.code == Errc::version_mismatch);
  CHECK(says(version, fmt::format("version code {}", version_code() + 1)));
  CHECK(refusal("layout").code == Errc::version_mismatch);
}

TEST_CASE("a library that is not a module, or is another module, is refused") {
  CHECK(refusal("magic").code == Errc::protocol);
  const auto error = refusal("name");
  CHECK(error.code == Errc::protocol);
  CHECK(says(error, "'other'"));
}

TEST_CASE("the error names a missing library that a module needs") {
  const auto error = refusal("dependency");
  CHECK(error.code == Errc::unavailable);
  CHECK(says(error, "libhoro_vanishing.so"));
}

// Runs in a separate process, because a loaded library stays loaded.
TEST_CASE("a library that the machine lacks may lie beside the module that needs it") {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / fmt::format("horo-module-test-{}", ::getpid());
  fs::create_directories(folder / "carried");
  fs::copy_file(HORO_TEST_WRONG_MODULES "/horo-backend-dependency.so",
                folder / "horo-backend-dependency.so");
  std::ofstream(folder / "carried/libneither.so.1") << "no library";
  CHECK(says(refusal("dependency", folder.c_str()), "libhoro_vanishing.so"));
  fs::copy_file(HORO_TEST_VANISHING, folder / "carried/libhoro_vanishing.so");
  std::ofstream(folder / "carried/libhoro_vanishing.so.copyright") << "ours";
  const auto entry = load_module("dependency", folder.string());
  INFO((entry ? "" : entry.error().message));
  CHECK(entry);
  fs::remove_all(folder);
}

TEST_CASE("a module whose device is missing loads and says why it cannot be used") {
  CHECK(load_module("device", HORO_TEST_WRONG_MODULES));
  const auto error = refusal("device");
  CHECK(error.code == Errc::unavailable);
  CHECK(says(error, "no such device"));
}

TEST_CASE("modules are searched for in the folder of the code that loads them") {
  CHECK(module_folder().ends_with("/horo"));
  CHECK(module_folder().front() == '/');
}
