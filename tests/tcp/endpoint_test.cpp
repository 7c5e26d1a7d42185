// SPDX-License-Identifier: Apache-2.0
// Strangers at the port of a rank: none gets in, none keeps a rank out.
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/codec/bytes.hpp"
#include "base/kv/descriptor_limit.hpp"
#include "base/kv/socket.hpp"
#include "runtime/backends/tcp/tcp_endpoint.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

/// Errors that the next calls of accept4() in this program return.
class AcceptErrors {
 public:
  void set(std::deque<int> errors) {
    const std::lock_guard lock(mutex_);
    errors_ = std::move(errors);
  }

  /// 0: the call does what it should.
  int take() {
    const std::lock_guard lock(mutex_);
    if (errors_.empty()) return 0;
    const int error = errors_.front();
    errors_.pop_front();
    return error;
  }

 private:
  std::mutex mutex_;
  std::deque<int> errors_;
} accept_errors;

}  // namespace

/// Takes the place of the C library's.
extern "C" int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  const int error = accept_errors.take();
  if (error == 0) return static_cast<int>(syscall(SYS_accept4, fd, address, size, flags));
  errno = error;
  return -1;
}

namespace {

constexpr int kMe = 5;
const kv::Secret kOurs{1, 2, 3};

Deadline soon() {
  return Deadline::in(SteadyClock::instance(), std::chrono::seconds(30));
}

/// Notes what the endpoint says.
class NotingSet final : public TcpSet {
 public:
  bool adopt(int rank, std::uint32_t worker, ProvenSocket socket) override {
    const std::lock_guard lock(mutex_);
    if (refuses_) return false;
    adopted_.emplace_back(rank, worker);
    sockets_.push_back(std::move(socket));
    changed_.notify_all();
    return true;
  }

  void peer_closed(int rank) override {
    const std::lock_guard lock(mutex_);
    closed_.push_back(rank);
    changed_.notify_all();
  }

  bool wait_for_adopted(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30),
                             [&] { return adopted_.size() >= count; });
  }

  bool wait_for_closed(int rank) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] {
      return std::find(closed_.begin(), closed_.end(), rank) != closed_.end();
    });
  }

  void refuse() {
    const std::lock_guard lock(mutex_);
    refuses_ = true;
  }

  std::size_t adopted() {
    const std::lock_guard lock(mutex_);
    return adopted_.size();
  }

 private:
  std::mutex mutex_;
  bool refuses_ = false;
  std::condition_variable changed_;
  std::vector<std::pair<int, std::uint32_t>> adopted_;
  std::vector<ProvenSocket> sockets_;
  std::vector<int> closed_;
};

struct Port {
  std::shared_ptr<TcpEndpoint> endpoint{TcpEndpoint::open("127.0.0.1", kMe, kOurs).value()};
  NotingSet set;
  SetToken token{set_token(kOurs, "set")};

  Port() { endpoint->add(token, set); }

  ~Port() { endpoint->remove(token); }

  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  kv::Socket connect() const { return kv::Socket::connect(endpoint->address(), soon()).value(); }
};

TcpEdge edge_to(const Port& port, int worker = 0) {
  return {.set = port.token, .from = 2, .to = kMe, .worker = static_cast<std::uint32_t>(worker)};
}

/// Both sides of the handshake; what was sent is appended to `spoken`. Fails: the other side
/// closed.
Status shake(kv::Socket& socket, TcpHandshake handshake, std::string* spoken = nullptr) {
  for (;;) {
    const std::string output(handshake.output());
    handshake.sent(output.size());
    if (spoken != nullptr) *spoken += output;
    HORO_TRY_STATUS(socket.send(as_bytes(output), soon()));
    if (handshake.open()) return {};
    std::array<std::uint8_t, 128> buffer{};
    HORO_TRY(
        const auto n,
        socket.receive(std::span(buffer).first(std::min(buffer.size(), handshake.room())), soon()));
    if (n == 0) return fail(Errc::peer_lost, "closed");
    HORO_TRY_STATUS(handshake.feed(std::span(buffer).first(n)));
  }
}

TcpHandshake ours(const TcpEdge& edge, const kv::Secret& secret = kOurs) {
  return TcpHandshake::connecting(secret, edge, kv::make_nonce().value());
}

/// Keeps what this process writes to its standard error while the object lives.
class StandardError {
 public:
  StandardError() { dup2(file_.value(), STDERR_FILENO); }

  ~StandardError() { dup2(before_.value(), STDERR_FILENO); }

  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;

