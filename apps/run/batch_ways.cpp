// SPDX-License-Identifier: Apache-2.0
#include "apps/run/batch_ways.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "apps/run/command.hpp"
#include "apps/run/jsrun_plan.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "discovery/sources/lsf.hpp"
#include "discovery/sources/slurm.hpp"
#include "discovery/text_file.hpp"
#include "launcher/mpi/command_line.hpp"
#include "launcher/mpi/jsrun.hpp"
#include "launcher/starters/link/remote_agent.hpp"

namespace horo::apps {

using namespace launcher;  // NOLINT(google-build-using-namespace): these are the launcher's ways

namespace {

constexpr const char* kOperatorsAgent = "kubexec.sh";
constexpr const char* kAgentVariable = "OMPI_MCA_plm_rsh_agent";

/// A step of one task on one node, beside others, with all that the job has there.
std::vector<std::string> srun_words(const BatchWay& way, const std::string& host) {
  std::vector<std::string> words{
      "srun",       "--nodes=1",    "--ntasks=1", "--nodelist=" + host,
      "--overlap",  "--whole",      "--mem=0",    "--cpu-bind=none",
      "--mpi=none", "--unbuffered", "--quiet",    "--kill-on-bad-exit=0"};
  if (way.component >= 0) words.push_back(fmt::format("--het-group={}", way.component));
  return words;
}

/// LSF sends a job's signals to all of its processes: what is for the ranks must not end what their
/// agents hang on.
void ignore_notices(ProgramWay& way) {
  way.name = way.arguments.front();
  const std::vector<std::string> wrapper{"sh", "-c", R"(trap '' USR1 USR2; exec "$@")", "sh"};
  way.arguments.insert(way.arguments.begin(), wrapper.begin(), wrapper.end());
}

/// jsrun where CSM has allocated the hosts, else blaunch; `why` is what is to say of it.
Result<BatchWay> choose_lsf_program(const Settings& settings, const BatchWays::Lookup& lookup) {
  std::string trouble;
  const char* allocation = lookup("CSM_ALLOCATION_ID");
  const auto jsrun = find_program("jsrun", lookup("PATH"));
  if (allocation != nullptr && jsrun) {
    const auto cpus = count_csm_cpus(*jsrun, allocation, settings.get(knobs::kDiscoveryTimeout));
    if (cpus) {
      return BatchWay{.program = BatchProgram::jsrun,
                      .why = fmt::format(", whose hosts are of CSM allocation {}", allocation),
                      .cpus = *cpus};
    }
    trouble = cpus.error().message;
  }
  const auto blaunch = find_program("blaunch", lookup("PATH"));
  if (blaunch)
    return BatchWay{.program = BatchProgram::blaunch,
                    .why = trouble.empty() ? "" : fmt::format("; not by jsrun: {}", trouble)};
  return fail(Errc::not_found, "{}{}{}", trouble, trouble.empty() ? "" : "; ",
              blaunch.error().message);
}

std::string basename_of(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::string_view name(BatchProgram program) {
  switch (program) {
    case BatchProgram::srun:
      return "srun";
    case BatchProgram::blaunch:
      return "blaunch";
    case BatchProgram::jsrun:
      return "jsrun";
    case BatchProgram::rsh:
      return "rsh agent";
  }
  return "";
}

BatchWay rsh_way(const std::string& path, std::string_view script) {
  BatchWay way{.program = BatchProgram::rsh, .why = {}, .before = {path}};
  const auto begin = script.rfind("kubectl exec ");
  if (begin == std::string_view::npos) return way;
  const auto line_begin = script.rfind('\n', begin) + 1;
  const auto line = script.substr(line_begin, script.find('\n', begin) - line_begin);
  const auto words = split_words(line);
  if (!words) return way;
  BatchWay direct{.program = BatchProgram::rsh, .why = {}};
  bool host = false;
  bool command = false;
  for (const auto& word : *words) {
    if (word == "-i" || word == "--stdin" || word.starts_with("-it")) return way;
    if (word == "$*" || word == "$@") {
      command = true;
    } else if (word == "${POD_NAME}" || word == "$POD_NAME") {
      host = true;
    } else if (command || word.find_first_of("$`|&;<>") != std::string::npos) {
      return way;
    } else {
      (host ? direct.between : direct.before).push_back(word);
      if (word == "exec" && !host) direct.before.emplace_back("-i");
    }
  }
  return host && command ? direct : way;
}

Result<ProgramWay> program_way(const BatchWay& way, const std::string& host,
                               const std::string& agent) {
  ProgramWay program{.host = host, .arguments = {}, .target = host};
  auto& words = program.arguments;
  switch (way.program) {
    case BatchProgram::srun:
      words = srun_words(way, host);
      for (auto& word : remote_command(agent)) words.push_back(std::move(word));
      break;
    case BatchProgram::blaunch:
      // Whether a shell takes the command apart there is nowhere said: one word is the same to all.
      words = {"blaunch", host, agent};
      ignore_notices(program);
      break;
    case BatchProgram::jsrun: {
      HORO_TRY(const auto erf,
               compose_erf({PlacedHost{.name = host, .ranks = {Rank{0}}}}, way.cpus));
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
    case BatchProgram::rsh:
      words = way.before;
      words.push_back(host);
      words.insert(words.end(), way.between.begin(), way.between.end());
      words.push_back(remote_command_line(agent));
      break;
  }
  return program;
}

Status BatchWays::find_slurm(const Lookup& lookup) {
  const char* id = lookup("SLURM_JOB_ID");
  if (id == nullptr) {
    if (!demanded_) return {};
    return fail(Errc::invalid_argument,
                "--starter slurm outside a Slurm job; use salloc or sbatch");
  }
  job_ = fmt::format("Slurm job {}", id);
  if (const auto srun = find_program("srun", lookup("PATH")); !srun) {
    if (demanded_) return fail(Errc::invalid_argument, "--starter slurm: {}", srun.error().message);
    why_not_ = fmt::format("{}: {}", job_, srun.error().message);
    return {};
  }
  auto found = discovery::slurm_nodes(lookup);
  if (!found) {
    return Failure(std::move(found).error().context(
        fmt::format("{} (with --starter ssh it is not asked)", job_)));
  }
  std::unordered_map<std::string, int> component;
  for (std::size_t i = 0; i < found->size(); ++i) {
    for (const auto& node : (*found)[i])
      component.emplace(node, found->size() == 1 ? -1 : static_cast<int>(i));
  }
  const BatchWay way{.program = BatchProgram::srun, .why = "a node of " + job_};
  choose_ = [way, component = std::move(component)](const std::string& host) {
    const auto place = component.find(host);
    std::optional<BatchWay> chosen;
    if (place == component.end()) return chosen;
    chosen = way;
    chosen->component = place->second;
    return chosen;
  };
  return {};
}

Status BatchWays::find_lsf(const Settings& settings, const Lookup& lookup) {
  const char* id = lookup("LSB_JOBID");
  if (id == nullptr) {
    if (!demanded_) return {};
    return fail(Errc::invalid_argument, "--starter lsf outside a job of LSF; use bsub");
  }
  job_ = fmt::format("LSF job {}", id);
  auto way = choose_lsf_program(settings, lookup);
  if (!way) {
    if (demanded_) return fail(Errc::invalid_argument, "--starter lsf: {}", way.error().message);
    why_not_ = fmt::format("{}: {}", job_, way.error().message);
    return {};
  }
  way->why = fmt::format("a host of {}{}", job_, way->why);
  auto source = std::make_shared<discovery::LsfSource>(lookup);
  choose_ = [way = *way, source = std::move(source)](const std::string& host) {
    return source->may_have(host) ? std::optional(way) : std::nullopt;
  };
  return {};
}

Status BatchWays::find_rsh(const std::string& program, std::string why, const Lookup& lookup) {
  HORO_TRY(const auto path, find_program(program, lookup("PATH")));
  const auto script = discovery::read_text_file(path);
  auto way = rsh_way(path, script ? *script : "");
  way.why = std::move(why);
  if (way.before.size() > 1)
    way.why += ", by its kubectl with -i, because agents need standard input";
  choose_ = [way](const std::string&) { return std::optional(way); };
  return {};
}

Result<BatchWays> BatchWays::find(const Settings& settings, const Lookup& lookup) {
  BatchWays ways;
  const auto choice = settings.get(knobs::kStarter);
  ways.demanded_ = choice != StarterChoice::automatic;
  if (const auto agent = settings.get(knobs::kRshAgent); !agent.empty()) {
    if (ways.demanded_) {
      return fail(Errc::invalid_argument,
                  "--rsh-agent and --starter {} each say how agents are started; leave one out",
                  knobs::kStarter.text.choices.at(static_cast<std::size_t>(choice)));
    }
    auto found = ways.find_rsh(agent, "--rsh-agent", lookup);
    if (!found) return fail(Errc::invalid_argument, "--rsh-agent: {}", found.error().message);
    return ways;
  }
  if (choice == StarterChoice::ssh) return ways;
  if (choice == StarterChoice::slurm || (!ways.demanded_ && lookup("SLURM_JOB_ID") != nullptr)) {
    HORO_TRY_STATUS(ways.find_slurm(lookup));
    return ways;
  }
  if (choice == StarterChoice::lsf || lookup("LSB_JOBID") != nullptr) {
    HORO_TRY_STATUS(ways.find_lsf(settings, lookup));
    return ways;
  }
  const char* agent = lookup(kAgentVariable);
  if (agent != nullptr && basename_of(agent) == kOperatorsAgent)
    HORO_TRY_STATUS(ways.find_rsh(agent, kAgentVariable, lookup).context(kAgentVariable));
  return ways;
}

Result<std::optional<BatchWay>> BatchWays::to(const std::string& host) const {
  auto way = choose_ ? choose_(host) : std::nullopt;
  if (way || !demanded_ || !choose_) return way;
  return fail(Errc::invalid_argument, "host '{}' is none of {}", host, job_);
}

}  // namespace horo::apps
