// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/batch_system.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/cli/split_words.hpp"
#include "base/knobs/elastic_knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "discovery/sources/lsf.hpp"
#include "discovery/sources/slurm.hpp"
#include "discovery/sources/slurm_queue.hpp"
#include "discovery/text_file.hpp"
#include "launcher/mpi/jsrun_command.hpp"
#include "launcher/mpi/mpirun_command.hpp"
#include "launcher/plan/csm_cpus.hpp"
#include "launcher/plan/find_program.hpp"
#include "launcher/starters/link/remote_agent.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kOperatorsAgent = "kubexec.sh";
constexpr const char* kAgentVariable = "OMPI_MCA_plm_rsh_agent";

/// A Slurm step of one task on `host` that shares all of the job's resources there with other
/// steps.
std::vector<std::string> srun_words(const BatchStart& start, const std::string& host) {
  std::vector<std::string> words{
      "srun",       "--nodes=1",    "--ntasks=1", "--nodelist=" + host,
      "--overlap",  "--whole",      "--mem=0",    "--cpu-bind=none",
      "--mpi=none", "--unbuffered", "--quiet",    "--kill-on-bad-exit=0"};
  if (start.component >= 0) words.push_back(fmt::format("--het-group={}", start.component));
  return words;
}

/// LSF sends a job's signals to all of its processes. SIGUSR1 and SIGUSR2 are meant for the ranks
/// and must not end the program over which their agent is connected.
void ignore_notices(ProgramWay& start) {
  start.name = start.arguments.front();
  const std::vector<std::string> wrapper{"sh", "-c", R"(trap '' USR1 USR2; exec "$@")", "sh"};
  start.arguments.insert(start.arguments.begin(), wrapper.begin(), wrapper.end());
}

/// jsrun where CSM has allocated the hosts, else blaunch. Its `why` is appended to "a host of LSF
/// job N".
Result<BatchStart> choose_lsf_program(const Settings& settings, const BatchSystem::Lookup& lookup,
                                      int cancel) {
  std::string trouble;
  const char* allocation = lookup("CSM_ALLOCATION_ID");
  const auto jsrun = find_program("jsrun", lookup("PATH"));
  if (allocation != nullptr && jsrun) {
    const auto deadline =
        Deadline::in(SteadyClock::instance(), settings.get(knobs::kDiscoveryTimeout));
    const auto cpus = count_csm_cpus(*jsrun, allocation, {deadline, cancel});
    if (cpus) {
      return BatchStart{.program = RemoteProgram::jsrun,
                        .why = fmt::format(", whose hosts are of CSM allocation {}", allocation),
                        .cpus = *cpus};
    }
    trouble = cpus.error().message;
  }
  const auto blaunch = find_program("blaunch", lookup("PATH"));
  if (blaunch)
    return BatchStart{.program = RemoteProgram::blaunch,
                      .why = trouble.empty() ? "" : fmt::format("; not by jsrun: {}", trouble)};
  return fail(Errc::not_found, "{}{}{}", trouble, trouble.empty() ? "" : "; ",
              blaunch.error().message);
}

/// Nodes that a Slurm job has got since it began. Only an elastic job asks for them, once, when a
/// host is not among those that the job began with.
class AddedNodes {
 public:
  AddedNodes(BatchSystem::Lookup lookup, WaitLimit limit, bool asks)
      : lookup_(std::move(lookup)), limit_(limit), asks_(asks) {}

  bool has(const std::string& host) {
    if (std::exchange(asks_, false) && discovery::can_ask_slurm(lookup_)) {
      if (auto found = discovery::slurm_nodes_now(lookup_, limit_)) nodes_ = std::move(*found);
    }
    return std::ranges::find(nodes_, host) != nodes_.end();
  }

 private:
  const BatchSystem::Lookup lookup_;
  const WaitLimit limit_;
  bool asks_;
  std::vector<std::string> nodes_;
};

bool is_elastic(const Settings& settings) {
  return settings.get(knobs::kMinNp) != 0 || settings.get(knobs::kMaxNp) != 0;
}

