// SPDX-License-Identifier: Apache-2.0
// The bytes of calls and answers. They are the same between a worker and its agent, and between the
// agent and the launcher.
#pragma once

#include <cstdint>

#include "base/codec/wire_message.hpp"
#include "base/elastic/membership_messages.hpp"

namespace horo::elastic {

inline constexpr wire::Text<std::uint32_t> kReasonForm{.most = 4096, .nul_allowed = false};

}  // namespace horo::elastic

template <>
struct horo::FieldsOf<horo::elastic::MembershipCall> {
  static void visit(auto& field, auto& m) {
    field("worker", m.worker, wire::Fixed{});
    field("attempt", m.attempt, wire::Fixed{});
    field("generation", m.generation, wire::Fixed{});
  }
};

template <>
struct horo::FieldsOf<horo::elastic::MembershipAnswer> {
  static void visit(auto& field, auto& m) {
    using elastic::MembershipKind;
    field("kind", m.kind, wire::Choice{MembershipKind::member, MembershipKind::refused});
    field("generation", m.generation, wire::Fixed{});
    field("rank", m.rank, wire::Fixed{});
    field("size", m.size, wire::Fixed{});
    field("local_rank", m.local_rank, wire::Fixed{});
    field("local_size", m.local_size, wire::Fixed{});
    field("cross_rank", m.cross_rank, wire::Fixed{});
    field("cross_size", m.cross_size, wire::Fixed{});
    field("host_index", m.host_index, wire::Fixed{});
    field("survivors", m.survivors, wire::Fixed{});
    field("notice", m.notice, wire::Fixed{});
    field("reason", m.reason, elastic::kReasonForm);
  }
};

template <>
struct horo::FieldsOf<horo::elastic::CallAnswer> {
  static void visit(auto& field, auto& m) {
    field("worker", m.worker, wire::Fixed{});
    field("attempt", m.attempt, wire::Fixed{});
    field("answer", m.answer, wire::Fields{});
  }
};
