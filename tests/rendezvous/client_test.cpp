// SPDX-License-Identifier: Apache-2.0
#include "base/kv/client.hpp"

#include "support.hpp"

#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"

using horo::Bytes;
using horo::Errc;
using horo::kv::Client;
using horo::test::in_moments;
using horo::test::RunningServer;
using horo::test::soon;

namespace {

const std::string kBinary("\0\xff\r\n\0", 5);

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a client gets the value that another client has set") {
  const RunningServer server;
  auto a = server.client();
  auto b = server.client();
  REQUIRE(a.set("key", kBinary, soon()));
  CHECK(*b.get("key", soon()) == kBinary);
  CHECK(**b.find("key", soon()) == kBinary);
  CHECK_FALSE(b.find("other", soon())->has_value());
  CHECK(*a.erase(std::vector<std::string>{"key", "other"}, soon()) == 1);
  CHECK_FALSE(b.find("key", soon())->has_value());
}

TEST_CASE("a client sets a key and waits for another one in one call") {
  const RunningServer server;
  auto asking = server.client();
  auto answering = server.client();
  REQUIRE(answering.set("answer", "early", soon()));
  CHECK(*asking.set_then_get("question", kBinary, "answer", soon()) == "early");
  CHECK(*answering.get("question", soon()) == kBinary);
  std::thread later([&answering] {
    CHECK(*answering.get("next question", soon()) == "?");
    CHECK(answering.set("next answer", "late", soon()));
  });
  CHECK(*asking.set_then_get("next question", "?", "next answer", soon()) == "late");
  later.join();
  const auto never = asking.set_then_get("last question", "?", "no answer", in_moments());
  REQUIRE_FALSE(never);
  CHECK(never.error().code == Errc::timed_out);
  CHECK(contains(never.error().message, "'no answer'"));
  // The connection is usable, and the wait is not lost.
  CHECK(*asking.get("last question", soon()) == "?");
  REQUIRE(answering.set("no answer", "after all", soon()));
  CHECK(*asking.get("no answer", soon()) == "after all");
}

TEST_CASE("a get that was cancelled leaves the connection usable, and its answer is not lost") {
  const RunningServer server;
  auto waiting = server.client();
  auto other = server.client();
  const horo::UniqueFd cancel(eventfd(1, EFD_CLOEXEC));
  const auto cut = waiting.get("key", {soon(), cancel.value()});
  REQUIRE_FALSE(cut);
  CHECK(cut.error().code == Errc::cancelled);
  CHECK_FALSE(waiting.find("other", soon())->has_value());
  REQUIRE(other.set("key", "value", soon()));
  CHECK(*waiting.get("key", soon()) == "value");
}

TEST_CASE("a large value can be set and read") {
  const RunningServer server;
  auto client = server.client();
  std::string value(std::size_t{4} << 20U, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 7);
  REQUIRE(client.set("key", value, soon()));
  CHECK((*client.get("key", soon()) == value));
}

TEST_CASE("all clients see additions and swaps in one order") {
  const RunningServer server;
  auto a = server.client();
  auto b = server.client();
  CHECK(*a.add("n", 2, soon()) == 2);
  CHECK(*b.add("n", 40, soon()) == 42);
  CHECK(*a.get("n", soon()) == "42");

  const auto first = a.compare_and_set("leader", std::nullopt, "a", soon());
  CHECK(first->swapped);
  CHECK(first->value == "a");
  const auto second = b.compare_and_set("leader", std::nullopt, "b", soon());
  CHECK_FALSE(second->swapped);
  CHECK(second->value == "a");
  CHECK(b.compare_and_set("leader", "a", "b", soon())->swapped);
  CHECK_FALSE(a.compare_and_set("nobody", "x", "y", soon())->value.has_value());
}

TEST_CASE("get and wait end when the last key has been set") {
  RunningServer server;
  auto setter = server.client();
  std::thread waiter([&] {
    auto client = server.client();
    REQUIRE(client.wait(std::vector<std::string>{"a", "b", "c"}, soon()));
    CHECK(*client.get("d", soon()) == "4");
  });
  REQUIRE(server.reaches([](const auto& counts) { return counts.waiting == 1; }));
  for (const char* key : {"c", "a", "b"}) REQUIRE(setter.set(key, "1", soon()));
  REQUIRE(setter.compare_and_set("d", std::nullopt, "4", soon()));
  waiter.join();
  CHECK(server.counts().waiting == 0);
}

TEST_CASE("wait ends only when all its keys exist at the same time") {
  RunningServer server;
  auto setter = server.client();
  auto waiter = server.client();
  REQUIRE(setter.set("a", "1", soon()));
  std::thread thread([&] { CHECK(waiter.wait(std::vector<std::string>{"a", "b"}, soon())); });
  REQUIRE(server.reaches([](const auto& counts) { return counts.waiting == 1; }));
  REQUIRE(setter.erase(std::vector<std::string>{"a"}, soon()));
  REQUIRE(setter.set("b", "1", soon()));
  CHECK(server.counts().waiting == 1);
  REQUIRE(setter.add("a", 1, soon()));
  thread.join();
}

