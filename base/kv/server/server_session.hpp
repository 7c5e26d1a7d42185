// SPDX-License-Identifier: Apache-2.0
// The server's side of one key-value connection, without its socket: it takes bytes and returns
// requests, and takes answers and returns bytes. A peer is unknown until it has proven to know the
// secret. Its input is bounded before and after that.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/kv/auth.hpp"
#include "base/kv/kv_messages.hpp"
#include "base/result.hpp"

namespace horo::kv {

/// Thread: owner.
class ServerSession {
 public:
  /// `secret` outlives the session; `nonce` is fresh.
  ServerSession(const Secret& secret, ServerTerms terms, const Nonce& nonce);

  /// The number of bytes that feed() takes now. Before the peer is authenticated, that is no more
  /// than the next message of the handshake.
  std::size_t room() const;

  void feed(BytesView bytes);

  /// Returns the next whole request, or nothing until more is fed or output is sent. After an error
  /// the connection is to be closed without a reason. Call it only while there is no output.
  Result<std::optional<Request>> next();

  /// Answers a request; `value` is sent in place of `response.value` if given.
  void answer(const Response& response, const std::shared_ptr<const std::string>& value = nullptr);

  bool authenticated() const { return state_ == State::open || state_ == State::ending; }

  bool has_output() const { return !output_.empty(); }

  /// The bytes to be sent.
  std::string_view output() const { return std::string_view(output_).substr(sent_); }

  /// `n` bytes of output() are sent.
  void sent(std::size_t n);

  /// The seals of the bytes that follow, for a service that continues with its own protocol. Once
  /// authenticated() and without output; nothing else may be called afterwards.
  SealPair release();

  /// True if the peer knows the secret but has another version: the connection ends when the peer
  /// has been sent this version.
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
  std::string output_;
  std::size_t sent_ = 0;
};

}  // namespace horo::kv
