// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/ssh_route.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"

using namespace horo;
using namespace horo::launcher;

namespace {

bool nowhere(const std::string&) {
  return false;
}

constexpr const char* kPlain =
    "user ann\n"
    "hostname node3.example\n"
    "port 2222\n"
    "stricthostkeychecking ask\n"
    "identityfile /u/ann/.ssh/id_ed25519\n"
    "identityfile /u/ann/.ssh/id_rsa\n"
    "proxycommand none\n"
    "globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2\n"
    "userknownhostsfile /u/ann/.ssh/known_hosts /u/ann/.ssh/known_hosts2\n";

std::string reason_of(const std::string& line) {
  const auto route = parse_ssh_config("n", kPlain + line + "\n", nowhere);
  REQUIRE(route);
  CHECK(route->program.empty() == route->reason.empty());
  return route->reason;
}

}  // namespace

TEST_CASE("a route has the settings that ssh -G prints") {
  const auto route = parse_ssh_config("n3", kPlain, nowhere);
  REQUIRE(route);
  CHECK(route->host == "n3");
  CHECK(route->name == "node3.example");
  CHECK(route->known_as == "node3.example");
  CHECK(route->port == 2222);
  CHECK(route->user == "ann");
  CHECK(route->identities.size() == 2);
  CHECK(route->known_hosts.front() == "/u/ann/.ssh/known_hosts");
  CHECK(route->global_known_hosts == "/etc/ssh/ssh_known_hosts");
  CHECK(route->unknown_keys == UnknownKeys::refuse);
  CHECK(route->program.empty());
}

TEST_CASE("a user in user@host overrides the configuration") {
  const auto route = parse_ssh_config("eva@n3", kPlain, nowhere);
  REQUIRE(route);
  CHECK(route->user == "eva");
  CHECK(route->name == "node3.example");
  CHECK(ssh_arguments(*route, {}, "true").at(7) == "eva@n3");
  CHECK(parse_ssh_config("eva@n3", "port 22\n", nowhere)->name == "n3");
}

TEST_CASE("a configuration that needs the program ssh is given to it, with a reason") {
  CHECK(reason_of("compression no").empty());
  CHECK(reason_of("proxyjump gate") == "its configuration has proxyjump gate");
  CHECK(reason_of("proxycommand nc %h %p") == "its configuration has proxycommand nc %h %p");
  CHECK(reason_of("identityagent ~/agent") == "its configuration has an agent of its own, ~/agent");
  CHECK(reason_of("identityagent SSH_AUTH_SOCK").empty());
  CHECK(reason_of("pkcs11provider /usr/lib/card.so") ==
        "its configuration has keys on a device, /usr/lib/card.so");
  const auto certified = parse_ssh_config(
      "n", kPlain, [](const std::string& path) { return path == "/u/ann/.ssh/id_rsa-cert.pub"; });
  REQUIRE(certified);
  CHECK(certified->reason == "there is a certificate, /u/ann/.ssh/id_rsa-cert.pub");
}

TEST_CASE("unknown host keys are accepted only if the configuration says so") {
  for (const auto* word : {"no", "accept-new", "off", "false"}) {
    const auto route =
        parse_ssh_config("n", std::string("stricthostkeychecking ") + word + "\n", nowhere);
    REQUIRE(route);
    CHECK(route->unknown_keys == UnknownKeys::accept);
  }
}

TEST_CASE("a host key is looked up by its alias if there is one") {
  const auto route = parse_ssh_config("n", "hostname a\nhostkeyalias b\n", nowhere);
  REQUIRE(route);
  CHECK(route->name == "a");
  CHECK(route->known_as == "b");
}

TEST_CASE("ssh -G ends when nobody waits for the routes any longer") {
  std::string folder = "/tmp/horo-test-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  std::ofstream(folder + "/ssh") << "#!/bin/sh\nkill -STOP $$\n";
  REQUIRE(chmod((folder + "/ssh").c_str(), 0700) == 0);
  const std::string path = getenv("PATH");
  setenv("PATH", folder.c_str(), 1);
  const UniqueFd cancel(eventfd(1, EFD_CLOEXEC));
  const auto routes = find_ssh_routes({"a", "b"}, {}, {Deadline::never(), cancel.value()});
  setenv("PATH", path.c_str(), 1);
  std::filesystem::remove_all(folder);
  REQUIRE(!routes);
  CHECK(routes.error().code == Errc::cancelled);
  // No child is left, not even a zombie.
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE("a port that is not a port number is refused") {
  CHECK_FALSE(parse_ssh_config("n", "port 99999\n", nowhere));
  CHECK_FALSE(parse_ssh_config("n", "port x\n", nowhere));
}

TEST_CASE("a host is never read as an option of the program") {
  const auto arguments =
      ssh_arguments({.host = "n", .program = "ssh"}, {.port = 7, .identity_file = "/k"}, "exec it");
  const std::vector<std::string> wanted{
      "ssh", "-T", "-o", "BatchMode=yes", "-o", "ClearAllForwardings=yes", "-p", "7", "-i",
      "/k",  "--", "n",  "exec it"};
  CHECK(arguments == wanted);
}