TEST_CASE("a timeout names the key and leaves the connection usable") {
  const RunningServer server;
  auto client = server.client();
  const auto get = client.get("rank/3", in_moments());
  REQUIRE_FALSE(get);
  CHECK(get.error().code == Errc::timed_out);
  CHECK(contains(get.error().message, server.address()));
  CHECK(contains(get.error().message, "'rank/3'"));
  // The late answer to the call above must not be taken for one of these.
  REQUIRE(client.set("rank/3", "here", soon()));
  CHECK(*client.get("rank/3", soon()) == "here");
  CHECK(*client.add("n", 1, soon()) == 1);

  const auto wait =
      client.wait(std::vector<std::string>{"rank/3", "rank/4", "rank/5"}, in_moments());
  REQUIRE_FALSE(wait);
  CHECK(contains(wait.error().message, "'rank/4'; 2 of 3 keys are missing"));
  CHECK(client.wait({}, in_moments()));
}

TEST_CASE("a request beyond a limit fails with the limit, and the connection stays usable") {
  RunningServer server({.limits = {.value = Bytes{1000}, .total = Bytes{4000}, .keys = 10}});
  auto client = server.client();
  const auto large = client.set("key", std::string(1001, 'x'), soon());
  CHECK(large.error().code == Errc::resource_exhausted);
  CHECK(contains(large.error().message, "takes at most 1000"));
  const auto larger = client.set("key", std::string(std::size_t{2} << 20U, 'x'), soon());
  CHECK(larger.error().code == Errc::resource_exhausted);
  CHECK(contains(larger.error().message, "the server allows 1048576"));
  const auto largest = client.set("key", std::string(std::size_t{65} << 20U, 'x'), soon());
  CHECK(largest.error().code == Errc::resource_exhausted);
  for (int i = 0; i < 3; ++i)
    REQUIRE(client.set(std::to_string(i), std::string(1000, 'x'), soon()));
  CHECK(contains(client.set("more", std::string(1000, 'x'), soon()).error().message,
                 "at most 4000 bytes"));
  for (int i = 3; i < 7; ++i) REQUIRE(client.set(std::to_string(i), "", soon()));
  CHECK(client.set("", "x", soon()).error().code == Errc::invalid_argument);
  CHECK(client.add("0", 1, soon()).error().code == Errc::invalid_argument);
  CHECK(*client.get("6", soon()) == "");
}

TEST_CASE("IPv6 works like IPv4") {
  const RunningServer server({.listen = {{"::1", 0}}});
  CHECK(server.address().starts_with("[::1]:"));
  auto client = server.client();
  REQUIRE(client.set("key", "value", soon()));
  CHECK(*client.get("key", soon()) == "value");
}

TEST_CASE("an address at which nothing listens is an error that names it") {
  std::string address;
  {
    const RunningServer server;
    address = server.address();
  }
  const auto refused = Client::connect(address, {}, soon());
  CHECK(refused.error().code == Errc::unavailable);
  CHECK(contains(refused.error().message, address));
  CHECK(Client::connect("nowhere", {}, soon()).error().code == Errc::invalid_argument);
}

TEST_CASE("when the server ends, waiting fails and later calls fail in the same way") {
  auto server = std::make_unique<RunningServer>();
  auto client = server->client();
  std::thread thread([&] {
    const auto got = client.get("key", soon());
    CHECK(got.error().code == Errc::peer_lost);
    CHECK(client.set("key", "x", soon()).error().message == got.error().message);
  });
  REQUIRE(server->reaches([](const auto& counts) { return counts.waiting == 1; }));
  server.reset();
  thread.join();
}

TEST_CASE("a signal does not end a wait") {
  RunningServer server;
  auto setter = server.client();

  struct sigaction action {};

  action.sa_handler = [](int) {};  // Without SA_RESTART: system calls are interrupted.

  struct sigaction before {};

  sigaction(SIGUSR1, &action, &before);
  std::thread thread([&] {
    auto client = server.client();
    CHECK(*client.get("key", soon()) == "value");
  });
  REQUIRE(server.reaches([](const auto& counts) { return counts.waiting == 1; }));
  for (int i = 0; i < 100; ++i) pthread_kill(thread.native_handle(), SIGUSR1);
  REQUIRE(setter.set("key", "value", soon()));
  thread.join();
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("no socket of client or server survives exec") {
  const RunningServer server;
  const auto client = server.client();
  DIR* directory = opendir("/proc/self/fd");
  int sockets = 0;
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);

    struct stat status {};

    int listening = 0;
    socklen_t size = sizeof listening;
    if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    int domain = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_INET) continue;
    ++sockets;
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
  closedir(directory);
  CHECK(sockets == 3);  // Listener, client, and the server's end of it.
}
