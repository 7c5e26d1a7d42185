// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/identity/identity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

namespace horo::runtime::bootstrap {

namespace {

/// An empty value counts as unset, because scripts unset variables that way.
std::optional<std::string> text_of(const Lookup& lookup, const char* variable) {
  const char* text = lookup(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return text;
}

constexpr int kMostRanks = 0xffffff;  ///< A board keeps the number of a rank in 24 bits.

std::optional<int> parse(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::optional<int>> number_of(const Lookup& lookup, const char* variable, int least) {
  const auto text = text_of(lookup, variable);
  if (!text) return std::optional<int>{};
  const auto value = parse(*text);
  if (value && *value >= least) return value;
  return fail(Errc::invalid_argument, "{}='{}' must be a whole number from {} to {}", variable,
              *text, least, std::numeric_limits<int>::max());
}

/// A rank's place: `position` of `count`, under the names of the variables that said so.
struct Place {
  int position = 0;
  int count = 1;
  const char* position_name = "";
  const char* count_name = "";

  std::string words() const {
    return fmt::format("{}={} {}={}", position_name, position, count_name, count);
  }
};

struct Pair {
  const char* position;
  const char* count;
};

enum class Half { error, nothing };

/// Both numbers or none. One alone is an error, unless `half` allows it.
Result<std::optional<Place>> place_of(const Lookup& lookup, Pair names, Half half = Half::error) {
  HORO_TRY(const auto position, number_of(lookup, names.position, 0));
  HORO_TRY(const auto count, number_of(lookup, names.count, 1));
  if (count && *count > kMostRanks) {
    return fail(Errc::invalid_argument, "{}='{}' must be a whole number from 1 to {}", names.count,
                *count, kMostRanks);
  }
  if (!position || !count) {
    // A count of one alone has no meaning.
    if (half == Half::nothing || (!position && count.value_or(1) == 1))
      return std::optional<Place>{};
    return fail(Errc::invalid_argument, "{}={} is set but {} is not; set both or none",
                position ? names.position : names.count, position ? *position : *count,
                position ? names.count : names.position);
  }
  const Place place{*position, *count, names.position, names.count};
  if (*position >= *count)
    return fail(Errc::invalid_argument, "{} do not fit together", place.words());
  return std::optional(place);
}

/// The rank's place in the job according to the variables of one launcher.
struct Claim {
  LauncherKind launcher;
  Place world;
  std::optional<Place> local;
};

Result<std::optional<Place>> slurm_local(const Lookup& lookup) {
  HORO_TRY(const auto local, number_of(lookup, "SLURM_LOCALID", 0));
  HORO_TRY(const auto node, number_of(lookup, "SLURM_NODEID", 0));
  const auto tasks = text_of(lookup, "SLURM_STEP_TASKS_PER_NODE");
  if (!local || !node || !tasks) return std::optional<Place>{};
  HORO_TRY(const int count, slurm_tasks_on(*tasks, *node));
  const Place place{*local, count, "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"};
  if (*local >= count) return fail(Errc::invalid_argument, "{} do not fit together", place.words());
  return std::optional(place);
}

/// Every launcher whose variables are set, the innermost first. `mpi`: only MPI launchers.
Result<std::vector<Claim>> claims_of(const Lookup& lookup, bool mpi) {
  std::vector<Claim> claims;
  const auto add = [&claims](LauncherKind launcher, const std::optional<Place>& world,
                             const std::optional<Place>& local) {
    if (world) claims.push_back({launcher, *world, local});
  };
  HORO_TRY(const auto ours, place_of(lookup, {"HORO_RANK", "HORO_SIZE"}));
  HORO_TRY(const auto our_local, place_of(lookup, {"HORO_LOCAL_RANK", "HORO_LOCAL_SIZE"}));
  if (!mpi) add(LauncherKind::by_hand, ours, our_local);

  HORO_TRY(const auto ompi, place_of(lookup, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}));
  HORO_TRY(const auto ompi_local,
           place_of(lookup, {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}));
  HORO_TRY(const auto pmi, place_of(lookup, {"PMI_RANK", "PMI_SIZE"}));
  HORO_TRY(auto pmi_local, place_of(lookup, {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}));
  // A batch script's shell has SLURM_PROCID without the step's variables.
  HORO_TRY(const auto step,
           place_of(lookup, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, Half::nothing));
  std::optional<Place> step_local;
  if (step) {
    HORO_TRY(step_local, slurm_local(lookup));
  }
  if (!pmi_local && pmi && step && step->count == pmi->count) pmi_local = step_local;

  // Batch scripts export WORLD_SIZE for what they start by srun or mpirun, which knows the rank.
  const bool outer = ompi || pmi || step;
  HORO_TRY(const auto torch,
           place_of(lookup, {"RANK", "WORLD_SIZE"},
                    outer && !text_of(lookup, "RANK") ? Half::nothing : Half::error));
  HORO_TRY(const auto torch_local,
           place_of(lookup, {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}, Half::nothing));
  if (!mpi) add(LauncherKind::torchrun, torch, torch_local);
  add(LauncherKind::open_mpi, ompi, ompi_local);
  add(LauncherKind::pmi, pmi, pmi_local);
  add(LauncherKind::slurm, step, step_local);
  return claims;
}

/// A launcher inside another makes more ranks, not fewer; variables that stayed in the environment
/// from something else do not. An MPI launcher inside Slurm is Slurm's business: its helpers on
/// other hosts are tasks of a step of their own, and the ranks see both.
Status check_against_outer(const Claim& inner, const std::vector<Claim>& claims) {
  for (const auto& outer : claims) {
    if (outer.launcher == inner.launcher) continue;
    const bool nested = inner.world.count > outer.world.count;
    const bool same =
        inner.world.count == outer.world.count && inner.world.position == outer.world.position;
    if (nested || same) continue;
    return fail(Errc::invalid_argument,
                "{} and {} contradict each other; unset those that do not describe this job",
                inner.world.words(), outer.world.words());
  }
  return {};
}

/// The first variables of `names` that are set, as one text.
std::string join(const Lookup& lookup, std::initializer_list<const char*> names) {
  std::string text;
  for (const char* name : names) {
    if (const auto value = text_of(lookup, name)) text += fmt::format("{}={};", name, *value);
  }
  return text;
}

std::string meeting_place_of(const Lookup& lookup, LauncherKind launcher) {
  auto ours = join(lookup, {"HORO_JOB_ID", "HORO_RENDEZVOUS"});
  switch (launcher) {
    case LauncherKind::horo_run:
    case LauncherKind::by_hand:
      return ours;
    case LauncherKind::torchrun: {
      // TORCHELASTIC_RUN_ID alone is "none" for every job that has not been given one.
      const auto address = join(lookup, {"MASTER_ADDR", "MASTER_PORT"});
      if (ours.empty() && address.empty()) return "";
      return ours + address +
             join(lookup, {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "GROUP_RANK"});
    }
    case LauncherKind::open_mpi: {
      // The daemon's address tells hosts apart that are one machine to the kernel.
      const auto job = join(lookup, {"OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE",
                                     "OMPI_MCA_orte_local_daemon_uri", "PMIX_SERVER_URI2"});
      return ours + job;
    }
    case LauncherKind::pmi:
      return ours + join(lookup, {"PMI_JOBID", "SLURM_NODEID"});
    case LauncherKind::slurm:
      return ours +
             join(lookup, {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NODEID"});
    case LauncherKind::nobody:
      break;
  }
  return "";
}

/// Under `horo run --mpi` the rank comes from the MPI's variables. The launcher's variables have to
/// agree with it, and name the board through which the agent watches this rank.
Result<Identity> adopt_watched(const Lookup& lookup, Identity identity) {
  HORO_TRY(const auto told, read_worker_identity(lookup));
  if (!told || told->rank != identity.worker.rank || told->size != identity.worker.size) {
    return fail(Errc::invalid_argument,
                "HORO_RANK and HORO_SIZE are not rank {} of {}, as which {} has started this "
                "process; leave both to horo run --mpi",
                identity.worker.rank, identity.worker.size, name(identity.launcher));
  }
  auto& worker = identity.worker;
  worker.board_fd = told->board_fd;
  worker.board_nonce = told->board_nonce;
  worker.agent_pid = told->agent_pid;
  worker.launcher_version = told->launcher_version;
  worker.timeline_fd = told->timeline_fd;
  worker.timeline_index = told->timeline_index;
  identity.watched = true;
  return identity;
}

Result<Identity> adopt(const Lookup& lookup, const Claim& claim) {
  Identity identity;
  identity.launcher = claim.launcher;
  auto& worker = identity.worker;
  worker.rank = Rank{claim.world.position};
  worker.size = claim.world.count;
  identity.local_known = claim.local.has_value();
  if (claim.local) {
    if (claim.local->count > claim.world.count || claim.local->position > claim.world.position) {
      return fail(Errc::invalid_argument, "{} and {} do not fit together", claim.world.words(),
                  claim.local->words());
    }
    worker.local_rank = LocalRank{claim.local->position};
    worker.local_size = claim.local->count;
  }
  worker.hostname = text_of(lookup, "HORO_HOSTNAME").value_or("");
  worker.job_id = text_of(lookup, "HORO_JOB_ID").value_or("");
  worker.rendezvous = text_of(lookup, "HORO_RENDEZVOUS").value_or("");
  identity.meeting_place = meeting_place_of(lookup, claim.launcher);
  if (claim.launcher == LauncherKind::pmi) {
    HORO_TRY(const auto fd, number_of(lookup, "PMI_FD", 0));
    identity.pmi_fd = fd.value_or(-1);
  }
  return identity;
}

}  // namespace

std::string_view name(LauncherKind launcher) {
  switch (launcher) {
    case LauncherKind::horo_run:
      return "horo run";
    case LauncherKind::by_hand:
      return "HORO_RANK";
    case LauncherKind::torchrun:
      return "torchrun";
    case LauncherKind::open_mpi:
      return "Open MPI's mpirun";
    case LauncherKind::pmi:
      return "MPICH's mpiexec";
    case LauncherKind::slurm:
      return "srun";
    case LauncherKind::nobody:
      break;
  }
  return "nobody";
}

Result<int> slurm_tasks_on(std::string_view tasks_per_node, int node) {
  const auto wrong = [&] {
    return fail(Errc::invalid_argument,
                "SLURM_STEP_TASKS_PER_NODE='{}' does not say how many tasks node {} has",
                tasks_per_node, node);
  };
  auto rest = tasks_per_node;
  for (long long first = 0; !rest.empty();) {
    const auto end = std::min(rest.find(','), rest.size());
    auto group = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    std::optional<int> nodes = 1;
    if (const auto open = group.find("(x"); open != std::string_view::npos) {
      if (group.back() != ')') return wrong();
      nodes = parse(group.substr(open + 2, group.size() - open - 3));
      group = group.substr(0, open);
    }
    const auto tasks = parse(group);
    if (!nodes || *nodes < 1 || !tasks || *tasks < 1) return wrong();
    first += *nodes;
    if (node < first) return *tasks;
  }
  return wrong();
}

Result<Identity> read_identity(const Lookup& lookup) {
  const auto board = text_of(lookup, "HORO_BOARD_FD");
  const bool agent = board && board != "-1";
  const bool mpi = agent && text_of(lookup, "HORO_CONTROLLER") == "mpi";
  // An agent sets all variables, and HORO_BOARD_FD shows that there is one.
  if (agent && !mpi) {
    HORO_TRY(auto told, read_worker_identity(lookup));
    if (told) {
      return Identity{.launcher = LauncherKind::horo_run,
                      .worker = std::move(*told),
                      .meeting_place = meeting_place_of(lookup, LauncherKind::horo_run)};
    }
  }
  HORO_TRY(const auto claims, claims_of(lookup, mpi));
  if (mpi && claims.empty()) {
    return fail(Errc::invalid_argument,
                "HORO_CONTROLLER=mpi says that an MPI has started this process, but neither "
                "OMPI_COMM_WORLD_RANK nor PMI_RANK is set; start it without a wrapper that clears "
                "them");
  }
  if (claims.empty()) return Identity{};
  const auto& first = claims.front();
  const bool trusted =
      first.launcher == LauncherKind::torchrun && text_of(lookup, "TORCHELASTIC_RUN_ID");
  if (!trusted &&
      (first.launcher == LauncherKind::by_hand || first.launcher == LauncherKind::torchrun))
    HORO_TRY_STATUS(check_against_outer(first, claims));
  HORO_TRY(auto identity, adopt(lookup, first));
  if (mpi) return adopt_watched(lookup, std::move(identity));
  return identity;
}

}  // namespace horo::runtime::bootstrap
