// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/store/host_table.hpp"

#include <catch2/catch.hpp>

#include "runtime/bootstrap/store/store_finder.hpp"

using horo::Errc;
using horo::Rank;
using namespace horo::runtime::bootstrap;

namespace {

JobHost host(const std::string& name, const std::string& address,
             std::initializer_list<int> ranks) {
  JobHost out{.name = name, .address = address, .ranks = {}};
  for (const int rank : ranks) out.ranks.emplace_back(rank);
  return out;
}

}  // namespace

TEST_CASE("reports and tables of hosts come back as they were") {
  const HostReport report{.host = host("n1", "10.0.0.1", {0, 1, 2, 7}), .server_host = "10.0.0.9"};
  const auto back = *decode_host_report(encode(report));
  CHECK(back.host == report.host);
  CHECK(back.server_host == report.server_host);
  const HostTable table{.epoch = 5,
                        .hosts = {host("a", "1.1.1.1", {0, 2}), host("b", "2.2.2.2", {1})}};
  const auto again = *decode_table(encode(table), 3);
  CHECK(again.epoch == 5);
  CHECK(again.hosts == table.hosts);
}

TEST_CASE("a table has every rank of the job once") {
  const auto refused = [](std::vector<JobHost> hosts, int size) {
    return decode_table(encode(HostTable{.epoch = 1, .hosts = std::move(hosts)}), size);
  };
  CHECK(refused({host("a", "", {0}), host("b", "", {1})}, 2));
  CHECK_FALSE(refused({host("a", "", {0}), host("b", "", {0})}, 2));
  CHECK_FALSE(refused({host("a", "", {0})}, 2));
  CHECK_FALSE(refused({host("a", "", {0, 1, 2})}, 2));
  CHECK_FALSE(refused({host("a", "", {0, 1}), host("b", "", {})}, 2));
}

TEST_CASE("a table that is cut off or claims too many ranks is refused") {
  const auto whole = encode(HostTable{.epoch = 1, .hosts = {host("a", "1.1.1.1", {0, 1})}});
  for (std::size_t n = 0; n < whole.size(); ++n) CHECK_FALSE(decode_table(whole.substr(0, n), 2));
  horo::ByteWriter out;
  for (const char* text : {"n", "a"}) kText.write(out, text);
  out.fixed(1U).fixed(0U).fixed(0xffffffffU);
  kText.write(out, "");
  CHECK_FALSE(decode_host_report(out.take()));
}

TEST_CASE(
    "hosts are in the order of their lowest ranks, and rank 0's has the address others found") {
  const auto table = make_table({{host("c", "10.0.0.3", {4, 5}), "10.0.0.1"},
                                 {host("a", "127.0.0.1", {0, 3}), "127.0.0.1"},
                                 {host("b", "10.0.0.2", {1, 2}), "10.0.0.1"}},
                                7);
  REQUIRE(table.hosts.size() == 3);
  CHECK(table.epoch == 7);
  CHECK(table.hosts[0].address == "10.0.0.1");
  CHECK(table.hosts[1].address == "10.0.0.2");
  CHECK(table.hosts[2].address == "10.0.0.3");
}

TEST_CASE("hosts that are one machine reach each other by loopback") {
  const auto table = make_table(
      {{host("a", "127.0.0.1", {0}), "127.0.0.1"}, {host("b", "127.0.0.1", {1}), "127.0.0.1"}}, 1);
  CHECK(table.hosts[0].address == "127.0.0.1");
}

TEST_CASE("places follow from the host keys, in the order of the ranks") {
  const auto places = place_on_hosts({"a", "b", "a", "a"});
  REQUIRE(places.size() == 4);
  CHECK(places[0].local_rank == 0);
  CHECK(places[0].local_size == 3);
  CHECK(places[1].local_rank == 0);
  CHECK(places[1].local_size == 1);
  CHECK(places[3].local_rank == 2);
  CHECK_FALSE(decode_local_position(encode(LocalPosition{.local_rank = 2, .local_size = 2})));
  CHECK(decode_place_request(encode(PlaceRequest{.rank = 3, .host_key = "k"}))->host_key == "k");
}

TEST_CASE("the contact of rank 0's store fits into a process manager's value") {
  StoreContact word{
      .secret = {1, 2, 255}, .machine = "boot-4026531840", .addresses = {"127.0.0.1:4"}};
  const auto back = *decode_store_contact(encode(word));
  CHECK(back.secret == word.secret);
  CHECK(back.machine == word.machine);
  CHECK(back.addresses == word.addresses);
  for (int i = 0; i < 200; ++i) word.addresses.push_back(fmt::format("10.0.0.{}:54321", i));
  CHECK(encode(word).size() <= 900);
  CHECK(encode(word).find_first_of(" =\n") == std::string::npos);
  for (const char* wrong : {"", "horo1", "horo1,00,m,a:1", "other,00,m,a:1"})
    CHECK(decode_store_contact(wrong).error().code == Errc::protocol);
}

TEST_CASE("a secret is 64 hexadecimal digits") {
  const auto read = [](const char* text) {
    return read_secret(
        [text](const char* name) { return std::string(name) == "HORO_SECRET" ? text : nullptr; });
  };
  CHECK(read(std::string(64, 'a').c_str())->value()[31] == 0xaa);
  CHECK_FALSE(read(std::string(63, 'a').c_str()));
  CHECK_FALSE(read((std::string(63, 'a') + "x").c_str()));
  CHECK_FALSE(read(nullptr)->has_value());
}
