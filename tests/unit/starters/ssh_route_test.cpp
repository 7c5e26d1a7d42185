// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/ssh_route.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// A program `ssh` that runs these commands of the shell. It comes first in PATH while this lives.
class SshStandIn {
 public:
  explicit SshStandIn(const std::string& commands) : path_(getenv("PATH")) {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
    const auto program = folder_ + "/ssh";
    std::ofstream(program) << "#!/bin/sh\n" << commands << "\n";
    REQUIRE(chmod(program.c_str(), 0700) == 0);
    setenv("PATH", folder_.c_str(), 1);
  }

  ~SshStandIn() {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }

  SshStandIn(const SshStandIn&) = delete;
  SshStandIn& operator=(const SshStandIn&) = delete;

 private:
  const std::string path_;
  std::string folder_ = "/tmp/horo-test-XXXXXX";
};

/// Not even a zombie.
void check_no_child_is_left() {
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
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
  const SshStandIn ssh("kill -STOP $$");
  const UniqueFd cancel(eventfd(1, EFD_CLOEXEC));
  const WaitLimit limit{Deadline::never(), cancel.value()};
  for (const auto& routes :
       {find_ssh_routes({"a", "b"}, {}, limit), ask_for_each({"a", "b"}, {}, limit)}) {
    REQUIRE(!routes);
    CHECK(routes.error().code == Errc::cancelled);
    check_no_child_is_left();
  }
}

TEST_CASE("an ssh -G that closes its output and runs on is ended at the limit") {
  const SshStandIn ssh("exec >&- 2>&-; kill -STOP $$");
  const auto limit = Deadline::in(SteadyClock::instance(), std::chrono::milliseconds(200));
  const auto routes = ask_for_each({"a", "b"}, {}, limit);
  REQUIRE(!routes);
  CHECK(routes.error().code == Errc::timed_out);
  check_no_child_is_left();
}

TEST_CASE("when an ssh -G cannot be started, those before it are ended") {
  const SshStandIn ssh("kill -STOP $$");
  const std::vector<std::string> hosts(8, "a");
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const UniqueFd next(dup(0));
  int failed_starts = 0;
  for (int more = 0; more < 24; ++more) {
    const rlimit tight{static_cast<rlim_t>(next.value() + more), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &tight);
    const auto limit = Deadline::in(SteadyClock::instance(), std::chrono::milliseconds(1));
    const auto routes = ask_for_each(hosts, {}, limit);
    setrlimit(RLIMIT_NOFILE, &before);
    REQUIRE(!routes);
    if (routes.error().code != Errc::timed_out) ++failed_starts;
    check_no_child_is_left();
  }
  CHECK(failed_starts > 4);
}

TEST_CASE("all files of known hosts count, the user's own first") {
  const auto route = parse_ssh_config("n3", kPlain, nowhere);
  REQUIRE(route);
  CHECK(route->known_hosts == std::vector<std::string>{"/u/ann/.ssh/known_hosts",
                                                       "/u/ann/.ssh/known_hosts2",
                                                       "/etc/ssh/ssh_known_hosts2"});
  const auto none = parse_ssh_config("n3", "userknownhostsfile none\n", nowhere);
  REQUIRE(none);
  CHECK(none->known_hosts.empty());
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
