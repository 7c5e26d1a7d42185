// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/agent_listener.hpp"

#include <array>
#include <cerrno>
#include <map>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/kv/server/listener.hpp"
#include "base/kv/server/server_session.hpp"
#include "base/log.hpp"
#include "base/net/own_addresses.hpp"
#include "launcher/starters/dial_in/dial_launcher.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kHandshakeTime = 10s;
constexpr std::size_t kMostCallers = 4096;       ///< Connections that are not authenticated yet.
constexpr std::uint32_t kMostClaimBytes = 4096;  ///< The longest encoded claim.

}  // namespace

class AgentListener::Impl {
 public:
  Impl(Loop& loop, const kv::Secret& secret, Accept accept)
      : loop_(loop), secret_(secret), key_(listener_key(secret)), accept_(std::move(accept)) {}

  Status listen(ListenOn where) {
    if (where == ListenOn::loopback) return listen_at("127.0.0.1", {"127.0.0.1"});
    std::vector<std::string> four{"127.0.0.1"};
    std::vector<std::string> six;
    for (auto& address : own_addresses()) {
      (address.find(':') == std::string::npos ? four : six).push_back(std::move(address));
    }
    HORO_TRY_STATUS(listen_at("0.0.0.0", four));
    return six.empty() ? Status{} : listen_at("::", six);
  }

  std::string addresses() const { return addresses_; }

  std::string secret() const {
    std::string text;
    for (const auto byte : secret_) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  /// A connection that has not proven yet that it knows the secret.
  struct Caller {
    UniqueFd connection;
    kv::ServerSession session;
    Descriptor watch;
    Subscription limit;
    std::optional<RankClaim> claim;  ///< Received; the answer is being sent.
  };

  struct Port {
    kv::Listener listener;
    Descriptor watch;
  };

  Status listen_at(const std::string& address, const std::vector<std::string>& names) {
    HORO_TRY(auto listener, kv::Listener::open({.host = address, .port = 0}));
    for (const auto& name : names) {
      addresses_ += fmt::format("{}{}", addresses_.empty() ? "" : ",",
                                kv::to_string({.host = name, .port = listener.address().port}));
    }
    auto port = std::make_unique<Port>(Port{std::move(listener), {}});
    HORO_TRY(port->watch, loop_.watch(port->listener.descriptor()));
    port->watch.on_readable([this, raw = port.get()] { take_calls(raw->listener); });
    ports_.push_back(std::move(port));
    return {};
  }

  void take_calls(kv::Listener& listener) {
    for (;;) {
      const auto accepted = listener.accept();
      if (!accepted) return log::warn("launcher", "{}", accepted.error().message);
      if (*accepted < 0) return;
      UniqueFd connection(*accepted);
      if (callers_.size() >= kMostCallers) continue;
      if (auto begun = authenticate(std::move(connection)); !begun)
        log::warn("launcher", "{}", begun.error().message);
    }
  }

  Status authenticate(UniqueFd connection) {
    HORO_TRY(const auto nonce, kv::make_nonce());
    const auto id = next_++;
    auto caller = std::make_unique<Caller>(
        Caller{.connection = std::move(connection),
               .session = kv::ServerSession(
                   key_, {.version = kv::kVersion, .max_payload = kMostClaimBytes}, nonce),
               .watch = {},
               .limit = {},
               .claim = {}});
    HORO_TRY(caller->watch, loop_.watch(caller->connection.value()));
    caller->watch.on_readable([this, id] { receive(id); });
    caller->limit = loop_.after(kHandshakeTime, [this, id] { callers_.erase(id); });
    callers_.emplace(id, std::move(caller));
    return {};
  }

  void receive(std::uint64_t id) {
    auto& caller = *callers_.at(id);
    std::array<std::uint8_t, kMostClaimBytes> bytes{};
    const auto room = std::min(caller.session.room(), bytes.size());
    const auto got = read(caller.connection.value(), bytes.data(), room);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0 || !take(caller, {bytes.data(), static_cast<std::size_t>(got)})) {
      callers_.erase(id);
      return;
    }
    if (!caller.claim || caller.session.has_output()) return;
    const auto agent = std::move(callers_.extract(id).mapped());
    agent->watch.reset();
    agent->limit.reset();
    accept_({.connection = std::move(agent->connection),
             .seals = agent->session.release(),
             .claim = std::move(*agent->claim)});
  }

  /// False: the caller does not know the secret, or sent nonsense.
  static bool take(Caller& caller, kv::BytesView bytes) {
    caller.session.feed(bytes);
    while (!caller.claim) {
      auto request = caller.session.next();
      if (!request) return false;
      if (*request) {
        auto claim = decode_claim((*request)->value);
        if (!claim) return false;
        caller.claim = std::move(*claim);
        caller.session.answer({.op = (*request)->op, .id = (*request)->id, .value = {}});
      } else if (!caller.session.has_output()) {
        return true;
      }
      if (!send(caller)) return false;
    }
    return true;
  }

  /// Never waits: the few bytes of a handshake fit the buffer of a fresh connection.
  static bool send(Caller& caller) {
    while (caller.session.has_output()) {
      const auto bytes = caller.session.output();
      const auto put = ::send(caller.connection.value(), bytes.data(), bytes.size(),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put <= 0) return false;
      caller.session.sent(static_cast<std::size_t>(put));
    }
    return true;
  }

  Loop& loop_;
  const kv::Secret secret_;
  const kv::Secret key_;
  const Accept accept_;
  std::string addresses_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::map<std::uint64_t, std::unique_ptr<Caller>> callers_;
  std::uint64_t next_ = 0;
};

Result<std::unique_ptr<AgentListener>> AgentListener::open(Loop& loop, ListenOn where,
                                                           Accept accept) {
  HORO_TRY(const auto secret, kv::make_secret());
  auto impl = std::make_unique<Impl>(loop, secret, std::move(accept));
  HORO_TRY_STATUS(impl->listen(where).context("listening for agents that dial in"));
  return std::unique_ptr<AgentListener>(new AgentListener(std::move(impl)));
}

AgentListener::AgentListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

AgentListener::~AgentListener() = default;

std::string AgentListener::addresses() const {
  return impl_->addresses();
}

std::string AgentListener::secret() const {
  return impl_->secret();
}

}  // namespace horo::launcher
