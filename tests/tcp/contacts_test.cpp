// SPDX-License-Identifier: Apache-2.0
// The table of addresses, and ranks that are threads and learn it from each other.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <catch2/catch.hpp>

#include "runtime/backends/tcp/tcp_contacts.hpp"
#include "runtime/backends/tcp/tcp_transport.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

/// A store in this process that counts the bytes of keys and values.
class CountingStore final : public RendezvousStore {
 public:
  Status set(std::string_view key, std::string_view value, Deadline) override {
    const std::lock_guard lock(mutex_);
    bytes_ += key.size() + value.size();
    values_[std::string(key)] = value;
    changed_.notify_all();
    return {};
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return values_.contains(std::string(key)); };
    const auto left = deadline.left(SteadyClock::instance().now());
    if (!changed_.wait_for(lock, left, there))
      return fail(Errc::timed_out, "key '{}' was not set", key);
    const auto& value = values_[std::string(key)];
    bytes_ += key.size() + value.size();
    return value;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::size_t bytes_ = 0;
};

/// One rank of a set, which exchanges addresses as the module does.
struct Meeting {
  CountingStore& store;
  std::vector<int> members;
  Duration patience = std::chrono::seconds(30);
  std::function<bool()> lost = [] { return false; };

  Result<std::map<int, TcpContact>> run(int position) const {
    const Communicator c{.position = position, .members = members, .name = "s"};
    const int me = members[static_cast<std::size_t>(position)];
    HORO_TRY(const auto endpoint, TcpEndpoint::open("127.0.0.1", me, {}));
    HORO_TRY(const auto transport, TcpTransport::make(endpoint, c, 1));
    ContactExchange exchange(members, "s", position, store);
    const auto deadline = Deadline::in(SteadyClock::instance(), patience);
    HORO_TRY_STATUS(exchange.gather(endpoint->contact(), deadline));
    endpoint->contacts() = exchange.contacts();
    transport->take_addresses();
    transport->begin_start(exchange.spread_limit(deadline), lost);
    HORO_TRY_STATUS(exchange.spread(*transport));
    ready.fetch_add(1);
    // The connections of a rank that has finished stay for those that have not.
    while (ready.load() < static_cast<int>(members.size())) std::this_thread::yield();
    return exchange.contacts();
  }

  mutable std::atomic<int> ready{0};
};

}  // namespace

TEST_CASE("a table of addresses reads as it was written, with addresses of both kinds") {
  const std::vector<TcpContact> contacts = {{{"10.0.0.1", 4711}}, {{"10.0.0.1", 4712}},
                                            {{"fd00::17", 1}},    {{"fd00::17", 2}},
                                            {{"10.0.0.1", 4713}}, {{"10.3.255.254", 65535}}};
  const auto text = encode_contacts(contacts);
  CHECK(decode_contacts(text).value() == contacts);
  CHECK(text.starts_with("10.0.0.1:4711\n:4712\n[fd00::17]:1\n:2\n"));
  CHECK(decode_contacts("")->empty());
}

TEST_CASE("a table has the addresses of all interfaces of each rank") {
  const std::vector<TcpContact> contacts = {{{"10.0.0.1", 4711}, {"fd00::17", 4711}},
                                            {{"10.0.0.1", 4712}, {"fd00::17", 4712}},
                                            {{"10.0.0.1", 4713}, {"fd00::18", 4713}},
                                            {{"10.0.0.1", 4714}}};
  const auto text = encode_contacts(contacts);
  CHECK(text == "10.0.0.1:4711 fd00::17\n:4712\n10.0.0.1:4713 fd00::18\n10.0.0.1:4714\n");
  CHECK(decode_contacts(text).value() == contacts);
}

TEST_CASE("a text that is no table of addresses is refused") {
  for (const auto* wrong :
       {"x", "10.0.0.1", ":5", "10.0.0.1:70000", "10.0.0.1:5\n\n", "10.0.0.1:5\n:0\n",
        "10.0.0.1:5\n:6:7", "10.0.0.1:5 ", "10.0.0.1:5  10.0.0.2", "10.0.0.1:5\n:6 10.0.0.2"})
    CHECK_FALSE(decode_contacts(wrong));
}

TEST_CASE("a rank that uses another number of interfaces is named") {
  CountingStore store;
  const std::vector<int> members{4, 7};
  const auto deadline = Deadline::in(SteadyClock::instance(), std::chrono::seconds(30));
  ContactExchange high(members, "s", 1, store);
  REQUIRE(high.gather({{"10.0.0.2", 5}, {"10.1.0.2", 5}}, deadline));
  ContactExchange low(members, "s", 0, store);
  const auto gathered = low.gather({{"10.0.0.1", 5}}, deadline);
  REQUIRE_FALSE(gathered);
  CHECK_THAT(gathered.error().message,
             Catch::StartsWith("rank 7 uses 2 network interfaces, and rank 4 uses 1; give "));
}

TEST_CASE("each rank learns where all listen, and each address crosses the store a few times") {
  CountingStore store;
  Meeting meeting{.store = store, .members = {}};
  // Descending, so the lowest rank is not the first member.
  for (int rank = 40; rank > 0; --rank) meeting.members.push_back(3 * rank);
  std::vector<std::map<int, TcpContact>> known(meeting.members.size());
  std::vector<std::thread> ranks;
  for (std::size_t p = 0; p < known.size(); ++p) {
    ranks.emplace_back([&, p] {
      if (auto all = meeting.run(static_cast<int>(p))) known[p] = std::move(*all);
    });
  }
  for (auto& rank : ranks) rank.join();
  REQUIRE(known.front().size() == known.size());
  for (const int rank : meeting.members) CHECK(known.front().contains(rank));
  for (const auto& one : known) CHECK(one == known.front());
  // Two keys and a record of about 20 bytes, written and read, and once more on the way up.
  CHECK(store.bytes() < 100 * known.size());
}

TEST_CASE("the rank whose child never comes names it, before those above give up") {
  CountingStore store;
  Meeting meeting{.store = store, .members = {}, .patience = std::chrono::milliseconds(50)};
  for (int rank = 0; rank < 20; ++rank) meeting.members.push_back(rank);
  // The root's first child has the ranks 2 and 3 below it; 3 never comes.
  REQUIRE(place_of(3, 20, ContactExchange::kRadix).parent == 1);
  std::string first;
  std::mutex mutex;
  std::vector<std::thread> ranks;
  for (int p = 0; p < 20; ++p) {
    if (p == 3) continue;
    ranks.emplace_back([&, p] {
      const auto all = meeting.run(p);
      const std::lock_guard lock(mutex);
      if (!all && first.empty()) first = all.error().message;
    });
  }
  for (auto& rank : ranks) rank.join();
  CHECK(first == "waiting for the address of rank 3: key 's/tcp/3' was not set");
}

TEST_CASE("a rank that waits for the table ends when another rank is lost") {
  CountingStore store;
  std::atomic<bool> lost{false};
  Meeting meeting{.store = store, .members = {0, 1}, .lost = [&lost] { return lost.load(); }};
  std::thread loser([&] {
    // Rank 0 reads the address of rank 1 and ends without a connection.
    while (store.bytes() == 0) std::this_thread::yield();
    lost.store(true);
  });
  const auto all = meeting.run(1);
  loser.join();
  REQUIRE_FALSE(all);
  CHECK(all.error().message == "a rank was lost while ranks connected");
}
