// SPDX-License-Identifier: Apache-2.0
#include "timeline/serve/page_server.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <sys/random.h>
#include <sys/socket.h>
#include <utility>

#include "base/kv/server/listener.hpp"
#include "base/loop/loop.hpp"
#include "base/unique_fd.hpp"
#include "timeline/serve/page_http.hpp"

namespace horo::timeline {

namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 30s;  ///< For a request to arrive, and for each part of an answer.
constexpr std::size_t kMostConnections = 64;

Result<std::string> make_token() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail_errno(errno, "drawing a random number");
  std::string token;
  for (const auto byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

/// One connection of a browser. Thread: the loop's.
struct Connection {
  Connection(UniqueFd taken, Descriptor watching)
      : fd(std::move(taken)), watched(std::move(watching)) {}

  UniqueFd fd;
  std::string received;
  HttpAnswer answer;
  std::size_t sent = 0;
  Descriptor watched;  // Destroyed before fd is closed.
  Subscription timeout;

  /// Returns false when the connection is to be closed.
  bool read(const HttpPage& page);
  bool write();
};

bool Connection::read(const HttpPage& page) {
  std::array<char, 4096> bytes{};
  const auto got = recv(fd.value(), bytes.data(), bytes.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  received.append(bytes.data(), static_cast<std::size_t>(got));
  if (auto made = answer_http(received, page)) answer = std::move(*made);
  return true;
}

bool Connection::write() {
  const auto whole = answer.head.size() + answer.body.size();
  while (sent < whole) {
    const auto rest = sent < answer.head.size() ? std::string_view(answer.head).substr(sent)
                                                : answer.body.substr(sent - answer.head.size());
    const auto put = send(fd.value(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN;
    sent += static_cast<std::size_t>(put);
  }
  shutdown(fd.value(), SHUT_WR);
  return false;
}

class Server {
 public:
  Server(Loop& loop, kv::Listener& listener, const HttpPage& page)
      : loop_(loop), listener_(listener), page_(page) {}

  Status begin() {
    HORO_TRY(watched_, loop_.watch(listener_.descriptor()));
    watched_.on_readable([this] { accept_one(); });
    return {};
  }

 private:
  void accept_one() {
    const auto accepted = listener_.accept();
    if (!accepted || *accepted < 0) return;
    UniqueFd fd(*accepted);
    if (connections_.size() >= kMostConnections) return;
    auto watched = loop_.watch(fd.value());
    if (!watched) return;
    const auto id = next_++;
    auto& connection = connections_[id];
    connection = std::make_unique<Connection>(std::move(fd), std::move(*watched));
    restart_timeout(id);
    connection->watched.on_readable([this, id] { on_readable(id); });
  }

  void on_readable(std::uint64_t id) {
    auto& connection = *connections_.at(id);
    if (!connection.read(page_)) {
      connections_.erase(id);
      return;
    }
    if (connection.answer.status == 0) return;
    connection.watched.on_readable({});
    connection.watched.on_writable([this, id] {
      if (connections_.at(id)->write()) {
        restart_timeout(id);
      } else {
        connections_.erase(id);
      }
    });
  }

  void restart_timeout(std::uint64_t id) {
    connections_.at(id)->timeout = loop_.after(kTimeout, [this, id] { connections_.erase(id); });
  }

  Loop& loop_;
  kv::Listener& listener_;
  const HttpPage& page_;
  Descriptor watched_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
};

}  // namespace

Result<int> serve_page(std::string_view page, const std::function<void(const std::string&)>& tell) {
  HORO_TRY(const auto token, make_token());
  HORO_TRY(const auto loop, Loop::make());
  HORO_TRY(auto listener, kv::Listener::open({.host = "127.0.0.1", .port = 0}));
  const HttpPage what{.port = listener.address().port, .token = token, .body = page};
  Server server(*loop, listener, what);
  HORO_TRY_STATUS(server.begin());
  int signal = 0;
  std::array<Subscription, 3> signals;
  for (std::size_t i = 0; const int number : {SIGINT, SIGTERM, SIGHUP}) {
    HORO_TRY(signals.at(i++), loop->on_signal(number, [&signal, &loop, number] {
      signal = number;
      loop->stop();
    }));
  }
  tell(fmt::format("http://127.0.0.1:{}/{}/", what.port, token));
  loop->run();
  return signal;
}

}  // namespace horo::timeline
