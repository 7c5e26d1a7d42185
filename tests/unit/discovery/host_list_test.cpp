// SPDX-License-Identifier: Apache-2.0
#include "discovery/host_list.hpp"

#include <tuple>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::discovery;

namespace {

Host one(std::string_view entry) {
  HostSet hosts;
  REQUIRE(add_entry(hosts, entry, 1));
  REQUIRE(hosts.size() == 1);
  return hosts.hosts().front();
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a host entry is a name and its slots, by default one") {
  CHECK(one("node7:4") == Host{"node7", 4});
  CHECK(one("node7") == Host{"node7", 1});
  CHECK(one("rack-1.node_2:16") == Host{"rack-1.node_2", 16});
  CHECK(one("10.0.0.1:2") == Host{"10.0.0.1", 2});
}

TEST_CASE("an IPv6 address stands in brackets") {
  CHECK(one("[::1]:2") == Host{"::1", 2});
  CHECK(one("[fe80::1%eth0]") == Host{"fe80::1%eth0", 1});
}

TEST_CASE("a user before the host is not part of its name") {
  const Host node{.name = "node7", .slots = 4, .user = "eva"};
  CHECK(one("eva@node7:4") == node);
  CHECK(one("eva@[::1]").user == "eva");
  const auto hosts = parse_list("a.b-c_1@n[1-2]:2,n3", 1).value().hosts();
  CHECK(hosts[1] == Host{.name = "n2", .slots = 2, .user = "a.b-c_1"});
  CHECK(hosts[2].user.empty());
  CHECK(parse_list("eva@a:1,eva@a:2", 1).value().hosts() ==
        std::vector{Host{.name = "a", .slots = 3, .user = "eva"}});
}

TEST_CASE("a host may have no slots") {
  CHECK(parse_list("a:0,b:2,b:0", 1).value().hosts() ==
        std::vector{Host{.name = "a", .slots = 0}, Host{.name = "b", .slots = 2}});
}

namespace {

/// A wrong host entry, and a part of its error.
const std::vector<std::tuple<std::string, std::string>> kWrongEntries{
    {"", "empty"},
    {"a:", "slots in 'a:' must be a whole number from 0"},
    {"a:-1", "slots in 'a:-1'"},
    {"a:x", "slots in 'a:x'"},
    {"a:2x", "slots in 'a:2x'"},
    {"a: 2", "slots in 'a: 2'"},
    {"a:99999999999", "from 0 to 1000000"},
    {":2", "must be a name"},
    {"-oProxyCommand=x", "must be a name"},
    {"-a:2", "must be a name"},
    {"a b:2", "must be a name"},
    {"a$:2", "must be a name"},
    {"::1", "brackets"},
    {"@a:2", "'@a:2' must be user@host:slots"},
    {"eva@", "'eva@' must be user@host:slots"},
    {"-l@a", "'-l@a' must be user@host:slots"},
    {"e va@a", "'e va@a' must be user@host:slots"},
    {"eva@b@a", "must be a name"},
    {"a:2:3", "brackets"},
    {"[::1:2", "no closing bracket"},
    {"[]:2", "not an IPv6 address"},
    {"[host]:2", "not an IPv6 address"},
    {"[1-3]:2", "not an IPv6 address"},
    {"n[1-3", "no closing bracket"},
    {"n[]", "'' in the brackets of 'n[]' must be a number or a range"},
    {"n[3-1]", "'3-1' in the brackets"},
    {"n[1-]", "'1-' in the brackets"},
    {"n[1,,2]", "'' in the brackets"},
    {"n[-1]", "'-1' in the brackets"},
    {"n[a-c]", "'a-c' in the brackets"},
    {"n[1-1000000000]", "of at most 9 digits"},
    {"n[1-999999999]", "more than 100000 hosts"},
    {"n[1-1000]-[1-1000]", "more than 100000 hosts"},
    {"n[1-999999999][1-999999999][1-999999999]", "more than 100000 hosts"},
    {"-n[1-2]", "must be a name"},
    {"[::1]2", "must be :slots"},
};

}  // namespace

TEST_CASE("a wrong host entry is refused with its text and the remedy") {
  const auto [entry, part] = GENERATE(from_range(kWrongEntries));
  INFO(entry);
  HostSet hosts;
  const auto host = add_entry(hosts, entry, 1);
  REQUIRE(!host);
  CHECK(host.error().code == Errc::invalid_argument);
  CHECK_THAT(host.error().message, Catch::Contains(part));
}

TEST_CASE(
    "brackets in a name are ranges, with the padding that is written, and the last counts up "
    "first") {
  CHECK(expand_names("node7").value() == Names{"node7"});
  CHECK(expand_names("n[1-3]").value() == Names{"n1", "n2", "n3"});
  CHECK(expand_names("n[08-10,7]-ib").value() == Names{"n08-ib", "n09-ib", "n10-ib", "n7-ib"});
  CHECK(expand_names("r[0-1]n[1-2]").value() == Names{"r0n1", "r0n2", "r1n1", "r1n2"});
  CHECK(expand_names("n[00001-100000]").value().size() == kMaxHosts);
}

TEST_CASE("a list is cut at commas outside of brackets") {
  const auto entries = split_list("n[1,2]:4, b ,c");
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].text == "n[1,2]:4");
  CHECK(entries[1].text == "b");
  CHECK(entries[1].column == 11);
  CHECK(entries[2].column == 14);
}

TEST_CASE(
    "ranges in a host list keep their order and slots, and names without slots get the default") {
  const auto hosts = parse_list("node[01-03]:4,b,node02:1", 8);
  REQUIRE(hosts);
  CHECK(hosts->hosts() == std::vector<Host>{{"node01", 4}, {"node02", 5}, {"node03", 4}, {"b", 8}});
}

TEST_CASE("an error in a host list names the column") {
  const auto hosts = parse_list("a:2, n[1-2]:x", 1);
  REQUIRE(!hosts);
  CHECK_THAT(hosts.error().message, Catch::Contains("column 6: slots in 'n[1-2]:x' must be"));
}

TEST_CASE("all entries together may not have more hosts than a job may have") {
  const auto hosts = parse_list("a[1-60000],b[1-60000]", 1);
  REQUIRE(!hosts);
  CHECK_THAT(hosts.error().message,
             Catch::Contains("with 'b[1-60000]' there would be more than 100000"));
}

TEST_CASE("a host with two users is refused") {
  CHECK(parse_list("eva@a,bob@a", 1).error().message ==
        "column 7: host 'a' is listed with user 'eva' and with user 'bob'");
  CHECK(!parse_list("a,bob@a", 1));
}
