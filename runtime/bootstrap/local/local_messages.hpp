// SPDX-License-Identifier: Apache-2.0
// The messages that the ranks of a host exchange before they share a board. Pure encoding and
// decoding; the bytes come from another process, and every length is checked before it is used.
// docs/design/standalone.md has the layout.
//
// A message is one row here, as in base/codec/wire_message.hpp. A new message is such a struct and
// its name in LocalMessage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/codec/wire_message.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/meeting/bootstrap_forms.hpp"

namespace horo::runtime::bootstrap {

/// The first local rank's, to each process that connects; comes with its pidfd.
struct LocalGreeting {
  static constexpr MessageRow kRow{0, "greeting"};

  std::uint32_t version = 0;  ///< version_code() of its libhoro.

  static void fields(auto& field, auto& m) { field("version", m.version, wire::Fixed{}); }
};

/// Another local rank's answer to the greeting; comes with its pidfd.
struct LocalHello {
  static constexpr MessageRow kRow{1, "hello"};

  std::uint32_t version = 0;
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::int32_t local_rank = 0;
  std::int32_t local_size = 1;

  static void fields(auto& field, auto& m) {
    field("version", m.version, wire::Fixed{});
    field("rank", m.rank, wire::Fixed{});
    field("size", m.size, wire::Fixed{});
    field("local_rank", m.local_rank, wire::Fixed{});
    field("local_size", m.local_size, wire::Fixed{});
  }
};

/// All local ranks have connected. Comes with the board and, if there are other hosts, a memfd that
/// holds the table of hosts.
struct LocalWelcome {
  static constexpr MessageRow kRow{2, "welcome"};

  std::uint64_t nonce = 0;
  std::uint64_t epoch = 0;
  std::vector<std::int32_t> ranks;  ///< In the whole job, by local rank.

  static void fields(auto& field, auto& m) {
    field("nonce", m.nonce, wire::Fixed{});
    field("epoch", m.epoch, wire::Fixed{});
    field("ranks", m.ranks, list(wire::Fixed{}));
  }
};

/// Comes with the pidfds of local ranks `first` and following.
struct LocalPeers {
  static constexpr MessageRow kRow{3, "peers"};

  std::uint32_t first = 0;

  static void fields(auto& field, auto& m) { field("first", m.first, wire::Fixed{}); }
};

/// A local rank that gives up asks which ranks are missing; the answer is a refusal.
struct LocalQuestion {
  static constexpr MessageRow kRow{4, "question"};

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

struct LocalRefusal {
  static constexpr MessageRow kRow{5, "refusal"};

  Errc code = Errc::unavailable;
  std::string message;

  static void fields(auto& field, auto& m) {
    field("code", m.code, ErrorCode{});
    field("message", m.message, kText);
  }
};

using LocalMessage =
    std::variant<LocalGreeting, LocalHello, LocalWelcome, LocalPeers, LocalQuestion, LocalRefusal>;

std::string encode(const LocalMessage& message);

/// Fails: protocol, version_mismatch (another form of these messages).
Result<LocalMessage> decode(std::string_view bytes);

}  // namespace horo::runtime::bootstrap
