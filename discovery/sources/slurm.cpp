// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/slurm.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "discovery/host_list.hpp"

namespace horo::discovery {

namespace {

std::optional<int> whole_number(std::string_view text, int most) {
  int value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 0 || value > most) return {};
  return value;
}

/// "4", "a100:4" or "a100:4,v100:2": the GPUs of a node by kind.
std::optional<int> count_gpus(std::string_view text) {
  int sum = 0;
  for (const auto& kind : split_list(text)) {
    const auto number = whole_number(kind.text.substr(kind.text.rfind(':') + 1), kMaxSlots);
    if (!number || sum > kMaxSlots) return {};
    sum += *number;
  }
  return sum;
}

/// The variables of one component of a job.
class Component {
 public:
  Component(const Lookup& environment, std::string suffix)
      : environment_(environment), suffix_(std::move(suffix)) {}

  std::string name(std::string_view variable) const {
    return fmt::format("{}{}", variable, suffix_);
  }

  /// The value of the variable for this component. In a heterogeneous job, variables of the whole
  /// job are ignored.
  const char* find(std::string_view variable) const {
    const char* value = environment_(name(variable).c_str());
    return value == nullptr || *value == '\0' ? nullptr : value;
  }

  Status add_to(Listing& listing, int ranks_per_host) const;
  Result<std::vector<std::string>> nodes() const;

 private:
  Result<std::vector<int>> counts(std::string_view variable, std::size_t nodes) const;
  Status check_count(std::string_view variable, std::size_t nodes) const;
  Result<int> gpus(std::size_t nodes) const;

  const Lookup& environment_;
  std::string suffix_;
};

Result<std::vector<std::string>> Component::nodes() const {
  const char* variable =
      find("SLURM_JOB_NODELIST") != nullptr ? "SLURM_JOB_NODELIST" : "SLURM_NODELIST";
  const char* list = find(variable);
  if (list == nullptr) {
    return fail(Errc::unavailable, "neither {} nor {} is set; {}", name("SLURM_JOB_NODELIST"),
                name("SLURM_NODELIST"), kNameTheHosts);
  }
  std::vector<std::string> all;
  for (const auto& entry : split_list(list)) {
    auto names = expand_names(entry.text);
    if (!names || all.size() + names->size() > kMaxHosts) {
      return fail(Errc::unavailable, "{}='{}': column {}: {}; {}", name(variable), list,
                  entry.column, names ? "too many hosts" : names.error().message, kNameTheHosts);
    }
    all.insert(all.end(), names->begin(), names->end());
  }
  HORO_TRY_STATUS(check_count("SLURM_JOB_NUM_NODES", all.size()));
  return all;
}

/// The variables may come from two jobs, or were changed by hand. Horo does not guess which one is
/// right.
Status Component::check_count(std::string_view variable, std::size_t nodes) const {
  const char* text = find(variable);
  if (text == nullptr) return {};
  const auto number = whole_number(text, kMaxSlots);
  if (number && static_cast<std::size_t>(*number) == nodes) return {};
  return fail(Errc::unavailable, "{}='{}' contradicts the {} nodes of {}; {}", name(variable), text,
              nodes, name("SLURM_JOB_NODELIST"), kNameTheHosts);
}

/// Empty if the variable is not set, or counts other nodes than the job's: inside a step,
/// SLURM_TASKS_PER_NODE describes the step.
Result<std::vector<int>> Component::counts(std::string_view variable, std::size_t nodes) const {
  const char* text = find(variable);
  if (text == nullptr) return std::vector<int>{};
  auto numbers = parse_counts(text);
  if (!numbers)
    return fail(Errc::unavailable, "{}='{}': {}", name(variable), text, numbers.error().message);
  if (numbers->size() == nodes) return numbers;
  if (variable == "SLURM_JOB_CPUS_PER_NODE") {
    return fail(Errc::unavailable, "{}='{}' describes {} nodes, but {} has {}; {}", name(variable),
                text, numbers->size(), name("SLURM_JOB_NODELIST"), nodes, kNameTheHosts);
  }
  return std::vector<int>{};
}

/// GPUs on each node; 0 if Slurm does not say.
Result<int> Component::gpus(std::size_t nodes) const {
  const char* variable = "SLURM_GPUS_PER_NODE";
  // If GPUs were not counted for the whole job, the number on this node holds for all nodes.
  if (find(variable) == nullptr && (find("SLURM_GPUS") == nullptr || nodes == 1))
    variable = "SLURM_GPUS_ON_NODE";
  const char* text = find(variable);
  if (text == nullptr) return 0;
  const auto number = count_gpus(text);
  if (!number) {
    return fail(Errc::unavailable, "{}='{}' must be a number, or kinds with numbers like a100:4",
                name(variable), text);
  }
  return *number;
}

Status Component::add_to(Listing& listing, int ranks_per_host) const {
  HORO_TRY(const auto names, nodes());
  HORO_TRY(const auto tasks, counts("SLURM_TASKS_PER_NODE", names.size()));
  HORO_TRY(const auto cpus, counts("SLURM_JOB_CPUS_PER_NODE", names.size()));
  HORO_TRY(const int gpu_count, gpus(names.size()));
  const bool asked = find("SLURM_NTASKS") != nullptr || find("SLURM_NTASKS_PER_NODE") != nullptr;
  const bool by_gpu = gpu_count > 0 && (!asked || tasks.empty());
  if (!by_gpu && tasks.empty() && cpus.empty()) {
    return fail(Errc::unavailable, "neither {} nor {} gives the slots of its {} nodes; {}",
                name("SLURM_TASKS_PER_NODE"), name("SLURM_JOB_CPUS_PER_NODE"), names.size(),
                kNameTheHosts);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int room = std::max(cpus.empty() ? 0 : cpus[i], gpu_count);
    int slots = by_gpu ? gpu_count : tasks.empty() ? cpus[i] : tasks[i];
    slots = std::max(slots, std::min(ranks_per_host, room));
    if (slots > 0)
      listing.hosts.add({.name = names[i], .slots = std::min(slots, kMaxSlots), .gpus = gpu_count});
  }
  const auto& by = by_gpu           ? "its GPUs"
                   : !tasks.empty() ? "SLURM_TASKS_PER_NODE"
                                    : "SLURM_JOB_CPUS_PER_NODE";
  if (listing.from.empty()) {
    listing.from = fmt::format("nodes from SLURM_JOB_NODELIST, slots from {}", by);
    // The numbers may differ, because the tasks of a step are not those of the job.
    long long sum = 0;
    for (const int number : tasks) sum += number;
    const char* asked_for = find("SLURM_NTASKS");
    const auto number = asked_for == nullptr ? std::nullopt : whole_number(asked_for, kMaxSlots);
    if (!tasks.empty() && number && *number != sum)
      listing.from += fmt::format(" ({}), not from SLURM_NTASKS ({})", sum, *number);
  }
  return {};
}

/// The suffixes of the job's variables, one per component.
Result<std::vector<std::string>> suffixes(const Lookup& environment) {
  // Slurm before 20.02 used PACK instead of HET.
  for (const std::string_view kind : {"HET", "PACK"}) {
    const auto variable = fmt::format("SLURM_{}_SIZE", kind);
    const char* text = environment(variable.c_str());
    if (text == nullptr) continue;
    const auto size = whole_number(text, 1024);
    if (!size || *size == 0) {
      return fail(Errc::unavailable, "{}='{}' must be a whole number from 1 to 1024", variable,
                  text);
    }
    std::vector<std::string> all;
    for (int i = 0; i < *size; ++i) all.push_back(fmt::format("_{}_GROUP_{}", kind, i));
    return all;
  }
  return std::vector<std::string>{""};
}

/// Fails: unavailable, if the two variables with the job's number differ.
Status check_id(const Lookup& environment) {
  const char* now = environment("SLURM_JOB_ID");
  const char* old = environment("SLURM_JOBID");
  if (now == nullptr || old == nullptr || std::string_view(now) == old) return {};
  return fail(Errc::unavailable,
              "SLURM_JOB_ID is '{}' and SLURM_JOBID is '{}', but both must name one job; {}", now,
              old, kNameTheHosts);
}

const char* job_id(const Lookup& environment) {
  const char* id = environment("SLURM_JOB_ID");
  return id != nullptr ? id : environment("SLURM_JOBID");
}

}  // namespace

