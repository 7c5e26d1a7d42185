// SPDX-License-Identifier: Apache-2.0
#include "apps/run/plan_text.hpp"

#include "apps/common/shell.hpp"
#include "base/json.hpp"
#include "base/knobs/launcher_knobs.hpp"

namespace horo::apps {

using launcher::JobPlan;

namespace {

constexpr std::string_view kErfPlace = "ERF, a file that is written when the job starts";

/// These variables are known only once the job runs.
bool is_set_at_start(std::string_view name) {
  return name == "HORO_BOARD_FD" || name == "HORO_BOARD_NONCE" || name == "HORO_AGENT_PID" ||
         name == "HORO_RENDEZVOUS";
}

Environment planned_environment(const WorkerIdentity& identity) {
  auto environment = worker_environment(identity);
  std::erase_if(environment, [](const auto& entry) { return is_set_at_start(entry.first); });
  return environment;
}

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return shell_quoted(word);
}

std::string command_line(const std::vector<std::string>& command) {
  std::string text;
  for (const auto& word : command)
    text += fmt::format("{}{}", text.empty() ? "" : " ", quoted(word));
  return text;
}

void write_environment(JsonWriter& json, const Environment& environment) {
  json.begin_object();
  for (const auto& [name, value] : environment) json.key(name).value(value);
  json.end_object();
}

/// How agents are started.
std::string starter_of(const JobPlan& plan) {
  return plan.mpi ? plan.mpi->name : names_of(plan.starts);
}

std::string_view word_for(BindTo bind_to) {
  return knobs::kBindTo.text.choices.at(static_cast<std::size_t>(bind_to));
}

/// Writes null for a rank on another host, whose agent decides.
void write_part(JsonWriter& json, const JobPlan& plan, const WorkerIdentity& identity) {
  const auto& parts = plan.parts[static_cast<std::size_t>(identity.host_index)];
  if (!parts) {
    json.key("hardware_threads").null().key("gpus").null();
    return;
  }
  const auto& part = parts->ranks[identity.local_rank.index()];
  json.key("hardware_threads").value(discovery::describe_cpus(part.cpus));
  json.key("gpus").value(part.gpus);
}

/// The host whose agent starts the agent of host number `host`; empty: the launcher does.
std::string parent_of(const JobPlan& plan, std::size_t host) {
  const auto& parents = plan.starts.tree.parents;
  const auto parent = host < parents.size() ? parents[host] : std::nullopt;
  return parent ? plan.placement.hosts[*parent].name : std::string();
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

void write_mpi(JsonWriter& json, const launcher::MpiPlan& mpi) {
  json.key(mpi.program).begin_array();
  for (const auto& word : mpi.command.words) json.value(word);
  json.end_array();
  if (!mpi.erf.empty()) json.key("erf").value(mpi.erf);
}

void write_hosts(JsonWriter& json, const JobPlan& plan) {
  json.key("hosts").begin_array();
  for (std::size_t i = 0; i < plan.placement.hosts.size(); ++i) {
    const auto& host = plan.placement.hosts[i];
    json.begin_object().key("name").value(host.name);
    json.key("ranks").begin_array();
    for (const auto rank : host.ranks) json.value(rank.value());
    json.end_array().key("from");
    if (const auto parent = parent_of(plan, i); parent.empty()) {
      json.null();
    } else {
      json.value(parent);
    }
    json.end_object();
  }
  json.end_array();
}

/// Only names: the values may be access tokens, and people pass plans around.
void write_inherited(JsonWriter& json, const JobPlan& plan) {
  const auto& environment = *plan.agents.front().common;
  json.key("inherited").begin_array();
  const auto inherited = environment.size() - plan.common.size();
  for (std::size_t i = 0; i < inherited; ++i) json.value(environment[i].first);
  json.end_array();
}

/// "begins with 4 ranks or more, goes on with 2, has at most 8".
std::string describe_size(const launcher::ElasticSize& size) {
  auto text = fmt::format("begins with {} ranks or more, goes on with {}", size.np, size.least);
  if (size.limited) text += fmt::format(", has at most {}", size.most);
  return text;
}

void write_elastic(JsonWriter& json, const launcher::ElasticSize& size) {
  json.key("elastic").begin_object().key("np").value(size.np).key("min_np").value(size.least);
  json.key("max_np");
  if (size.limited) {
    json.value(size.most);
  } else {
    json.null();
  }
  json.end_object();
}

void write_rank(JsonWriter& json, const JobPlan& plan, const WorkerIdentity& identity) {
  json.begin_object().key("rank").value(identity.rank.value());
  json.key("host").value(identity.hostname);
  json.key("local_rank").value(identity.local_rank.value());
  json.key("local_size").value(identity.local_size);
  json.key("cross_rank").value(identity.cross_rank);
  json.key("cross_size").value(identity.cross_size);
  write_part(json, plan, identity);
  json.key("environment");
  write_environment(json, planned_environment(identity));
  json.end_object();
}

}  // namespace

std::string describe_parts(const JobPlan& plan, std::size_t host) {
  const auto& parts = plan.parts[host];
  if (!parts) return fmt::format("binding {}, as its agent finds it", word_for(plan.bind_to));
  auto text = fmt::format("binding {}", word_for(parts->bound));
  if (!parts->why.empty()) text += fmt::format(", as {}", parts->why);
  if (plan.gpus == GpuMode::automatic && parts->ranks.front().gpus.empty()) text += "; no GPU";
  return text;
}

std::string describe_start(const JobPlan& plan, std::size_t host) {
  const auto& start = plan.starts.hosts[host];
  if (start.method == launcher::StartMethod::local) return {};
  const auto parent = parent_of(plan, host);
  return fmt::format("; {}{}{}", describe(start), parent.empty() ? "" : ", from host ", parent);
}

std::string plan_text(const JobPlan& plan) {
  const auto& agent = plan.agents.front();
  auto text =
      fmt::format("command    {}\nprogram    {}\ndirectory  {}\nstarter    {}\nhosts      {}\n",
                  command_line(agent.command), plan.program, agent.directory, starter_of(plan),
                  plan.hosts_from);
  if (plan.mpi) {
    text += fmt::format("{:<11}{}\n", plan.mpi->program, command_line(plan.mpi->command.words));
    for (const auto& note : plan.mpi->command.notes) text += fmt::format("           {}\n", note);
  }
  if (plan.elastic) text += fmt::format("elastic    {}\n", describe_size(*plan.elastic));
  if (const auto tree = describe_tree(plan.starts); !tree.empty())
    text += fmt::format("tree       {}\n", tree);
  for (std::size_t i = 0; i < plan.placement.hosts.size(); ++i) {
    const auto& host = plan.placement.hosts[i];
    text += fmt::format("host       {}: {} ranks, {}; {}{}\n", host.name, host.count(),
                        launcher::describe_ranks(host.ranks), describe_parts(plan, i),
                        describe_start(plan, i));
  }
  text += fmt::format("\n{:>6}  {:<20} {:>12} {:>12}\n", "rank", "host", "local", "cross");
  for (const auto& rank : plan.placement.ranks) {
    text +=
        fmt::format("{:>6}  {:<20} {:>12} {:>12}", rank.rank, plan.placement.hosts[rank.host].name,
                    fmt::format("{} of {}", rank.local_rank, rank.local_size),
                    fmt::format("{} of {}", rank.cross_rank, rank.cross_size));
    const auto& parts = plan.parts[rank.host];
    if (parts && parts->any())
      text += fmt::format("  {}", launcher::describe(parts->ranks[rank.local_rank.index()]));
    text += "\n";
  }
  if (plan.mpi && !plan.mpi->erf.empty()) text += fmt::format("\n{}\n{}", kErfPlace, plan.mpi->erf);
  text += "\nenvironment of rank 0, over what it inherits\n";
  for (const auto& environment : {plan.common, planned_environment(agent.ranks.front())}) {
    for (const auto& [name, value] : environment) text += fmt::format("  {}={}\n", name, value);
  }
  return text;
}

std::string plan_json(const JobPlan& plan) {
  JsonWriter json;
  const auto& agent = plan.agents.front();
  json.begin_object().key("command").begin_array();
  for (const auto& word : agent.command) json.value(word);
  json.end_array().key("program").value(plan.program).key("directory").value(agent.directory);
  json.key("starter").value(starter_of(plan));
  json.key("hosts_from").value(plan.hosts_from);
  if (plan.elastic) write_elastic(json, *plan.elastic);
  if (plan.mpi) write_mpi(json, *plan.mpi);
  json.key("grace_seconds")
      .value(seconds(agent.grace))
      .key("failure_grace_seconds")
      .value(seconds(agent.failure_grace));
  json.key("bind_to").value(word_for(agent.bind_to));
  write_hosts(json, plan);
  json.key("environment");
  write_environment(json, plan.common);
  write_inherited(json, plan);
  json.key("ranks").begin_array();
  for (const auto& host : plan.agents) {
    for (const auto& identity : host.ranks) write_rank(json, plan, identity);
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

}  // namespace horo::apps
