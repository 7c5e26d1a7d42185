// SPDX-License-Identifier: Apache-2.0
// Which ranks sum which slice when sums in device memory go by hosts, and which sums do.
#include <catch2/catch.hpp>

#include "runtime/backends/device/by_hosts_path.hpp"
#include "runtime/backends/device/by_hosts_place.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

SetPlace place_of(std::vector<int> hosts, int position) {
  SetPlace place{.position = position, .ranks = {}, .hosts = std::move(hosts)};
  for (std::size_t r = 0; r < place.hosts.size(); ++r)
    place.ranks.push_back(Rank{static_cast<int>(r) + 10});
  return place;
}

/// It connects whatever it is asked to, and refuses hosts whose members offer different words.
class InnerPath final : public DevicePath {
 public:
  std::string_view name() const override { return "inner"; }

  Result<std::string> offer(Device&, int position, int members) override {
    return fmt::format("{} of {}", position, members);
  }

  Status check(std::span<const DeviceMember> members) const override {
    for (const auto& member : members) {
      if (member.offer != members.front().offer) return fail(Errc::unavailable, "words differ");
    }
    return {};
  }

  bool takes(const Signature&) const override { return true; }

  Result<std::unique_ptr<Backend>> connect(const DeviceSet& set) override {
    return fail(Errc::cancelled, "position {} of {}", set.position, set.members.size());
  }
};

ByHostsPath path_of(const std::vector<int>& hosts, int position) {
  return {{.name = "inner by hosts",
           .inner = std::make_unique<InnerPath>(),
           .moves = [](const Signature& like) { return like.dtype != DType::u16; },
           .why_not = {}},
          *by_hosts_place(place_of(hosts, position))};
}

std::vector<DeviceMember> members_of(const std::vector<int>& hosts,
                                     const std::vector<std::string>& offers) {
  std::vector<DeviceMember> members;
  for (std::size_t r = 0; r < hosts.size(); ++r)
    members.push_back({.rank = static_cast<int>(r), .host = hosts[r], .offer = offers[r]});
  return members;
}

Signature sum_of(DType dtype, ReduceOp op = ReduceOp::sum) {
  return {.kind = Kind::allreduce, .op = op, .dtype = dtype};
}

}  // namespace

TEST_CASE("the owners of a slice are the ranks with one local number, in the order of positions") {
  // The second ranks of the two hosts stand in another order than the first ones.
  const std::vector<int> hosts = {5, 2, 2, 5, 5};
  const auto first = *by_hosts_place(place_of(hosts, 0));
  CHECK(first.owners == std::vector<int>{0, 1});
  const auto second = *by_hosts_place(place_of(hosts, 3));
  CHECK(second.owners == std::vector<int>{2, 3});
  CHECK(second.own == 1);
  CHECK(second.first_of(9, 1) == 5);
  CHECK(second.slice_of(9, 1) == 4);
  const auto third = *by_hosts_place(place_of(hosts, 4));
  CHECK(third.owners.empty());
  CHECK(third.slice_of(9, third.hierarchy.local_rank) == 0);
}

TEST_CASE("sums whose parts may not be rounded or that need all inputs do not go by hosts") {
  const auto path = path_of({0, 0, 1, 1}, 0);
  CHECK(path.takes(sum_of(DType::f32)));
  CHECK(path.takes(sum_of(DType::f16, ReduceOp::sum)));
  CHECK(path.takes(sum_of(DType::bf16, ReduceOp::average)));
  // The sum of large values would be infinite inside a host.
  CHECK_FALSE(path.takes(sum_of(DType::f16, ReduceOp::average)));
  CHECK(path.takes(sum_of(DType::i64, ReduceOp::max)));
  CHECK_FALSE(path.takes(sum_of(DType::i64, ReduceOp::average)));
  CHECK_FALSE(path.takes(sum_of(DType::f16, ReduceOp::product)));
  CHECK_FALSE(path.takes(sum_of(DType::f32, ReduceOp::adasum)));
  CHECK_FALSE(path.takes(sum_of(DType::u16)));
  auto scaled = sum_of(DType::f32);
  scaled.prescale = 0.5;
  CHECK(path.takes(scaled));
  scaled.op = ReduceOp::min;
  CHECK_FALSE(path.takes(scaled));
  auto gathered = sum_of(DType::f32);
  gathered.kind = Kind::allgather;
  CHECK_FALSE(path.takes(gathered));
}

TEST_CASE("each host is checked by itself, and only with several ranks on one") {
  const std::vector<int> hosts = {0, 0, 1, 1};
  const auto path = path_of(hosts, 0);
  CHECK(path.check(members_of(hosts, {"fa", "fa", "fb", "fb"})));
  CHECK_FALSE(path.comes_first());
  const auto differ = path.check(members_of(hosts, {"fa", "fa", "fb", "fc"}));
  CHECK(differ.error().message == "words differ");
  const auto alone = path_of({0, 1}, 0).check(members_of({0, 1}, {"fa", "fa"}));
  CHECK(alone.error().message == "each host has one rank of the set");
}

TEST_CASE("sums go by hosts first when all members prefer it") {
  const std::vector<int> hosts = {0, 0, 1, 1};
  const auto path = path_of(hosts, 0);
  CHECK(path.check(members_of(hosts, {"pa", "pa", "pb", "pb"})));
  CHECK(path.comes_first());
  CHECK(path.best_from() == 0);
  CHECK(path.check(members_of(hosts, {"pa", "pa", "pb", "fb"})));
  CHECK_FALSE(path.comes_first());
}

TEST_CASE("a rank connects with the others of its host") {
  const std::vector<int> hosts = {0, 1, 0, 1, 1};
  auto path = path_of(hosts, 3);
  const auto members = members_of(hosts, {"fa", "fa", "fa", "fa", "fa"});
  const auto made = path.connect({.position = 3, .members = members});
  CHECK(made.error().message == "position 1 of 3");
}
