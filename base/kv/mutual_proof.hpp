// SPDX-License-Identifier: Apache-2.0
// The first bytes of a connection between two processes of a job, without its socket: each end
// proves to the other that it knows the job's secret. docs/design/key-value.md has the bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/kv/auth.hpp"
#include "base/result.hpp"

namespace horo::kv {

/// A service whose connections begin with this proof. The texts outlive every proof.
struct ProvenService {
  std::string_view magic;    ///< 8 bytes, with which each hello begins.
  std::string_view peer;     ///< For errors, such as "a leader of a job".
  std::string_view between;  ///< For errors: the kind of both ends, such as "hosts".
  std::uint32_t version = 1;
  std::uint32_t max_payload = 0;  ///< Told to the connecting end. Zero: there is no such limit.
  Encryption encryption = Encryption::off;  ///< Both ends must have the same.
  std::size_t greeting = 0;                 ///< Bytes that the connecting end adds to its hello.
};

/// Thread: owner.
class MutualProof {
 public:
  /// The key of a connection whose other end has said hello with this greeting. Fails: the
  /// connection is refused.
  using KeyOf = std::function<Result<Secret>(BytesView greeting)>;

  /// The end that connects. `nonce` is fresh.
  static MutualProof connecting(const ProvenService& service, const Secret& key, const Nonce& nonce,
                                std::string_view greeting = {});

  /// The end that accepts. `nonce` is fresh.
  static MutualProof accepting(const ProvenService& service, KeyOf key_of, const Nonce& nonce);

  /// How many bytes feed() takes now: never more than the other end's next message has.
  std::size_t room() const;

  /// Takes at most room() bytes. After a failure output() may still have a message for the other
  /// end, such as our version. Fails: permission_denied (another secret or service),
  /// version_mismatch, mismatch (one end encrypts), and as KeyOf.
  Status feed(BytesView bytes);

  /// Bytes to be put on the wire.
  std::string_view output() const { return std::string_view(output_).substr(sent_); }

  /// `n` bytes of output() are sent.
  void sent(std::size_t n) { sent_ += n; }

  /// Both ends have proven what they must. Messages follow once output() is empty.
  bool open() const { return state_ == State::open; }

  /// The values from which the keys of this one connection are derived. Once open().
  const Secret& key() const { return key_; }

  const Handshake& handshake() const { return handshake_; }

  /// The bytes that the connecting end has added to its hello.
  std::string_view greeting() const { return greeting_; }

 private:
  enum class State : std::uint8_t { hello, challenge, proof, welcome, open };

  MutualProof(const ProvenService& service, State state) : service_(service), state_(state) {}

  std::size_t wanted() const;
  std::uint32_t version() const;
  Status take();
  Status take_hello();
  Status take_challenge();
  Status take_proof();
  Status take_welcome();
  Status same_version(std::uint32_t theirs) const;

  ProvenService service_;
  State state_;
  KeyOf key_of_;
  Secret key_{};
  Handshake handshake_;
  std::string greeting_;
  std::string input_;
  std::string output_;
  std::size_t sent_ = 0;
};

}  // namespace horo::kv
