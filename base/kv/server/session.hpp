// SPDX-License-Identifier: Apache-2.0
// The server's side of one key-value connection, without its socket: bytes in, requests out,
// answers in, bytes out. Everything that comes in is an unknown process's data until it has proven
// to know the secret, and bounded after that.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/kv/auth.hpp"
#include "base/kv/wire.hpp"
#include "base/result.hpp"

namespace horo::kv {

/// Thread: owner.
class ServerSession {
 public:
  /// `secret` outlives the session; `nonce` is fresh.
  ServerSession(const Secret& secret, ServerTerms terms, const Nonce& nonce);

  /// How many bytes feed() takes now: never more than the handshake's next message before the peer
  /// is authenticated.
  std::size_t room() const;

  void feed(BytesView bytes);

  /// The next whole request, or nothing until more is fed or output is sent. An error means: close,
  /// and do not say why. Call it only while there is no output.
  Result<std::optional<Request>> next();

  /// Answers a request; `value` is sent in place of `response.value` if given.
  void answer(const Response& response, std::shared_ptr<const std::string> value = nullptr);

  bool authenticated() const { return state_ == State::open || state_ == State::ending; }

  bool has_output() const;

  /// What is to be sent, in order; pieces may be empty.
  std::array<std::string_view, 3> output() const;

  /// `n` bytes of output() are sent.
  void sent(std::size_t n);

  /// The peer knows the secret but speaks another version: it is told ours, then the connection
  /// ends.
  bool ends_after_output() const { return state_ == State::ending; }

 private:
  enum class State { hello, proof, open, ending };

  Status take_hello();
  Status take_proof();
  Result<std::optional<Request>> take_frame();
  BytesView unread() const;
  void consume(std::size_t n);

  const Secret& secret_;
  const ServerTerms terms_;

  State state_ = State::hello;
  Handshake handshake_;
  std::optional<Seal> incoming_;
  std::optional<Seal> outgoing_;
  std::string input_;
  std::size_t consumed_ = 0;
  std::string head_;
  std::shared_ptr<const std::string> value_;
  std::string tail_;
  std::size_t sent_ = 0;
};

}  // namespace horo::kv
