// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include "discovery/sources/hostfile.hpp"
#include "discovery/sources/static.hpp"

namespace horo::fuzz {

namespace {

using discovery::HostSet;

std::string check(const Result<HostSet>& hosts) {
  if (!hosts) {
    if (hosts.error().code != Errc::invalid_argument) return "another error than invalid_argument";
    return hosts.error().message.empty() ? "an error without a message" : "";
  }
  if (hosts->empty()) return "a list without hosts was taken";
  for (const auto& host : hosts->hosts()) {
    if (host.name.empty()) return "a host without a name";
    if (host.slots < 1) return "a host without slots";
    // It becomes an argument of programs that take options.
    if (host.name.front() == '-') return "a host that reads like an option";
  }
  return "";
}

std::string run_hostfile(std::string_view bytes) {
  return check(discovery::parse_hostfile(bytes));
}

std::string run_list(std::string_view bytes) {
  discovery::StaticSource source{std::string(bytes)};
  return check(source.list(Deadline::never()));
}

const std::vector<std::string> kWords{":", ",", "[",       "]",         "slots=", "\n",
                                      "#", " ", "1000000", "a:1000000", "-"};

}  // namespace

std::vector<Target> hosts_targets() {
  return {
      {.name = "hostfile",
       .run = run_hostfile,
       .seeds = {"node1 slots=4\nnode2:2 # comment\n\nnode3\n",
                 "[fe80::1%eth0]:2\r\n10.0.0.1 slots=1\n"},
       .words = kWords,
       .rounds = 30000},
      {.name = "host-list",
       .run = run_list,
       .seeds = {"a:2, b:4,c", "[::1]:2,10.0.0.1:3"},
       .words = kWords,
       .rounds = 30000},
  };
}

}  // namespace horo::fuzz
