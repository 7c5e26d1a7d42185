// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/find_program.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;

namespace {

/// Two folders, `first` and `second`, for a PATH.
struct Folders {
  std::string root = "/tmp/horo_command_XXXXXX";

  Folders() {
    REQUIRE(mkdtemp(root.data()) != nullptr);
    for (const auto* name : {"/first", "/second"}) std::filesystem::create_directory(root + name);
  }

  ~Folders() { std::filesystem::remove_all(root); }

  std::string path() const { return root + "/first:" + root + "/second"; }

  void add(const std::string& name, mode_t mode) const {
    std::ofstream(root + name) << "#!/bin/sh\n";
    chmod((root + name).c_str(), mode);
  }
};

}  // namespace

TEST_CASE("a bare name is looked for in PATH, and the first executable file is taken") {
  const Folders folders;
  folders.add("/first/tool", 0644);
  folders.add("/second/tool", 0755);
  CHECK(find_program("tool", folders.path().c_str()).value() == folders.root + "/second/tool");
  folders.add("/first/tool", 0755);
  CHECK(find_program("tool", folders.path().c_str()).value() == folders.root + "/first/tool");
}

TEST_CASE("a folder in PATH is not a command and does not end the search") {
  const Folders folders;
  std::filesystem::create_directory(folders.root + "/first/tool");
  CHECK(find_program("tool", folders.path().c_str()).error().code == Errc::not_found);
  folders.add("/second/tool", 0755);
  CHECK(find_program("tool", folders.path().c_str()).value() == folders.root + "/second/tool");
}

TEST_CASE("a file that is not executable and a missing file give different errors") {
  const Folders folders;
  folders.add("/second/tool", 0644);
  const auto found = find_program("tool", folders.path().c_str());
  REQUIRE(!found);
  CHECK(found.error().code == Errc::permission_denied);
  CHECK_THAT(found.error().message, Catch::Contains("/second/tool'"));
  CHECK(find_program("none", folders.path().c_str()).error().code == Errc::not_found);
  CHECK(find_program(folders.root + "/second/tool", nullptr).error().code ==
        Errc::permission_denied);
  CHECK(find_program(folders.root + "/none", nullptr).error().code == Errc::not_found);
  CHECK(find_program(folders.root + "/second/tool/x", nullptr).error().code == Errc::not_found);
  CHECK(find_program(folders.root, nullptr).error().code == Errc::permission_denied);
  CHECK(find_program("", nullptr).error().code == Errc::not_found);
}

TEST_CASE("without PATH, the system's folders are searched") {
  CHECK(find_program("sh", nullptr));
}
