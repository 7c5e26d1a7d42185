// SPDX-License-Identifier: Apache-2.0
#include "base/kv/server/server.hpp"

#include <algorithm>
#include <list>
#include <unistd.h>
#include <unordered_map>
#include <utility>

#include "base/kv/kv_messages.hpp"
#include "base/kv/server/listener_set.hpp"
#include "base/kv/server/server_connection.hpp"
#include "base/kv/server/server_limits.hpp"
#include "base/kv/server/store_operations.hpp"
#include "base/log.hpp"

namespace horo::kv {

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Loop& loop, const Secret& secret, ServerOptions options, std::uint32_t payload)
      : loop_(loop),
        secret_(secret),
        options_(std::move(options)),
        terms_{.version = kVersion, .max_payload = payload},
        store_(options_.limits),
        listeners_(loop, {.has_room = [this] { return has_room(); },
                          .on_full = [this] { expire(); },
                          .on_connection = [this](int fd) { add(fd); }}) {}

  Status listen() {
    for (const auto& address : options_.listen) HORO_TRY_STATUS(listeners_.add(address));
    listeners_.resume();
    return {};
  }

  Result<Address> listen_also(const Address& address) { return listeners_.find_or_add(address); }

  std::vector<Address> addresses() const { return listeners_.addresses(); }

  ServerCounts counts() const {
    const auto waits = [](const auto& entry) { return entry.second->wait.has_value(); };
    return {.clients = connections_.size() - unauthenticated_.size(),
            .unauthenticated = unauthenticated_.size(),
            .waiting = static_cast<std::size_t>(
                std::count_if(connections_.begin(), connections_.end(), waits)),
            .refused = refused_,
            .keys = store_.keys()};
  }

  void intercept(std::string prefix, SetHandler handler) {
    interceptions_.push_back({std::move(prefix), std::move(handler)});
  }

  Status set(std::string_view key, std::string value) {
    HORO_TRY_STATUS(store_.set(key, std::move(value)));
    wake(std::string(key));
    return {};
  }

  void erase(const std::string& key) { store_.erase({&key, 1}); }

  void erase_if(const std::function<bool(std::string_view key)>& unwanted) {
    store_.erase_if(unwanted);
  }

 private:
  struct Interception {
    std::string prefix;
    SetHandler handler;
  };

  bool has_room() const { return unauthenticated_.size() < options_.unauthenticated; }

  // -- New connections ---------------------------------------------------------------------------

  void add(int fd) {
    const ConnectionId id = ++last_id_;
    auto nonce = make_nonce();
    if (!nonce) {
      // Without a fresh nonce, a recorded handshake could be replayed.
      ::close(fd);
      log::error("rendezvous", "{}", nonce.error().message);
      return;
    }
    auto connection = std::make_unique<ServerConnection>(
        id, fd, ServerSession(secret_, terms_, *nonce), SteadyClock::instance().now());
    auto watched = loop_.watch(fd);
    if (!watched) return;
    connection->watched = std::move(watched).value();
    connection->unauthenticated = unauthenticated_.insert(unauthenticated_.end(), id);
    watch_reading(*connection);
    connections_.emplace(id, std::move(connection));
    if (!expiry_) expire();
  }

  /// Closes connections whose handshake takes too long, and sets a timer for the next one.
  void expire() {
    const auto now = SteadyClock::instance().now();
    while (!unauthenticated_.empty()) {
      const bool crowded = unauthenticated_.size() >= options_.unauthenticated;
      const auto allowed = crowded ? options_.crowded_timeout : options_.handshake_timeout;
      const auto due = connections_.at(unauthenticated_.front())->since + allowed;
      if (due > now) {
        expiry_ = loop_.after(due - now, [this] { expire(); });
        return;
      }
      refuse(unauthenticated_.front());
    }
    expiry_.reset();
  }

  void leave_unauthenticated(ServerConnection& connection) {
    if (!connection.unauthenticated) return;
    unauthenticated_.erase(*connection.unauthenticated);
    connection.unauthenticated.reset();
    listeners_.resume_unless_waiting();
  }

  // -- Connections -------------------------------------------------------------------------------

  void watch_reading(ServerConnection& connection) {
    connection.write_timer.reset();
    connection.watched.on_writable(nullptr);
    connection.watched.on_readable([this, id = connection.id] { read(id); });
    connection.is_reading = true;
  }

  /// Nothing is read from a client until it has taken its answer, so that it occupies one answer at
  /// most.
  void watch_writing(ServerConnection& connection) {
    connection.watched.on_readable(nullptr);
    connection.watched.on_writable([this, id = connection.id] { step(id); });
    connection.is_reading = false;
    connection.write_timer =
        loop_.after(options_.write_timeout, [this, id = connection.id] { refuse(id); });
  }

  void read(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    switch (found->second->read()) {
      case ServerConnection::Progress::blocked:
        return;
      case ServerConnection::Progress::closed:
        close(id);
        return;
      case ServerConnection::Progress::done:
        step(id);
        return;
    }
  }

  /// Serves a connection until it has to wait for its peer.
  void step(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    ServerConnection& connection = *found->second;
    while (true) {
      switch (connection.write()) {
        case ServerConnection::Progress::blocked:
          watch_writing(connection);
          return;
        case ServerConnection::Progress::closed:
          close(id);
          return;
        case ServerConnection::Progress::done:
          break;
      }
      if (connection.session.ends_after_output()) return refuse(id);
      auto request = connection.session.next();
      if (!request) return refuse(id);
      if (connection.session.authenticated()) leave_unauthenticated(connection);
      if (*request) {
        stop_waiting(connection);  // The client has given up the request that waits.
        handle(connection, std::move(**request));
      } else if (!connection.session.has_output()) {
        if (!connection.is_reading) watch_reading(connection);
        return;
      }
    }
  }

  void refuse(ConnectionId id) {
    ++refused_;
    close(id);
  }

  void close(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    const auto connection = std::move(found->second);
    connections_.erase(found);
    stop_waiting(*connection);
    leave_unauthenticated(*connection);
  }

  // -- Requests ----------------------------------------------------------------------------------

  void handle(ServerConnection& connection, Request request) {
    if (request.op == Op::get || request.op == Op::wait) {
      connection.wait = PendingWait{.request = std::move(request)};
      answer_wait(connection);
      return;
    }
    Response response{.op = request.op, .id = request.id};
    if (request.op == Op::set && hand_over(request)) return connection.session.answer(response, {});
    const auto value = execute(store_, request, response);
    connection.session.answer(response, value);
    const bool wrote = request.op == Op::set || request.op == Op::add || response.swapped;
    if (wrote && response.status == Errc::ok) wake(request.keys.front());
  }

  /// True: a handler gets what the request sets, so it is not stored.
  bool hand_over(Request& request) {
    const auto& key = request.keys.front();
    const auto found =
        std::find_if(interceptions_.begin(), interceptions_.end(),
                     [&key](const Interception& one) { return key.starts_with(one.prefix); });
    if (found == interceptions_.end()) return false;
    const auto place = static_cast<std::size_t>(found - interceptions_.begin());
    loop_.post([weak = weak_from_this(), place, key, value = std::move(request.value)] {
      const auto self = weak.lock();
      if (!self) return;
      const auto handler = self->interceptions_[place].handler;
      handler(key, value);
    });
    return true;
  }

  // -- Waiting -----------------------------------------------------------------------------------

  /// Answers if all keys exist; otherwise waits for the first one that does not. True: answered.
  bool answer_wait(ServerConnection& connection) {
    auto& wait = *connection.wait;
    const auto& keys = wait.request.keys;
    const auto is_missing = [this](const std::string& key) { return store_.find(key) == nullptr; };
    const auto from = keys.begin() + static_cast<std::ptrdiff_t>(wait.position);
    auto missing = std::find_if(from, keys.end(), is_missing);
    // A key that has existed may have been erased since.
    if (missing == keys.end()) missing = std::find_if(keys.begin(), keys.end(), is_missing);
    if (missing != keys.end()) {
      wait.position = static_cast<std::size_t>(missing - keys.begin());
      waiters_[*missing].push_back(connection.id);
      return false;
    }
    const Response response{.op = wait.request.op, .id = wait.request.id, .present = true};
    KeyValueStore::Value value = wait.request.op == Op::get ? store_.find(keys.front()) : nullptr;
    connection.wait.reset();
    connection.session.answer(response, std::move(value));
    return true;
  }

  void wake(const std::string& key) {
    const auto found = waiters_.find(key);
    if (found == waiters_.end()) return;
    const auto ids = std::move(found->second);
    waiters_.erase(found);
    for (const auto id : ids) {
      if (!answer_wait(*connections_.at(id))) continue;
      // Sent in a later turn: sending it here could begin the next request inside this one.
      loop_.post([weak = weak_from_this(), id] {
        if (const auto self = weak.lock()) self->step(id);
      });
    }
  }

  void stop_waiting(ServerConnection& connection) {
    if (!connection.wait) return;
    const auto& key = connection.wait->request.keys[connection.wait->position];
    if (const auto found = waiters_.find(key); found != waiters_.end()) {
      std::erase(found->second, connection.id);
      if (found->second.empty()) waiters_.erase(found);
    }
    connection.wait.reset();
  }

  Loop& loop_;
  const Secret secret_;
  const ServerOptions options_;
  const ServerTerms terms_;

  KeyValueStore store_;
  std::vector<Interception> interceptions_;
  ListenerSet listeners_;
  Subscription expiry_;
  ConnectionId last_id_ = 0;
  std::unordered_map<ConnectionId, std::unique_ptr<ServerConnection>> connections_;
  std::list<ConnectionId> unauthenticated_;  // Oldest first.
  std::unordered_map<std::string, std::vector<ConnectionId>> waiters_;
  std::size_t refused_ = 0;
};

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(Loop& loop, const Secret& secret,
                                              ServerOptions options) {
  if (options.listen.empty())
    return fail(Errc::invalid_argument, "no address to listen on; give one");
  HORO_TRY(const std::uint32_t payload, max_payload(options.limits));
  options.unauthenticated = bounded_by_descriptors(options.unauthenticated);
  auto impl = std::make_shared<Impl>(loop, secret, std::move(options), payload);
  HORO_TRY_STATUS(impl->listen().context("starting the key-value server"));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::string Server::address() const {
  return to_string(impl_->addresses().front());
}

std::vector<Address> Server::addresses() const {
  return impl_->addresses();
}

ServerCounts Server::counts() const {
  return impl_->counts();
}

Result<Address> Server::listen_also(const Address& address) {
  return impl_->listen_also(address).context("the key-value server");
}

void Server::intercept(std::string prefix, SetHandler handler) {
  impl_->intercept(std::move(prefix), std::move(handler));
}

Status Server::set(std::string_view key, std::string value) {
  return impl_->set(key, std::move(value));
}

void Server::erase(const std::string& key) {
  impl_->erase(key);
}

void Server::erase_if(const std::function<bool(std::string_view key)>& unwanted) {
  impl_->erase_if(unwanted);
}

}  // namespace horo::kv
