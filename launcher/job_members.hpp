// SPDX-License-Identifier: Apache-2.0
// The question of a viewer for the members of a job, and the launcher's answer.
#pragma once

#include <algorithm>
#include <string_view>

#include "launcher/message_forms.hpp"
#include "timeline/live/live_membership.hpp"

template <>
struct horo::FieldsOf<horo::timeline::LiveHost> {
  static void visit(auto& field, auto& host) {
    using horo::timeline::LiveHostUse;
    namespace forms = horo::launcher;
    field("name", host.name, forms::PrintableText{});
    field("slots", host.slots, wire::Fixed{});
    field("ranks", host.ranks, wire::Fixed{});
    field("processes", host.processes, wire::Fixed{});
    field("use", host.use, wire::Choice{LiveHostUse::used, LiveHostUse::gone});
    field("why", host.why, forms::PrintableText{});
    field("for_ns", host.for_ns, wire::Fixed{});
  }
};

namespace horo::launcher {

/// A viewer asks for the roster and, in an elastic job, for Members, as they are now.
struct AskMembers {
  static constexpr AgentMessageRow kRow = to_monitor(86, "ask members");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// The members of an elastic job. A roster always comes before it.
struct Members {
  timeline::LiveMembership now;

  static constexpr AgentMessageRow kRow = to_viewer(87, "members");

  static void fields(auto& field, auto& m) {
    field("generation", m.now.generation, wire::Fixed{});
    field("ranks", m.now.ranks, wire::Fixed{});
    field("min_np", m.now.min_np, wire::Fixed{});
    field("max_np", m.now.max_np, wire::Fixed{});
    field("spares", m.now.spares, wire::Fixed{});
    field("wanted_spares", m.now.wanted_spares, wire::Fixed{});
    field("starting", m.now.starting, wire::Fixed{});
    field("state", m.now.state, PrintableText{});
    field("hosts", m.now.hosts, list(wire::Fields{}));
  }
};

}  // namespace horo::launcher
