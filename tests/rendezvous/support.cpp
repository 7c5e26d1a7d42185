// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <catch2/catch.hpp>

#include "base/kv/address.hpp"

namespace horo::test {

RunningServer::RunningServer(kv::ServerOptions options)
    : secret(*kv::make_secret()), loop_(Loop::make().value()) {
  server_ = kv::Server::start(*loop_, secret, std::move(options)).value();
  address_ = server_->address();
  thread_ = std::thread([this] { loop_->run(); });
}

RunningServer::~RunningServer() {
  // Posted, because a stop before the thread has called run() would be lost.
  loop_->post([this] { loop_->stop(); });
  thread_.join();
}

kv::Client RunningServer::client() const {
  auto client = kv::Client::connect(address_, secret, soon());
  INFO((client ? "" : client.error().message));
  REQUIRE(client);
  return std::move(client).value();
}

kv::ServerCounts RunningServer::counts() {
  std::promise<kv::ServerCounts> promise;
  loop_->post([&] { promise.set_value(server_->counts()); });
  return promise.get_future().get();
}

void RunningServer::with_server(const std::function<void(kv::Server&)>& task) {
  std::promise<void> done;
  loop_->post([&] {
    task(*server_);
    done.set_value();
  });
  done.get_future().get();
}

bool RunningServer::reaches(const std::function<bool(const kv::ServerCounts&)>& wanted) {
  const auto limit = soon();
  while (!wanted(counts())) {
    if (limit.expired(SteadyClock::instance().now())) return false;
    std::this_thread::yield();
  }
  return true;
}

RawPeer::RawPeer(const std::string& text) {
  const auto address = *kv::parse_address(text);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  REQUIRE(getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found) ==
          0);
  fd_ = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval net{.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &net, sizeof net);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &net, sizeof net);
  const int error = connect(fd_, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  REQUIRE(error == 0);
}

RawPeer::RawPeer(RawPeer&& other) noexcept
    : sent(std::move(other.sent)),
      handshake(other.handshake),
      fd_(std::exchange(other.fd_, -1)),
      outgoing_(std::move(other.outgoing_)),
      incoming_(std::move(other.incoming_)) {}

void RawPeer::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool RawPeer::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::string RawPeer::receive(std::size_t n) const {
  std::string out;
  std::array<char, 65536> buffer{};
  while (out.size() < n) {
    const auto got = recv(fd_, buffer.data(), std::min(buffer.size(), n - out.size()), 0);
    // A timeout means that the server neither answers nor closes.
    if (got < 0 && errno == EAGAIN) FAIL("nothing came, not even the end of the stream");
    if (got <= 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return out;
}

bool RawPeer::shake_hands(const kv::Secret& secret) {
  handshake.client_version = kv::kVersion;
  handshake.client_nonce = *kv::make_nonce();
  sent = encode(kv::Hello{.client_nonce = handshake.client_nonce});
  if (!send(sent)) return false;
  const auto challenge = receive(kv::kChallengeBytes);
  if (challenge.size() != kv::kChallengeBytes) return false;
  std::copy(challenge.begin(), challenge.end(), handshake.server_nonce.begin());
  const auto proof = kv::client_proof(secret, handshake);
  const std::string bytes(proof.begin(), proof.end());
  sent += bytes;
  if (!send(bytes) || receive(kv::kWelcomeBytes).size() != kv::kWelcomeBytes) return false;
  outgoing_.emplace(secret, handshake, kv::Direction::to_server);
  incoming_.emplace(secret, handshake, kv::Direction::to_client);
  return true;
}

std::string RawPeer::frame(const kv::Request& request) {
  std::string out;
  append_frame(out, *encode(request), *outgoing_);
  return out;
}

std::optional<kv::Response> RawPeer::response() {
  const auto head = receive(kv::kLengthBytes);
  if (head.size() != kv::kLengthBytes) return std::nullopt;
  const auto length = *kv::decode_length(kv::as_bytes(head), kv::kMaxPayload);
  auto rest = receive(length + kv::kTagBytes);
  if (rest.size() != length + kv::kTagBytes) return std::nullopt;
  const auto bytes = kv::as_bytes(rest);
  if (!kv::opens(*incoming_, std::span(rest).first(length), bytes.last(kv::kTagBytes)))
    return std::nullopt;
  return *kv::decode_response(bytes.first(length));
}

}  // namespace horo::test
