// SPDX-License-Identifier: Apache-2.0
// The wire forms of values that the messages of agents carry and that other folders define.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/worker_env.hpp"
#include "launcher/message_forms.hpp"
#include "launcher/starter.hpp"

template <>
struct horo::FieldsOf<horo::Error> {
  static void visit(auto& field, auto& error) {
    field("code", error.code, wire::Choice{Errc::invalid_argument, kLastErrc});
    field("message", error.message, launcher::PrintableText{});
  }
};

template <>
struct horo::FieldsOf<horo::Environment::value_type> {
  static void visit(auto& field, auto& variable) {
    field("name", variable.first, launcher::kText);
    field("value", variable.second, wire::Hidden{launcher::kText});
  }
};

template <>
struct horo::FieldsOf<horo::WorkerIdentity> {
  /// Without `worker_addresses`, which is the same for every rank: see SharedAddresses. The board's
  /// and the timeline's fields are the agent's to fill; a slot is the launcher's wish.
  static void visit(auto& field, auto& w) {
    field("rank", w.rank, wire::Fixed{});
    field("size", w.size, wire::Fixed{});
    field("local_rank", w.local_rank, wire::Fixed{});
    field("local_size", w.local_size, wire::Fixed{});
    field("cross_rank", w.cross_rank, wire::Fixed{});
    field("cross_size", w.cross_size, wire::Fixed{});
    field("host_index", w.host_index, wire::Fixed{});
    field("hostname", w.hostname, launcher::kText);
    field("job_id", w.job_id, launcher::kText);
    field("rendezvous", w.rendezvous, launcher::kText);
    field("master_address", w.master_address, launcher::kText);
    field("master_port", w.master_port, wire::Fixed{});
    field("launcher_version", w.launcher_version, wire::Fixed{});
    field("worker", w.worker, wire::Fixed{});
    field("slot", w.board_slot, wire::Fixed{});
    field("joins", w.joins, wire::Bool{});
  }
};

namespace horo::launcher::protocol {

/// The environment that all hosts share and then this host's own, as one list. The reader puts all
/// of it into the host's own.
struct WholeEnvironment {
  static void write(ByteWriter& out, const AgentSpec& spec) {
    const auto shared = spec.common ? spec.common->size() : 0;
    wire::LengthForm<std::uint32_t>::write(out, shared + spec.environment.size());
    const auto put = [&out](const auto& variable) { wire::Fields{}.write(out, variable); };
    if (spec.common) std::ranges::for_each(*spec.common, put);
    std::ranges::for_each(spec.environment, put);
  }

  static void read(ByteReader& in, AgentSpec& spec) {
    list(wire::Fields{}).read(in, spec.environment);
  }
};

/// The addresses of all workers: a long list that is the same for every rank, so it is sent once.
struct SharedAddresses {
  static void write(ByteWriter& out, const std::vector<WorkerIdentity>& ranks) {
    list(kText).write(
        out, ranks.empty() ? std::vector<std::string>() : ranks.front().worker_addresses.list());
  }

  static void read(ByteReader& in, std::vector<WorkerIdentity>& ranks) {
    std::vector<std::string> addresses;
    list(kText).read(in, addresses);
    const WorkerAddresses shared(std::move(addresses));
    for (auto& rank : ranks) rank.worker_addresses = shared;
  }
};

/// Says what is wrong with workers of an elastic job; empty: nothing is. Their places among the
/// others are only planned.
inline std::string_view check_workers(const std::vector<WorkerIdentity>& workers) {
  if (workers.size() > kMaxLocalRanks) return "has too many workers";
  for (const auto& worker : workers) {
    if (worker.rank.value() < 0 || worker.rank.value() >= kMostRanks)
      return "has a rank out of range";
    if (worker.worker < -1 || worker.worker >= kMostRanks)
      return "has the number of a worker out of range";
    if (worker.board_slot < -1 || worker.board_slot >= kMaxLocalRanks)
      return "has a slot out of range";
    if (worker.local_rank.value() < 0 || worker.local_rank.value() >= kMaxLocalRanks ||
        worker.local_size > kMaxLocalRanks)
      return "has a local rank out of range";
  }
  return {};
}

constexpr bool is_signal(int number) {
  constexpr int kMostSignal = 64;
  return number >= 1 && number <= kMostSignal;
}

/// As from waitpid, of a process that has ended.
constexpr bool is_end_status(int status) {
  constexpr int kSignal = 0x7f;
  constexpr int kCore = 0x80;
  if (status < 0 || status > 0xffff) return false;
  if ((status & kSignal) == 0) return (status & kCore) == 0;
  return (status & kSignal) != kSignal && (status >> 8) == 0;
}

constexpr bool is_port(int number) {
  constexpr int kMostPort = 65535;
  return number >= 1 && number <= kMostPort;
}

}  // namespace horo::launcher::protocol