  std::string text() const {
    std::string text(4096, '\0');
    const auto n = pread(file_.value(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return text;
  }

 private:
  const UniqueFd before_{dup(STDERR_FILENO)};
  const UniqueFd file_{memfd_create("stderr", MFD_CLOEXEC)};
};

/// This process's limit of descriptors is as high as it can be, while the object lives.
class HighestLimit {
 public:
  HighestLimit() {
    getrlimit(RLIMIT_NOFILE, &before_);
    kv::raise_descriptor_limit();
  }

  ~HighestLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

  HighestLimit(const HighestLimit&) = delete;
  HighestLimit& operator=(const HighestLimit&) = delete;

 private:
  rlimit before_{};
};

/// Returns the log of an endpoint for which accept4() returned these errors, and then a connection.
std::string words_after(std::deque<int> errors) {
  const HighestLimit limit;
  const StandardError output;
  accept_errors.set(std::move(errors));
  Port port;
  auto socket = port.connect();
  REQUIRE(shake(socket, ours(edge_to(port))));
  REQUIRE(port.set.wait_for_adopted(1));
  CHECK(accept_errors.take() == 0);
  return output.text();
}

/// The other side closes, and says no more than its challenge before.
bool is_refused(kv::Socket& socket) {
  std::array<std::uint8_t, 256> buffer{};
  std::size_t heard = 0;
  for (;;) {
    const auto n = socket.receive(buffer, soon());
    if (!n) return n.error().code == Errc::peer_lost && heard <= 32;
    if (*n == 0) return heard <= 32;
    heard += *n;
  }
}

}  // namespace

TEST_CASE("a rank of the job gets in, and its end is told to the set") {
  Port port;
  auto socket = port.connect();
  REQUIRE(shake(socket, ours(edge_to(port))));
  REQUIRE(port.set.wait_for_adopted(1));
  socket.close();
  CHECK(port.set.wait_for_closed(2));
}

TEST_CASE("a connection that comes before its set is kept for it") {
  Port port;
  port.endpoint->remove(port.token);
  auto socket = port.connect();
  REQUIRE(shake(socket, ours(edge_to(port))));
  CHECK(port.set.adopted() == 0);
  port.endpoint->add(port.token, port.set);
  CHECK(port.set.wait_for_adopted(1));
}

TEST_CASE("garbage, another secret, another rank and repeated bytes are refused") {
  Port port;
  std::string spoken;
  auto honest = port.connect();
  REQUIRE(shake(honest, ours(edge_to(port)), &spoken));
  REQUIRE(port.set.wait_for_adopted(1));

  auto garbage = port.connect();
  REQUIRE(garbage.send(as_bytes(std::string(100'000, '\xa5')), soon()));
  CHECK(is_refused(garbage));

  auto stranger = port.connect();
  CHECK_FALSE(shake(stranger, ours(edge_to(port), kv::Secret{9})));

  auto lost = port.connect();
  auto elsewhere = edge_to(port);
  elsewhere.to = kMe + 1;
  CHECK_FALSE(shake(lost, ours(elsewhere)));

  auto replay = port.connect();
  REQUIRE(replay.send(as_bytes(spoken), soon()));
  CHECK(is_refused(replay));
  CHECK(port.set.adopted() == 1);
}

TEST_CASE("silent and slow connections by the thousand are bounded and keep no rank out") {
  kv::raise_descriptor_limit(4096);
  Port port;
  std::vector<kv::Socket> strangers;
  for (int i = 0; i < 3000; ++i) {
    auto stranger = kv::Socket::connect(port.endpoint->address(), soon());
    if (!stranger) break;  // The user of this test may have fewer descriptors.
    // Every second one begins as a rank does, and stops in the middle of its hello.
    const std::string_view hello("horo-tx\0\1\0\0\0", 12);
    if (i % 2 == 1) static_cast<void>(stranger->send(as_bytes(hello), soon()));
    strangers.push_back(std::move(*stranger));
  }
  REQUIRE(strangers.size() > 500);
  strangers.erase(strangers.end() - 8,
                  strangers.end());  // So that there are descriptors for the rank.
  auto socket = port.connect();
  REQUIRE(shake(socket, ours(edge_to(port))));
  CHECK(port.set.wait_for_adopted(1));
  CHECK(port.endpoint->strangers() <= TcpEndpoint::kMostStrangers);
  CHECK(is_refused(strangers.front()));
}

TEST_CASE("a connection that its set refuses leaves nothing behind") {
  Port port;
  auto first = port.connect();
  REQUIRE(shake(first, ours(edge_to(port))));
  REQUIRE(port.set.wait_for_adopted(1));
  port.set.refuse();
  for (int i = 0; i < 5; ++i) {
    auto again = port.connect();
    REQUIRE(shake(again, ours(edge_to(port))));
    CHECK(is_refused(again));
  }
  CHECK(port.endpoint->watched() == 1);
}

TEST_CASE("a connection that ended before it was taken is no news") {
  CHECK(words_after({ECONNABORTED, EPROTO, EHOSTUNREACH, ENOPROTOOPT, EINTR, ECONNABORTED}) == "");
}

TEST_CASE("the limit of this process is named where its descriptors are used up, and only there") {
  const auto used_up = words_after({EMFILE, EMFILE});
  CHECK(std::count(used_up.begin(), used_up.end(), '\n') == 1);
  CHECK(used_up.find("Too many open files; this process may have") != std::string::npos);
  const auto full = words_after({ENFILE});
  CHECK(full.find("tries again: taking a connection: Too many open files in system\n") !=
        std::string::npos);
  const auto others = words_after({ENOMEM, EINVAL, EINVAL, ENOMEM});
  CHECK(std::count(others.begin(), others.end(), '\n') == 3);
  CHECK(others.find("Cannot allocate memory\n") != std::string::npos);
  CHECK(others.find("Invalid argument\n") != std::string::npos);
  CHECK(others.find("descriptors") == std::string::npos);
}