Result<std::vector<int>> parse_counts(std::string_view text) {
  std::vector<int> numbers;
  for (const auto& entry : split_list(text)) {
    const auto open = std::min(entry.text.find('('), entry.text.size());
    const auto value = whole_number(entry.text.substr(0, open), kMaxSlots);
    auto repeat = entry.text.substr(open);
    std::optional<int> times = 1;
    if (!repeat.empty()) {
      const bool closed = repeat.starts_with("(x") && repeat.ends_with(')');
      times = closed ? whole_number(repeat.substr(2, repeat.size() - 3), kMaxHosts) : std::nullopt;
    }
    if (!value || !times || numbers.size() + static_cast<std::size_t>(*times) > kMaxHosts) {
      return fail(Errc::invalid_argument,
                  "column {}: '{}' must be a number or a number with its repetition, like 2(x3)",
                  entry.column, entry.text);
    }
    numbers.insert(numbers.end(), static_cast<std::size_t>(*times), *value);
  }
  return numbers;
}

SlurmSource::SlurmSource(Lookup environment, int ranks_per_host)
    : environment_(std::move(environment)), ranks_per_host_(ranks_per_host) {
  const char* id = job_id(environment_);
  name_ = fmt::format("Slurm job {}", id == nullptr ? "?" : id);
}

bool SlurmSource::is_here(const Lookup& environment) {
  return job_id(environment) != nullptr;
}

Result<std::vector<std::vector<std::string>>> slurm_nodes(const Lookup& environment) {
  HORO_TRY_STATUS(check_id(environment));
  HORO_TRY(const auto all, suffixes(environment));
  std::vector<std::vector<std::string>> components;
  for (const auto& suffix : all) {
    HORO_TRY(auto nodes, Component(environment, suffix).nodes());
    components.push_back(std::move(nodes));
  }
  return components;
}

Result<Listing> SlurmSource::list(WaitLimit) {
  if (auto one = check_id(environment_); !one)
    return Failure(std::move(one).error().context(name_));
  auto components = suffixes(environment_);
  if (!components) return Failure(std::move(components).error().context(name_));
  Listing listing;
  for (const auto& suffix : *components) {
    auto added = Component(environment_, suffix).add_to(listing, ranks_per_host_);
    if (!added) return Failure(std::move(added).error().context(name_));
  }
  if (listing.hosts.empty())
    return fail(Errc::unavailable, "{}: its nodes take no tasks; {}", name_, kNameTheHosts);
  if (components->size() > 1) listing.from += fmt::format(", of {} components", components->size());
  return listing;
}

}  // namespace horo::discovery
