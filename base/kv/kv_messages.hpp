// SPDX-License-Identifier: Apache-2.0
// The messages of the key-value protocol and their bytes, without sockets. Input comes from another
// process: every length is compared with its bound and with the bytes that are there, and a message
// that does not fit its format exactly is an error. docs/design/key-value.md has the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec/bytes.hpp"
#include "base/kv/auth.hpp"
#include "base/result.hpp"

namespace horo::kv {

using horo::as_bytes;

inline constexpr std::uint32_t kVersion = 2;

// The handshake has fixed sizes in every version, so that a peer of another version is understood.
inline constexpr std::size_t kHelloBytes = 44;
inline constexpr std::size_t kChallengeBytes = 32;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kWelcomeBytes = 40;

inline constexpr std::size_t kLengthBytes = 4;                      ///< Before each payload.
inline constexpr std::size_t kTagBytes = 16;                        ///< After each payload.
inline constexpr std::size_t kMaxPayload = std::size_t{64} << 20U;  ///< No server may allow more.

inline constexpr std::size_t kMaxKeyBytes = 1024;
inline constexpr std::size_t kMaxKeysPerRequest = 65536;

struct Hello {
  std::uint32_t version = kVersion;
  Nonce client_nonce{};
};

struct Welcome {
  ServerTerms terms;
  Proof proof{};
};

std::string encode(const Hello& hello);
std::string encode(const Welcome& welcome);

/// `bytes` has kHelloBytes. Fails: protocol (not a key-value hello).
Result<Hello> decode_hello(BytesView bytes);

/// `bytes` has kWelcomeBytes. Fails: protocol.
Result<Welcome> decode_welcome(BytesView bytes);

enum class Op : std::uint8_t {
  set = 1,              ///< keys[0] = value
  find = 2,             ///< The value of keys[0] if the key exists.
  get = 3,              ///< The value of keys[0] as soon as the key exists.
  wait = 4,             ///< Answered as soon as all keys exist.
  missing = 5,          ///< How many keys do not exist, and the first of them.
  add = 6,              ///< keys[0] += delta, a decimal number; 0 when the key does not exist.
  compare_and_set = 7,  ///< keys[0] = value if the old value is `expected`.
  erase = 8,            ///< Removes keys; the answer says how many existed.
};

struct Request {
  Op op = Op::set;
  std::uint32_t id = 0;
  std::vector<std::string> keys;
  std::string value;                    ///< set, compare_and_set
  std::optional<std::string> expected;  ///< compare_and_set; nullopt: the key must not exist
  std::int64_t delta = 0;               ///< add
};

struct Response {
  Op op = Op::set;
  std::uint32_t id = 0;
  Errc status = Errc::ok;
  bool swapped = false;     ///< compare_and_set
  bool present = false;     ///< find, compare_and_set: `value` is that of the key
  std::int64_t number = 0;  ///< add: the sum; erase, missing: a count
  std::string value;        ///< find, get, compare_and_set; missing: a key; failures: the message
};

/// The payload of a request. Fails: invalid_argument (key empty or too long, no or too many keys),
/// resource_exhausted (over kMaxPayload).
Result<std::string> encode(const Request& request);

/// Fails: protocol.
Result<Request> decode_request(BytesView payload);

/// The payload of a response up to its value, which is `value_size` bytes long and follows without
/// a change. Ignores `response.value`.
std::string encode_head(const Response& response, std::size_t value_size);
std::string encode(const Response& response);

/// Fails: protocol.
Result<Response> decode_response(BytesView payload);

/// The length before a payload. Fails: protocol (0, or over `max_payload`).
Result<std::size_t> decode_length(BytesView bytes, std::size_t max_payload);
std::string encode_length(std::size_t payload);

/// Appends a whole frame to `out`: length, encrypted payload, tag. The payload is `head` and then
/// `body`.
void append_frame(std::string& out, std::string_view head, Seal& seal, std::string_view body = {});

/// Decrypts the payload of the next frame where it stands in a text. As Seal::opens().
bool opens(Seal& seal, std::span<char> payload, BytesView tag);

}  // namespace horo::kv
