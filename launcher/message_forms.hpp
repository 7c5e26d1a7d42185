// SPDX-License-Identifier: Apache-2.0
// How the fields of the messages between launcher and agent look on the wire, and which side sends
// a message. docs/design/agent-protocol.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/codec/wire_message.hpp"
#include "base/text/printable.hpp"

namespace horo::launcher {

inline constexpr int kMostRanks = 0xffffff;  ///< A board keeps the number of a rank in 24 bits.

/// A length of 32 bits and the bytes, without NUL bytes.
inline constexpr wire::Text<std::uint32_t> kText{.nul_allowed = false};

/// Text for people, on the wire as kText. Whoever reads them gets them printable: they may come
/// from a host that wants to deceive.
struct PrintableText {
  static void write(ByteWriter& out, std::string_view text) { kText.write(out, text); }

  static void read(ByteReader& in, std::string& text) {
    kText.read(in, text);
    text = printable(text);
  }
};

/// A count of 32 bits and the elements, which take four bytes each at least.
template <typename Element>
constexpr auto list(Element element) {
  return wire::list_of<std::uint32_t>(element, 4);
}

enum class Receiver : std::uint8_t {
  agent = 1,
  launcher = 2,
  both = 3,
  viewer = 4,   ///< A program that looks at the job; the launcher answers it.
  monitor = 8,  ///< The part of the launcher that answers viewers.
};

struct AgentMessageRow : MessageRow {
  Receiver receiver = Receiver::both;
};

constexpr AgentMessageRow to_agent(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, Receiver::agent};
}

constexpr AgentMessageRow to_launcher(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, Receiver::launcher};
}

constexpr AgentMessageRow to_both(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, Receiver::both};
}

constexpr AgentMessageRow to_viewer(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, Receiver::viewer};
}

constexpr AgentMessageRow to_monitor(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, Receiver::monitor};
}

/// True for a message that `receiver` (one of agent, launcher) has to handle.
template <typename M>
constexpr bool is_for(Receiver receiver) {
  return (static_cast<unsigned>(M::kRow.receiver) & static_cast<unsigned>(receiver)) != 0;
}

}  // namespace horo::launcher
