// SPDX-License-Identifier: Apache-2.0
// Requests to rank 0 through a real store: how long a rank waits, and what is left in the store.
#include "runtime/bootstrap/store/store_requests.hpp"

#include <future>
#include <sys/eventfd.h>

#include <catch2/catch.hpp>

#include "runtime/bootstrap/store/host_table.hpp"
#include "runtime/bootstrap/store/store_server.hpp"

using namespace horo;
using namespace horo::runtime::bootstrap;
using namespace std::chrono_literals;

namespace {

const SteadyClock& clock_now() {
  return SteadyClock::instance();
}

struct Store {
  kv::Secret secret{7};
  std::unique_ptr<StoreServer> server = StoreServer::start(secret, {"127.0.0.1", 0}).value();

  kv::Client client() const {
    return kv::Client::connect(kv::to_string(server->address()), secret,
                               Deadline::in(clock_now(), 10s))
        .value();
  }
};

HostReport report_of(int rank) {
  return {.host = {.name = fmt::format("n{}", rank), .address = "127.0.0.1", .ranks = {Rank{rank}}},
          .server_host = "127.0.0.1"};
}

}  // namespace

TEST_CASE(
    "a rank that starts long before rank 0 waits for rank 0's reply, and not for its own time") {
  const Store store;
  auto own = store.client();
  RequestCollector collector("horo/t");
  REQUIRE(collector.open(own, Deadline::in(clock_now(), 60s)));
  auto early = std::async(std::launch::async, [&] {
    auto client = store.client();
    return send_request(client, "horo/t", "hello", Deadline::in(clock_now(), 100ms));
  });
  const auto request = collector.next(own, Deadline::in(clock_now(), 10s));
  REQUIRE(request);
  // Longer than the rank's own time and what it once added to it.
  CHECK(early.wait_for(1500ms) == std::future_status::timeout);
  collector.refuse(own, {*request}, {Errc::timed_out, "rank 5 did not come"});
  const auto answer = early.get();
  REQUIRE_FALSE(answer);
  CHECK(answer.error().message == "rank 5 did not come");
}

TEST_CASE("a rank whose rank 0 does not come says so, and leaves no request behind") {
  const Store store;
  auto client = store.client();
  const auto answer = send_request(client, "horo/t", "hello", Deadline::in(clock_now(), 50ms));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::timed_out);
  CHECK(answer.error().message.find("rank 0 is not in horo_init") == 0);
  CHECK_FALSE(client.find("horo/t/card/1", Deadline::in(clock_now(), 10s)).value());
}

TEST_CASE("a rank that cannot reach the store stops trying when its meeting is given up") {
  const UniqueFd over(eventfd(0, EFD_CLOEXEC));
  auto client = std::async(std::launch::async, [&over] {
    const JobStore gone{.address = "127.0.0.1:1"};
    return connect_in_time(gone, {Deadline::in(clock_now(), 60s), over.value()});
  });
  CHECK(client.wait_for(200ms) == std::future_status::timeout);
  eventfd_write(over.value(), 1);
  REQUIRE(client.wait_for(10s) == std::future_status::ready);
  CHECK(client.get().error().code == Errc::cancelled);
}

TEST_CASE("the table of hosts is in the store once, and only that of the last epoch") {
  const Store store;
  auto own = store.client();
  RequestCollector collector("horo/hosts");
  const auto soon = [] { return Deadline::in(clock_now(), 10s); };
  for (const std::uint64_t epoch : {1, 2}) {
    std::vector<std::future<Result<HostTable>>> others;
    for (const int rank : {1, 2}) {
      others.push_back(std::async(std::launch::async, [&store, &soon, rank] {
        auto client = store.client();
        return ask_for_hosts(client, "horo/hosts", 3, report_of(rank), soon());
      }));
    }
    const auto table = collect_hosts(collector, own, 3, report_of(0), epoch, soon());
    REQUIRE(table);
    for (auto& other : others) {
      const auto theirs = other.get();
      REQUIRE(theirs);
      CHECK(theirs->epoch == epoch);
      CHECK(theirs->hosts == table->hosts);
    }
  }
  CHECK_FALSE(own.find("horo/hosts/table/1", soon()).value());
  CHECK(own.find("horo/hosts/table/2", soon()).value());
  CHECK_FALSE(own.find("horo/hosts/open", soon()).value());
}
