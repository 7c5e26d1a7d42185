// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/report_check.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <net/if.h>
#include <netinet/in.h>
#include <vector>

namespace horo::launcher {

namespace {

Status check_rank(const AgentTask& task, Rank rank, std::string_view name) {
  if (task.ranks().has(rank)) return {};
  return fail(Errc::protocol, "it sent '{}' for rank {}, which is not its own", name, rank);
}

bool is_address(const std::string& text) {
  std::array<char, sizeof(in6_addr)> bytes{};
  // The zone of a link-local address is this host's matter: "fe80::1%eth0".
  const auto number = text.substr(0, text.find('%'));
  return inet_pton(AF_INET, number.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, number.c_str(), bytes.data()) == 1;
}

bool is_interface(const std::string& text) {
  return text.size() < IFNAMSIZ &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f' && c != '/'; });
}

Status check_facts(const AgentTask& task, const protocol::Prepared& m) {
  if (m.ports.size() != static_cast<std::size_t>(task.ports())) {
    return fail(Errc::protocol, "it answered 'prepare' with {} ports, but was asked for {}",
                m.ports.size(), task.ports());
  }
  auto ports = m.ports;
  std::ranges::sort(ports);
  if (const auto twice = std::ranges::adjacent_find(ports); twice != ports.end())
    return fail(Errc::protocol, "it answered 'prepare' with port {} twice", *twice);
  if (!is_address(m.address))
    return fail(Errc::protocol, "it answered 'prepare' with '{}', which is not an address",
                m.address);
  if (!is_interface(m.interface)) {
    return fail(Errc::protocol, "it answered 'prepare' with '{}', which is not an interface",
                m.interface);
  }
  return {};
}

Status check_rows(const AgentTask& task, std::size_t rows) {
  if (rows <= static_cast<std::size_t>(task.ranks().places())) return {};
  return fail(Errc::protocol, "it sent {} rows for {} slots", rows, task.ranks().places());
}

template <typename M>
constexpr bool is_kind_of_agent() {
  return std::is_same_v<M, protocol::Reached> || std::is_same_v<M, protocol::Carry> ||
         std::is_same_v<M, protocol::Gone> || std::is_same_v<M, protocol::Step> ||
         std::is_same_v<M, protocol::EndAsked> || std::is_same_v<M, protocol::ControlGroupMade> ||
         std::is_same_v<M, protocol::Assigned> || std::is_same_v<M, protocol::Failed> ||
         std::is_same_v<M, protocol::Noted>;
}

struct Check {
  const AgentTask& task;

  Status operator()(const protocol::Started& m) const {
    return check_rank(task, m.rank, m.kRow.name);
  }

  Status operator()(const protocol::SpawnFailed& m) const {
    return check_rank(task, m.rank, m.kRow.name);
  }

  Status operator()(const protocol::Output& m) const {
    return check_rank(task, m.rank, m.kRow.name);
  }

  Status operator()(const protocol::Exited& m) const {
    return check_rank(task, m.exit.rank, m.kRow.name);
  }

  Status operator()(const protocol::Called& m) const {
    if (!task.ranks().is_elastic())
      return fail(Errc::protocol, "it sent '{}', but the job is not elastic", m.kRow.name);
    for (const auto& call : m.calls)
      HORO_TRY_STATUS(check_rank(task, Rank{static_cast<int>(call.worker)}, m.kRow.name));
    return {};
  }

  Status operator()(const protocol::Prepared& m) const { return check_facts(task, m); }

  Status operator()(const Viewed& m) const {
    // A worker's row has its rank in a generation, which only the worker knows.
    if (task.ranks().is_elastic()) return check_rows(task, m.rows.size());
    for (const auto& row : m.rows) HORO_TRY_STATUS(check_rank(task, Rank{row.rank}, m.kRow.name));
    return {};
  }

  template <typename M>
  Status operator()(const M&) const {
    return {};
  }
};

}  // namespace

Status check_report(const AgentTask& task, const protocol::Message& message) {
  return std::visit(Check{task}, message);
}

bool is_of_agent(const protocol::Message& message) {
  return std::visit([]<typename M>(const M&) { return is_kind_of_agent<M>(); }, message);
}

}  // namespace horo::launcher