std::string basename_of(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::string_view name(RemoteProgram program) {
  switch (program) {
    case RemoteProgram::srun:
      return "srun";
    case RemoteProgram::blaunch:
      return "blaunch";
    case RemoteProgram::jsrun:
      return "jsrun";
    case RemoteProgram::rsh:
      return "rsh agent";
  }
  return "";
}

BatchStart rsh_start(const std::string& path, std::string_view script) {
  BatchStart start{.program = RemoteProgram::rsh, .why = {}, .before = {path}};
  const auto begin = script.rfind("kubectl exec ");
  if (begin == std::string_view::npos) return start;
  const auto line_begin = script.rfind('\n', begin) + 1;
  const auto line = script.substr(line_begin, script.find('\n', begin) - line_begin);
  const auto words = split_words(line);
  if (!words) return start;
  BatchStart direct{.program = RemoteProgram::rsh, .why = {}};
  bool host = false;
  bool command = false;
  for (const auto& word : *words) {
    if (word == "-i" || word == "--stdin" || word.starts_with("-it")) return start;
    if (word == "$*" || word == "$@") {
      command = true;
    } else if (word == "${POD_NAME}" || word == "$POD_NAME") {
      host = true;
    } else if (command || word.find_first_of("$`|&;<>") != std::string::npos) {
      return start;
    } else {
      (host ? direct.between : direct.before).push_back(word);
      if (word == "exec" && !host) direct.before.emplace_back("-i");
    }
  }
  return host && command ? direct : start;
}

Result<ProgramWay> program_start(const BatchStart& start, const std::string& host,
                                 const std::string& agent) {
  ProgramWay program{.host = host, .arguments = {}, .target = host};
  auto& words = program.arguments;
  switch (start.program) {
    case RemoteProgram::srun:
      words = srun_words(start, host);
      for (auto& word : remote_command(agent)) words.push_back(std::move(word));
      break;
    case RemoteProgram::blaunch:
      // LSF does not document whether a shell splits the command there; one word is safe either
      // way.
      words = {"blaunch", host, agent};
      ignore_notices(program);
      break;
    case RemoteProgram::jsrun: {
      HORO_TRY(const auto erf,
               compose_erf({PlacedHost{.name = host, .ranks = {Rank{0}}}}, start.cpus));
      HORO_TRY(auto file, ScratchFile::write(erf));
      auto kept = std::make_shared<ScratchFile>(std::move(file));
      words = compose_jsrun({.program = "jsrun",
                             .erf = kept->path(),
                             .binding = {},
                             .smp_arguments = {},
                             .agent = {agent}});
      program.kept = std::move(kept);
      ignore_notices(program);
      break;
    }
    case RemoteProgram::rsh:
      words = start.before;
      words.push_back(host);
      words.insert(words.end(), start.between.begin(), start.between.end());
      words.push_back(remote_command_line(agent));
      break;
  }
  return program;
}

Status BatchSystem::find_slurm(const Settings& settings, const Lookup& lookup, int cancel) {
  const char* id = lookup("SLURM_JOB_ID");
  if (id == nullptr) {
    if (!requested_) return {};
    return fail(Errc::invalid_argument,
                "--starter slurm outside a Slurm job; use salloc or sbatch");
  }
  job_ = fmt::format("Slurm job {}", id);
  if (const auto srun = find_program("srun", lookup("PATH")); !srun) {
    if (requested_)
      return fail(Errc::invalid_argument, "--starter slurm: {}", srun.error().message);
    why_not_ = fmt::format("{}: {}", job_, srun.error().message);
    return {};
  }
  auto found = discovery::slurm_nodes(lookup);
  if (!found) {
    return Failure(std::move(found).error().context(
        fmt::format("{} (with --starter ssh it is not asked)", job_)));
  }
  const auto deadline =
      Deadline::in(SteadyClock::instance(), settings.get(knobs::kDiscoveryTimeout));
  auto added =
      std::make_shared<AddedNodes>(lookup, WaitLimit{deadline, cancel}, is_elastic(settings));
  std::unordered_map<std::string, int> component;
  for (std::size_t i = 0; i < found->size(); ++i) {
    for (const auto& node : (*found)[i])
      component.emplace(node, found->size() == 1 ? -1 : static_cast<int>(i));
  }
  const BatchStart start{.program = RemoteProgram::srun, .why = "a node of " + job_};
  choose_ = [start, component = std::move(component),
             added = std::move(added)](const std::string& host) {
    const auto place = component.find(host);
    std::optional<BatchStart> chosen;
    if (place == component.end() && !added->has(host)) return chosen;
    chosen = start;
    chosen->component = place == component.end() ? -1 : place->second;
    return chosen;
  };
  return {};
}

Status BatchSystem::find_lsf(const Settings& settings, const Lookup& lookup, int cancel) {
  const char* id = lookup("LSB_JOBID");
  if (id == nullptr) {
    if (!requested_) return {};
    return fail(Errc::invalid_argument, "--starter lsf outside a job of LSF; use bsub");
  }
  job_ = fmt::format("LSF job {}", id);
  auto start = choose_lsf_program(settings, lookup, cancel);
  if (!start) {
    if (requested_) return fail(Errc::invalid_argument, "--starter lsf: {}", start.error().message);
    why_not_ = fmt::format("{}: {}", job_, start.error().message);
    return {};
  }
  start->why = fmt::format("a host of {}{}", job_, start->why);
  auto source = std::make_shared<discovery::LsfSource>(lookup);
  choose_ = [start = *start, source = std::move(source)](const std::string& host) {
    return source->may_have(host) ? std::optional(start) : std::nullopt;
  };
  return {};
}

Status BatchSystem::find_rsh(const std::string& program, std::string why, const Lookup& lookup) {
  HORO_TRY(const auto path, find_program(program, lookup("PATH")));
  const auto script = discovery::read_text_file(path);
  auto start = rsh_start(path, script ? *script : "");
  start.why = std::move(why);
  if (start.before.size() > 1)
    start.why += ", by its kubectl with -i, because agents need standard input";
  choose_ = [start](const std::string&) { return std::optional(start); };
  return {};
}

Result<BatchSystem> BatchSystem::find(const Settings& settings, const Lookup& lookup, int cancel) {
  BatchSystem system;
  const auto choice = settings.get(knobs::kStarter);
  system.requested_ = choice != StarterChoice::automatic;
  if (const auto agent = settings.get(knobs::kRshAgent); !agent.empty()) {
    if (system.requested_) {
      return fail(Errc::invalid_argument,
                  "--rsh-agent and --starter {} each say how agents are started; leave one out",
                  knobs::kStarter.text.choices.at(static_cast<std::size_t>(choice)));
    }
    auto found = system.find_rsh(agent, "--rsh-agent", lookup);
    if (!found) return fail(Errc::invalid_argument, "--rsh-agent: {}", found.error().message);
    return system;
  }
  if (choice == StarterChoice::ssh) return system;
  if (choice == StarterChoice::slurm || (!system.requested_ && lookup("SLURM_JOB_ID") != nullptr)) {
    HORO_TRY_STATUS(system.find_slurm(settings, lookup, cancel));
    return system;
  }
  if (choice == StarterChoice::lsf || lookup("LSB_JOBID") != nullptr) {
    HORO_TRY_STATUS(system.find_lsf(settings, lookup, cancel));
    return system;
  }
  const char* agent = lookup(kAgentVariable);
  if (agent != nullptr && basename_of(agent) == kOperatorsAgent)
    HORO_TRY_STATUS(system.find_rsh(agent, kAgentVariable, lookup).context(kAgentVariable));
  return system;
}

Result<std::optional<BatchStart>> BatchSystem::start_for(const std::string& host) const {
  auto start = choose_ ? choose_(host) : std::nullopt;
  if (start || !requested_ || !choose_) return start;
  return fail(Errc::invalid_argument, "host '{}' does not belong to {}", host, job_);
}

}  // namespace horo::launcher
