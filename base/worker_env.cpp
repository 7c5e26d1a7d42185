// SPDX-License-Identifier: Apache-2.0
#include "base/worker_env.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include "base/board_header.hpp"

namespace horo {

namespace {

constexpr long long kIntMax = std::numeric_limits<int>::max();
constexpr long long kMaxPort = 65535;

/// A number of an identity, its variable, and the names by which other frameworks read it.
struct NumberRow {
  const char* variable;
  std::array<const char*, 3> aliases;
  long long least;
  long long most;
  long long (*read)(const WorkerIdentity&);
  void (*write)(WorkerIdentity&, long long);
};

#define HORO_INT_ROW(variable, a, b, c, least, field) \
  HORO_BOUNDED_ROW(variable, a, b, c, least, kIntMax, field)
#define HORO_BOUNDED_ROW(variable, a, b, c, least, most, field)               \
  NumberRow {                                                                 \
    variable, {a, b, c}, least, most,                                         \
        [](const WorkerIdentity& w) { return (long long){w.field}; },         \
        [](WorkerIdentity& w, long long v) { w.field = static_cast<int>(v); } \
  }

const std::array kNumbers{
    NumberRow{"HORO_RANK",
              {"HOROVOD_RANK", "RANK", "JAX_PROCESS_ID"},
              0,
              kIntMax,
              [](const WorkerIdentity& w) { return (long long){w.rank.value()}; },
              [](WorkerIdentity& w, long long v) { w.rank = Rank{static_cast<int>(v)}; }},
    HORO_INT_ROW("HORO_SIZE", "HOROVOD_SIZE", "WORLD_SIZE", "JAX_NUM_PROCESSES", 1, size),
    NumberRow{
        "HORO_LOCAL_RANK",
        {"HOROVOD_LOCAL_RANK", "LOCAL_RANK", nullptr},
        0,
        kIntMax,
        [](const WorkerIdentity& w) { return (long long){w.local_rank.value()}; },
        [](WorkerIdentity& w, long long v) { w.local_rank = LocalRank{static_cast<int>(v)}; }},
    HORO_INT_ROW("HORO_LOCAL_SIZE", "HOROVOD_LOCAL_SIZE", "LOCAL_WORLD_SIZE", nullptr, 1,
                 local_size),
    HORO_INT_ROW("HORO_CROSS_RANK", "HOROVOD_CROSS_RANK", nullptr, nullptr, 0, cross_rank),
    HORO_INT_ROW("HORO_CROSS_SIZE", "HOROVOD_CROSS_SIZE", nullptr, nullptr, 1, cross_size),
    HORO_INT_ROW("HORO_HOST_INDEX", "GROUP_RANK", nullptr, nullptr, 0, host_index),
    HORO_BOUNDED_ROW("HORO_MASTER_PORT", "MASTER_PORT", nullptr, nullptr, 0, kMaxPort, master_port),
    HORO_INT_ROW("HORO_BOARD_FD", nullptr, nullptr, nullptr, -1, board_fd),
    HORO_INT_ROW("HORO_AGENT_PID", nullptr, nullptr, nullptr, 0, agent_pid),
    HORO_INT_ROW("HORO_TIMELINE_FD", nullptr, nullptr, nullptr, -1, timeline_fd),
    HORO_INT_ROW("HORO_TIMELINE_INDEX", nullptr, nullptr, nullptr, 0, timeline_index),
    NumberRow{
        "HORO_LAUNCHER_VERSION",
        {nullptr, nullptr, nullptr},
        0,
        kIntMax,
        [](const WorkerIdentity& w) { return (long long){w.launcher_version}; },
        [](WorkerIdentity& w, long long v) { w.launcher_version = static_cast<std::uint32_t>(v); }},
};

/// Written only for the workers of an elastic job.
const std::array kElasticNumbers{
    NumberRow{"HORO_ELASTIC",
              {"HOROVOD_ELASTIC", nullptr, nullptr},
              0,
              1,
              [](const WorkerIdentity& w) { return (long long){w.elastic}; },
              [](WorkerIdentity& w, long long v) { w.elastic = v != 0; }},
    HORO_INT_ROW("HORO_WORKER", nullptr, nullptr, nullptr, 0, worker),
    HORO_BOUNDED_ROW("HORO_BOARD_SLOT", nullptr, nullptr, nullptr, 0, kMaxLocalRanks - 1,
                     board_slot),
    NumberRow{"HORO_JOINS",
              {nullptr, nullptr, nullptr},
              0,
              1,
              [](const WorkerIdentity& w) { return (long long){w.joins}; },
              [](WorkerIdentity& w, long long v) { w.joins = v != 0; }},
};
#undef HORO_INT_ROW
#undef HORO_BOUNDED_ROW

struct TextRow {
  const char* variable;
  const char* alias;
  std::string WorkerIdentity::*field;
};

const std::array kTexts{
    TextRow{"HORO_HOSTNAME", "HOROVOD_HOSTNAME", &WorkerIdentity::hostname},
    TextRow{"HORO_JOB_ID", nullptr, &WorkerIdentity::job_id},
    TextRow{"HORO_RENDEZVOUS", nullptr, &WorkerIdentity::rendezvous},
    TextRow{"HORO_MASTER_ADDRESS", "MASTER_ADDR", &WorkerIdentity::master_address},
};

/// Written only for the workers of an elastic job.
const std::array kElasticTexts{
    TextRow{"HORO_MEMBERSHIP", nullptr, &WorkerIdentity::membership},
};

constexpr const char* kNonce = "HORO_BOARD_NONCE";

// Computed from several fields; written for other frameworks and never read back.
constexpr std::array kDerived{"JAX_COORDINATOR_ADDRESS",
                              "TF_CONFIG",
                              "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                              "HOROVOD_GLOO_RENDEZVOUS_PORT",
                              "HOROVOD_CONTROLLER",
                              "HORO_CONTROLLER",
                              "HORO_WARNED"};

std::string tf_config(const WorkerIdentity& w) {
  return fmt::format(
      R"({{"cluster": {{"worker": [{}]}}, "task": {{"type": "worker", "index": {}}}}})",
      w.worker_addresses.quoted(), w.rank);
}

}  // namespace

std::string WorkerAddresses::quoted() const {
  std::string text;
  if (empty()) return text;
  for (const auto& address : *list_) {
    if (!text.empty()) text += ", ";
    text.append(1, '"').append(address).append(1, '"');
  }
  return text;
}

Environment worker_environment(const WorkerIdentity& identity) {
  Environment env;
  const auto add = [&](std::span<const NumberRow> rows) {
    for (const auto& row : rows) {
      const auto text = std::to_string(row.read(identity));
      env.emplace_back(row.variable, text);
      for (const char* alias : row.aliases) {
        if (alias != nullptr) env.emplace_back(alias, text);
      }
    }
  };
  add(kNumbers);
  if (identity.elastic) add(kElasticNumbers);
  const auto add_texts = [&](std::span<const TextRow> rows) {
    for (const auto& row : rows) {
      const auto& text = identity.*row.field;
      env.emplace_back(row.variable, text);
      if (row.alias != nullptr) env.emplace_back(row.alias, text);
    }
  };
  add_texts(kTexts);
  if (identity.elastic) add_texts(kElasticTexts);
  env.emplace_back(kNonce, std::to_string(identity.board_nonce));
  if (!identity.master_address.empty()) {
    env.emplace_back("JAX_COORDINATOR_ADDRESS",
                     with_port(identity.master_address, identity.master_port));
  }
  if (!identity.worker_addresses.empty()) env.emplace_back("TF_CONFIG", tf_config(identity));
  return env;
}

std::string with_port(std::string_view host, int port) {
  const bool ipv6 = host.find(':') != std::string_view::npos;
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool describes_rank(std::string_view variable) {
  const auto is_in = [variable](std::span<const NumberRow> rows) {
    return std::ranges::any_of(rows, [variable](const NumberRow& row) {
      return variable == row.variable || std::ranges::any_of(row.aliases, [&](const char* alias) {
               return alias != nullptr && variable == alias;
             });
    });
  };
  if (is_in(kNumbers) || is_in(kElasticNumbers)) return true;
  const auto is_text = [variable](std::span<const TextRow> rows) {
    return std::ranges::any_of(rows, [variable](const TextRow& row) {
      return variable == row.variable || (row.alias != nullptr && variable == row.alias);
    });
  };
  return is_text(kTexts) || is_text(kElasticTexts) || variable == kNonce ||
         std::find(kDerived.begin(), kDerived.end(), variable) != kDerived.end();
}

namespace {

Status read_numbers(WorkerIdentity& identity, std::span<const NumberRow> rows,
                    const std::function<const char*(const char*)>& lookup) {
  for (const auto& row : rows) {
    const char* text = lookup(row.variable);
    if (text == nullptr) continue;
    const std::string_view view(text);
    long long value = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    if (error != std::errc{} || end != view.data() + view.size() || value < row.least ||
        value > row.most) {
      return fail(Errc::invalid_argument,
                  "{}='{}' must be a whole number from {} to {}; horo run sets it", row.variable,
                  view, row.least, row.most);
    }
    row.write(identity, value);
  }
  return {};
}

void read_texts(WorkerIdentity& identity, std::span<const TextRow> rows,
                const std::function<const char*(const char*)>& lookup) {
  for (const auto& row : rows) {
    if (const char* text = lookup(row.variable); text != nullptr) identity.*row.field = text;
  }
}

Status read_elastic(WorkerIdentity& identity,
                    const std::function<const char*(const char*)>& lookup) {
  if (lookup("HORO_ELASTIC") == nullptr) return {};
  HORO_TRY_STATUS(read_numbers(identity, kElasticNumbers, lookup));
  read_texts(identity, kElasticTexts, lookup);
  if (!identity.elastic) return {};
  const char* missing = nullptr;
  if (identity.membership.empty()) missing = "HORO_MEMBERSHIP";
  if (identity.board_slot < 0) missing = "HORO_BOARD_SLOT";
  if (identity.worker < 0) missing = "HORO_WORKER";
  if (missing == nullptr) return {};
  return fail(Errc::invalid_argument,
              "HORO_ELASTIC=1 without {}; horo run sets it for the workers of an elastic job, and "
              "a program between them must pass on all variables that begin with HORO_",
              missing);
}

}  // namespace

Result<std::optional<WorkerIdentity>> read_worker_identity(
    const std::function<const char*(const char*)>& lookup) {
  if (lookup("HORO_RANK") == nullptr) return std::optional<WorkerIdentity>{};
  WorkerIdentity identity;
  HORO_TRY_STATUS(read_numbers(identity, kNumbers, lookup));
  HORO_TRY_STATUS(read_elastic(identity, lookup));
  read_texts(identity, kTexts, lookup);
  if (const char* text = lookup(kNonce); text != nullptr) {
    const std::string_view view(text);
    const auto [end, error] =
        std::from_chars(view.data(), view.data() + view.size(), identity.board_nonce);
    if (error != std::errc{} || end != view.data() + view.size()) {
      return fail(Errc::invalid_argument,
                  "{}='{}' must be a whole number of 64 bits; horo run sets it", kNonce, view);
    }
  }
  if (identity.rank.value() >= identity.size ||
      identity.local_rank.value() >= identity.local_size) {
    return fail(
        Errc::invalid_argument,
        "HORO_RANK={} HORO_SIZE={} HORO_LOCAL_RANK={} HORO_LOCAL_SIZE={} do not fit together",
        identity.rank, identity.size, identity.local_rank, identity.local_size);
  }
  return std::optional(std::move(identity));
}

}  // namespace horo
