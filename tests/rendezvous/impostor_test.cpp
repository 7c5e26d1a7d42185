// SPDX-License-Identifier: Apache-2.0
// A client that connects to something else than its job's server.
#include "support.hpp"

#include <arpa/inet.h>
#include <functional>
#include <future>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <catch2/catch.hpp>

using horo::Errc;
using horo::test::in_moments;
using horo::test::soon;
namespace kv = horo::kv;

namespace {

const kv::Secret kSecret{1, 2, 3};

/// Accepts one connection, gives it to `behave`, and closes it.
class Impostor {
 public:
  explicit Impostor(const std::function<void(int)>& behave)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(listen(fd_, 1) == 0);
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, behave] {
      const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      behave(fd);
      // Read what is left: closing on unread bytes would reset the connection.
      shutdown(fd, SHUT_WR);
      char buffer[256];
      while (recv(fd, buffer, sizeof buffer, 0) > 0) {
      }
      close(fd);
    });
  }

  ~Impostor() {
    thread_.join();
    close(fd_);
  }

  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

  const std::string& address() const { return address_; }

 private:
  int fd_;
  std::string address_;
  std::thread thread_;
};

void send_bytes(int fd, std::string_view bytes) {
  send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// Reads hello and proof with a challenge of zeros between them, and returns the handshake.
kv::Handshake take_handshake(int fd) {
  std::string hello(kv::kHelloBytes, '\0');
  recv(fd, hello.data(), hello.size(), MSG_WAITALL);
  kv::Handshake handshake{.client_version = kv::kVersion,
                          .client_nonce = kv::decode_hello(kv::as_bytes(hello))->client_nonce};
  send_bytes(fd, std::string(kv::kChallengeBytes, '\0'));
  std::string proof(kv::kProofBytes, '\0');
  recv(fd, proof.data(), proof.size(), MSG_WAITALL);
  return handshake;
}

std::string welcome(const kv::Secret& secret, const kv::Handshake& handshake,
                    kv::ServerTerms terms) {
  return encode(kv::Welcome{.terms = terms, .proof = kv::server_proof(secret, handshake, terms)});
}

const kv::ServerTerms kTerms{.version = kv::kVersion, .max_payload = 1U << 20U};

}  // namespace

TEST_CASE("a server that does not know the secret is refused") {
  const Impostor impostor([](int fd) {
    const auto handshake = take_handshake(fd);
    send_bytes(fd, welcome(kv::Secret{9}, handshake, kTerms));
  });
  const auto client = kv::Client::connect(impostor.address(), kSecret, soon());
  CHECK(client.error().code == Errc::permission_denied);
  CHECK(client.error().message.find("does not know this job's secret") != std::string::npos);
}

TEST_CASE("a server of another version is named with both versions") {
  const Impostor impostor([](int fd) {
    const auto handshake = take_handshake(fd);
    send_bytes(fd, welcome(kSecret, handshake, {.version = 99, .max_payload = 1U << 20U}));
  });
  const auto client = kv::Client::connect(impostor.address(), kSecret, soon());
  CHECK(client.error().code == Errc::version_mismatch);
  CHECK(client.error().message.find("speaks version 99 of the protocol, this process version 2") !=
        std::string::npos);
}

TEST_CASE("another kind of server is refused") {
  const Impostor impostor(
      [](int fd) { send_bytes(fd, "220 mail.example ESMTP ready, pleased to meet you\r\n"); });
  const auto client = kv::Client::connect(impostor.address(), kSecret, soon());
  CHECK(client.error().code == Errc::permission_denied);
}

TEST_CASE("a silent server is an error at the deadline") {
  const Impostor impostor([](int fd) {
    char byte = 0;
    while (recv(fd, &byte, 1, 0) > 0) {
    }
  });
  const auto client = kv::Client::connect(impostor.address(), kSecret, in_moments());
  CHECK(client.error().code == Errc::timed_out);
}

