// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/door.hpp"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <ifaddrs.h>
#include <map>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/kv/server/listener.hpp"
#include "base/kv/server/session.hpp"
#include "base/log.hpp"
#include "launcher/mpi/knock.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kHandshakeTime = 10s;
constexpr std::size_t kMostStrangers = 4096;
constexpr std::uint32_t kMostWords = 4096;  ///< Of what a guest says, in bytes.

/// Of this machine's interfaces that are up: IPv4 first.
std::vector<std::string> own_addresses() {
  std::vector<std::string> four;
  std::vector<std::string> six;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return four;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (entry->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
      four.emplace_back(inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
      six.emplace_back(inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size()));
    }
  }
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

}  // namespace

class Door::Impl {
 public:
  Impl(Loop& loop, const kv::Secret& secret, Guest guest)
      : loop_(loop), secret_(secret), key_(door_key(secret)), guest_(std::move(guest)) {}

  Status listen(bool here) {
    if (here) return listen_at("127.0.0.1", {"127.0.0.1"});
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
  /// Somebody who has not proven anything yet.
  struct Visitor {
    UniqueFd connection;
    kv::ServerSession session;
    Descriptor watch;
    Subscription limit;
    std::optional<MpiPlace> place;  ///< Said, and being confirmed.
  };

  struct Entrance {
    kv::Listener listener;
    Descriptor watch;
  };

  Status listen_at(const std::string& address, const std::vector<std::string>& names) {
    HORO_TRY(auto listener, kv::Listener::open({.host = address, .port = 0}));
    for (const auto& name : names) {
      addresses_ += fmt::format("{}{}", addresses_.empty() ? "" : ",",
                                kv::to_string({.host = name, .port = listener.address().port}));
    }
    auto entrance = std::make_unique<Entrance>(Entrance{std::move(listener), {}});
    HORO_TRY(entrance->watch, loop_.watch(entrance->listener.descriptor()));
    entrance->watch.on_readable([this, raw = entrance.get()] { admit(raw->listener); });
    entrances_.push_back(std::move(entrance));
    return {};
  }

  void admit(kv::Listener& listener) {
    for (;;) {
      const auto accepted = listener.accept();
      if (!accepted) return log::warn("mpi", "{}", accepted.error().message);
      if (*accepted < 0) return;
      UniqueFd connection(*accepted);
      if (visitors_.size() >= kMostStrangers) continue;
      if (auto begun = greet(std::move(connection)); !begun)
        log::warn("mpi", "{}", begun.error().message);
    }
  }

  Status greet(UniqueFd connection) {
    HORO_TRY(const auto nonce, kv::make_nonce());
    const auto id = next_++;
    auto visitor = std::make_unique<Visitor>(Visitor{
        .connection = std::move(connection),
        .session =
            kv::ServerSession(key_, {.version = kv::kVersion, .max_payload = kMostWords}, nonce),
        .watch = {},
        .limit = {},
        .place = {}});
    HORO_TRY(visitor->watch, loop_.watch(visitor->connection.value()));
    visitor->watch.on_readable([this, id] { hear(id); });
    visitor->limit = loop_.after(kHandshakeTime, [this, id] { visitors_.erase(id); });
    visitors_.emplace(id, std::move(visitor));
    return {};
  }

  void hear(std::uint64_t id) {
    auto& visitor = *visitors_.at(id);
    std::array<std::uint8_t, kMostWords> bytes{};
    const auto room = std::min(visitor.session.room(), bytes.size());
    const auto got = read(visitor.connection.value(), bytes.data(), room);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0 || !take(visitor, {bytes.data(), static_cast<std::size_t>(got)})) {
      visitors_.erase(id);
      return;
    }
    if (!visitor.place || visitor.session.has_output()) return;
    const auto guest = std::move(visitors_.extract(id).mapped());
    guest->watch.reset();
    guest->limit.reset();
    guest_(std::move(guest->connection), std::move(*guest->place));
  }

  /// False: nobody of ours.
  static bool take(Visitor& visitor, kv::BytesView bytes) {
    visitor.session.feed(bytes);
    while (!visitor.place) {
      auto request = visitor.session.next();
      if (!request) return false;
      if (*request) {
        auto place = decode_place((*request)->value);
        if (!place) return false;
        visitor.place = std::move(*place);
        visitor.session.answer({.op = (*request)->op, .id = (*request)->id, .value = {}});
      } else if (!visitor.session.has_output()) {
        return true;
      }
      if (!send(visitor)) return false;
    }
    return true;
  }

  /// What a fresh connection takes always fits its buffer.
  static bool send(Visitor& visitor) {
    while (visitor.session.has_output()) {
      std::string all;
      for (const auto piece : visitor.session.output()) all += piece;
      const auto put =
          ::send(visitor.connection.value(), all.data(), all.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put <= 0) return false;
      visitor.session.sent(static_cast<std::size_t>(put));
    }
    return true;
  }

  Loop& loop_;
  const kv::Secret secret_;
  const kv::Secret key_;
  const Guest guest_;
  std::string addresses_;
  std::vector<std::unique_ptr<Entrance>> entrances_;
  std::map<std::uint64_t, std::unique_ptr<Visitor>> visitors_;
  std::uint64_t next_ = 0;
};

Result<std::unique_ptr<Door>> Door::open(Loop& loop, bool here, Guest guest) {
  HORO_TRY(const auto secret, kv::make_secret());
  auto impl = std::make_unique<Impl>(loop, secret, std::move(guest));
  HORO_TRY_STATUS(impl->listen(here).context("waiting for the agents that mpirun starts"));
  return std::unique_ptr<Door>(new Door(std::move(impl)));
}

Door::Door(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Door::~Door() = default;

std::string Door::addresses() const {
  return impl_->addresses();
}

std::string Door::secret() const {
  return impl_->secret();
}

}  // namespace horo::launcher
