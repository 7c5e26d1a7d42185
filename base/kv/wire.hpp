// SPDX-License-Identifier: Apache-2.0
// Bytes of the key-value protocol: pure encoding and decoding, no sockets. Input is another
// process's data: every length is bounded before it is believed, and a whole message that does not
// fit its format exactly is an error. docs/design/key-value.md has the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kv/auth.hpp"
#include "base/result.hpp"

namespace horo::kv {

inline constexpr std::uint32_t kVersion = 1;

// The handshake has fixed sizes in every version, so that versions can be told apart in it.
inline constexpr std::size_t kHelloBytes = 44;
inline constexpr std::size_t kChallengeBytes = 32;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kWelcomeBytes = 40;

inline constexpr std::size_t kLengthBytes = 4;                      ///< In front of each payload.
inline constexpr std::size_t kTagBytes = 16;                        ///< Behind each payload.
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

/// `bytes` has kHelloBytes. Fails: protocol (no hello of ours).
Result<Hello> decode_hello(BytesView bytes);

/// `bytes` has kWelcomeBytes. Fails: protocol.
Result<Welcome> decode_welcome(BytesView bytes);

enum class Op : std::uint8_t {
  set = 1,              ///< keys[0] = value
  find = 2,             ///< value of keys[0] if it is there
  get = 3,              ///< value of keys[0] as soon as it is there
  wait = 4,             ///< answered as soon as all keys are there
  missing = 5,          ///< how many keys are not there, and the first of them
  add = 6,              ///< keys[0] += delta, a decimal number; 0 when it is not there
  compare_and_set = 7,  ///< keys[0] = value if it is `expected`
  erase = 8,            ///< removes keys; answers how many were there
};

struct Request {
  Op op = Op::set;
  std::uint32_t id = 0;
  std::vector<std::string> keys;
  std::string value;                    ///< set, compare_and_set
  std::optional<std::string> expected;  ///< compare_and_set; nullopt: the key is not there
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

/// Payload of a request. Fails: invalid_argument (key empty or too long, no or too many keys),
/// resource_exhausted (over kMaxPayload).
Result<std::string> encode(const Request& request);

/// Fails: protocol.
Result<Request> decode_request(BytesView payload);

/// Payload of a response up to where its value begins, as if it were `value_size` long; the value
/// itself follows as it is. So one stored value goes to many clients without a copy.
std::string encode_head(const Response& response, std::size_t value_size);
std::string encode(const Response& response);

/// Fails: protocol.
Result<Response> decode_response(BytesView payload);

/// The length in front of a payload. Fails: protocol (0, or over `max_payload`).
Result<std::size_t> decode_length(BytesView bytes, std::size_t max_payload);
std::string encode_length(std::size_t payload);

/// Appends a whole frame to `out`: length, payload, tag.
void append_frame(std::string& out, std::string_view payload, Seal& seal);

inline BytesView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace horo::kv