TEST_CASE("a value that comes between two calls of get() is the second one's") {
  std::promise<void> asked;
  const Impostor impostor([&asked](int fd) {
    const auto handshake = take_handshake(fd);
    auto stream = welcome(kSecret, handshake, kTerms);
    send_bytes(fd, std::exchange(stream, {}));
    asked.get_future().wait();
    // The only answer: a second request for the key would wait for another one.
    kv::Seal seal(kSecret, handshake, kv::Direction::to_client);
    append_frame(stream, encode(kv::Response{.op = kv::Op::get, .id = 1, .value = "value"}), seal);
    send_bytes(fd, stream);
  });
  auto client = kv::Client::connect(impostor.address(), kSecret, soon());
  REQUIRE(client);
  for (int i = 0; i < 3; ++i)
    CHECK(client->get("key", in_moments()).error().code == Errc::timed_out);
  asked.set_value();
  const auto value = client->get("key", soon());
  REQUIRE(value);
  CHECK(*value == "value");
}

TEST_CASE("an answer that ends after any byte is an error that names the server") {
  const auto behave = [](std::size_t cut) {
    return [cut](int fd) {
      const auto handshake = take_handshake(fd);
      auto stream = welcome(kSecret, handshake, kTerms);
      kv::Seal seal(kSecret, handshake, kv::Direction::to_client);
      append_frame(stream, encode(kv::Response{.op = kv::Op::get, .id = 1, .value = "value"}),
                   seal);
      send_bytes(fd, std::string_view(stream).substr(0, cut));
    };
  };
  bool whole = false;
  for (std::size_t cut = 0; !whole; ++cut) {
    REQUIRE(cut < 200);
    const Impostor impostor(behave(cut));
    auto client = kv::Client::connect(impostor.address(), kSecret, soon());
    if (!client) {
      CHECK(client.error().code == Errc::permission_denied);
      CHECK(cut < kv::kWelcomeBytes);
      continue;
    }
    const auto value = client->get("key", soon());
    whole = value.has_value();
    if (!whole) {
      CHECK(value.error().code == Errc::peer_lost);
      CHECK(value.error().message.find(impostor.address()) != std::string::npos);
    }
  }
}

TEST_CASE("an invalid answer ends the connection") {
  const auto answer_with = [](const std::function<std::string(const kv::Handshake&)>& bytes) {
    return [bytes](int fd) {
      const auto handshake = take_handshake(fd);
      send_bytes(fd, welcome(kSecret, handshake, kTerms) + bytes(handshake));
    };
  };
  const auto sealed = [](const kv::Handshake& handshake, std::string_view payload) {
    std::string frame;
    kv::Seal seal(kSecret, handshake, kv::Direction::to_client);
    append_frame(frame, payload, seal);
    return frame;
  };
  const auto check_protocol_error = [](const std::function<void(int)>& behave) {
    const Impostor impostor(behave);
    auto client = kv::Client::connect(impostor.address(), kSecret, soon());
    REQUIRE(client);
    const auto first = client->get("key", soon());
    REQUIRE_FALSE(first);
    CHECK(first.error().code == Errc::protocol);
    CHECK(client->set("key", "value", soon()).error().message == first.error().message);
  };
  check_protocol_error(answer_with([](const auto&) { return std::string("\xff\xff\xff\x7f", 4); }));
  check_protocol_error(answer_with([&](const auto& h) { return sealed(h, "nonsense"); }));
  check_protocol_error(answer_with(
      [&](const auto& h) { return sealed(h, encode(kv::Response{.op = kv::Op::set, .id = 1})); }));
  check_protocol_error(answer_with([](const auto& h) {
    std::string frame;
    kv::Seal seal(kv::Secret{7}, h, kv::Direction::to_client);
    append_frame(frame, encode(kv::Response{.op = kv::Op::get, .id = 1}), seal);
    return frame;
  }));
}
