// SPDX-License-Identifier: Apache-2.0
// What the ranks of a host tell each other before they share a board. Pure encoding and decoding;
// bytes come from another process and are checked, every length before it is believed.
// docs/design/standalone.md has the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo::runtime::bootstrap {

/// Appends numbers, little endian, and texts with their length in front.
class Writer {
 public:
  Writer& u32(std::uint32_t value);
  Writer& u64(std::uint64_t value);
  Writer& text(std::string_view value);

  std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Takes back what a Writer wrote. Once something does not fit, everything reads as zero and
/// complete() says so.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint32_t u32();
  std::uint64_t u64();
  std::string text();

  /// How many items of at least `least` bytes follow, as written by u32.
  std::uint32_t count(std::size_t least);

  bool ok() const { return ok_; }

  /// All was there and nothing is left.
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t n);

  std::string_view rest_;
  bool ok_ = true;
};

/// The first local rank to whoever connects; with it, its pidfd.
struct Greeting {
  std::uint32_t version = 0;  ///< version_code() of its libhoro.
};

/// Answer of a local rank; with it, its pidfd.
struct Hello {
  std::uint32_t version = 0;
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t local_rank = 0;
  std::int32_t local_size = 1;
};

/// All have come; with it, the board and, if there are other hosts, a memfd that holds the hosts.
struct Welcome {
  std::uint64_t nonce = 0;
  std::uint64_t epoch = 0;
  std::vector<std::int32_t> ranks;  ///< Of the whole job, by local rank.
};

/// Comes with the pidfds of local ranks `first` and following.
struct Peers {
  std::uint32_t first = 0;
};

/// A local rank that gives up asks what it has waited for; the answer is a refusal.
struct Question {};

struct Refusal {
  Errc code = Errc::unavailable;
  std::string message;
};

using Message = std::variant<Greeting, Hello, Welcome, Peers, Question, Refusal>;

std::string encode(const Message& message);

/// Fails: protocol, version_mismatch (another form of these messages).
Result<Message> decode(std::string_view bytes);

}  // namespace horo::runtime::bootstrap
