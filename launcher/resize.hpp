// SPDX-License-Identifier: Apache-2.0
// A user's wish to take slots away from a running elastic job or to give it more, and the
// launcher's answer. `horo shrink` and `horo grow` send it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "discovery/host.hpp"
#include "discovery/host_list.hpp"
#include "launcher/message_forms.hpp"

namespace horo::launcher {

enum class ResizeKind : std::uint8_t { shrink, grow };

/// `host` is as the job names it. A number of slots is what the job uses there afterwards, so the
/// same wish twice changes nothing.
struct Resize {
  static constexpr int kAll = -1;

  ResizeKind kind = ResizeKind::shrink;
  std::string host;
  int slots = kAll;  ///< kAll: all of them leave, or all that the host's source offers are used.
  bool dry_run = false;  ///< Only the answer is wanted.

  static constexpr AgentMessageRow kRow = to_monitor(84, "resize");

  static void fields(auto& field, auto& m) {
    field("kind", m.kind, wire::Choice{ResizeKind::shrink, ResizeKind::grow});
    field("host", m.host, kText);
    field("slots", m.slots, wire::Fixed{});
    field("dry_run", m.dry_run, wire::Bool{});
  }

  static std::string_view check(const Resize& m) {
    if (!discovery::is_host_name(m.host)) return "has something that is no name of a host";
    return m.slots >= kAll && m.slots <= discovery::kMaxSlots ? "" : "has too many slots";
  }
};

/// The answer: what will happen, or why nothing does.
struct Resized {
  bool accepted = false;
  std::string text;

  static constexpr AgentMessageRow kRow = to_viewer(85, "resized");

  static void fields(auto& field, auto& m) {
    field("accepted", m.accepted, wire::Bool{});
    field("text", m.text, PrintableText{});
  }
};

}  // namespace horo::launcher
