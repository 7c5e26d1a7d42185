// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/identity/identity.hpp"

#include <map>
#include <string>

#include <catch2/catch.hpp>

using horo::Errc;
using horo::LocalRank;
using horo::Rank;
using horo::runtime::bootstrap::Identity;
using horo::runtime::bootstrap::LauncherKind;
using horo::runtime::bootstrap::read_identity;
using horo::runtime::bootstrap::slurm_tasks_on;

namespace {

using Variables = std::map<std::string, std::string>;

horo::Result<Identity> read(const Variables& variables) {
  return read_identity([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

/// Refused, with all of `words` in the message.
void check_refused(const Variables& variables, const std::vector<std::string>& words) {
  const auto identity = read(variables);
  REQUIRE_FALSE(identity.has_value());
  CHECK(identity.error().code == Errc::invalid_argument);
  for (const auto& word : words) CHECK_THAT(identity.error().message, Catch::Contains(word));
}

void check_place(const Variables& variables, LauncherKind launcher, int rank, int size,
                 int local_rank, int local_size) {
  const auto identity = read(variables);
  REQUIRE(identity.has_value());
  CHECK(identity->launcher == launcher);
  CHECK(identity->worker.rank == Rank{rank});
  CHECK(identity->worker.size == size);
  REQUIRE(identity->local_known);
  CHECK(identity->worker.local_rank == LocalRank{local_rank});
  CHECK(identity->worker.local_size == local_size);
}

const Variables kTorch{{"RANK", "3"},       {"WORLD_SIZE", "4"},       {"LOCAL_RANK", "1"},
                       {"GROUP_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}};
const Variables kTorchrun = kTorch + Variables{{"TORCHELASTIC_RUN_ID", "none"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "2"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "17"},
                         {"PMIX_SERVER_URI2", "17.0;tcp4://127.0.0.1:4711"}};
const Variables kHydra{{"PMI_RANK", "1"},
                       {"PMI_SIZE", "2"},
                       {"MPI_LOCALRANKID", "1"},
                       {"MPI_LOCALNRANKS", "2"},
                       {"PMI_FD", "6"}};
const Variables kBatchShell{{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"},
                            {"SLURM_NTASKS", "4"}, {"SLURM_NODEID", "0"}, {"SLURM_NPROCS", "4"}};
const Variables kStep = kBatchShell + Variables{{"SLURM_STEP_ID", "0"},
                                                {"SLURM_STEP_NUM_TASKS", "5"},
                                                {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                                                {"SLURM_PROCID", "3"},
                                                {"SLURM_LOCALID", "1"},
                                                {"SLURM_NODEID", "1"}};

}  // namespace

TEST_CASE("a process without a launcher is the only rank") {
  const auto identity = read({{"SLURM_JOB_ID", "7"}, {"MASTER_ADDR", "here"}, {"RANK", ""}});
  REQUIRE(identity.has_value());
  CHECK(identity->launcher == LauncherKind::nobody);
  CHECK(identity->worker.size == 1);
}

TEST_CASE("a number of ranks that no job can have is refused before anything is made for them") {
  check_refused({{"HORO_RANK", "0"}, {"HORO_SIZE", "2147483647"}},
                {"HORO_SIZE='2147483647'", "from 1 to 16777215"});
  check_refused({{"RANK", "0"}, {"WORLD_SIZE", "16777216"}}, {"WORLD_SIZE='16777216'"});
}

TEST_CASE("each launcher's own variables give a rank its place") {
  check_place(kTorchrun, LauncherKind::torchrun, 3, 4, 1, 2);
  check_place(kTorch, LauncherKind::torchrun, 3, 4, 1, 2);
  check_place(kOpenMpi, LauncherKind::open_mpi, 2, 4, 0, 2);
  check_place(kHydra, LauncherKind::pmi, 1, 2, 1, 2);
  check_place(kStep, LauncherKind::slurm, 3, 5, 1, 2);
  CHECK(read(kHydra)->pmi_fd == 6);
}

TEST_CASE("Slurm's PMI names a rank, Slurm its place on the host") {
  check_place(kStep + Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}, {"PMI_FD", "9"}},
              LauncherKind::pmi, 3, 5, 1, 2);
}

TEST_CASE("the variables of an agent are complete") {
  const Variables agent{{"HORO_RANK", "1"},
                        {"HORO_SIZE", "2"},
                        {"HORO_LOCAL_RANK", "1"},
                        {"HORO_LOCAL_SIZE", "2"},
                        {"HORO_BOARD_FD", "56"}};
  check_place(agent, LauncherKind::horo_run, 1, 2, 1, 2);
  check_place(agent + kOpenMpi + kStep, LauncherKind::horo_run, 1, 2, 1, 2);
}

TEST_CASE("under horo run --mpi the rank comes from the MPI and the board from the agent") {
  const Variables agent{{"HORO_CONTROLLER", "mpi"},
                        {"HORO_RANK", "2"},
                        {"HORO_SIZE", "4"},
                        {"HORO_LOCAL_RANK", "1"},
                        {"HORO_LOCAL_SIZE", "2"},
                        {"HORO_BOARD_FD", "56"},
                        {"RANK", "2"},
                        {"WORLD_SIZE", "4"},
                        {"MASTER_PORT", "1"}};
  check_place(agent + kOpenMpi, LauncherKind::open_mpi, 2, 4, 0, 2);
  const auto identity = read(agent + kOpenMpi);
  CHECK(identity->watched);
  CHECK(identity->worker.board_fd == 56);
  CHECK_FALSE(read(kOpenMpi)->watched);
  CHECK(read(agent).error().message.find("neither OMPI_COMM_WORLD_RANK nor PMI_RANK") !=
        std::string::npos);
  CHECK(read(agent + kHydra).error().message.find("rank 1 of 2, as which MPICH's mpiexec") !=
        std::string::npos);
}

TEST_CASE("the shell of a batch script is not a rank") {
  CHECK(read(kBatchShell)->launcher == LauncherKind::nobody);
  // salloc and srun --pty start a step of one task inside an allocation of four.
  const auto shell = read(kBatchShell + Variables{{"SLURM_STEP_ID", "4294967290"},
                                                  {"SLURM_STEP_NUM_TASKS", "1"},
                                                  {"SLURM_STEP_TASKS_PER_NODE", "1"}});
  REQUIRE(shell.has_value());
  CHECK(shell->worker.size == 1);
}

TEST_CASE("the innermost launcher counts") {
  // srun starts torchrun once per node; mpirun reaches other hosts by srun.
  check_place(kTorchrun + Variables{{"SLURM_PROCID", "1"},
                                    {"SLURM_STEP_NUM_TASKS", "2"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                    {"SLURM_NODEID", "1"},
                                    {"SLURM_LOCALID", "0"}},
              LauncherKind::torchrun, 3, 4, 1, 2);
  check_place(kOpenMpi + kStep, LauncherKind::open_mpi, 2, 4, 0, 2);
}

TEST_CASE("WORLD_SIZE of a batch script does not make ranks, and does not confuse them") {
  check_place(kStep + Variables{{"WORLD_SIZE", "5"}}, LauncherKind::slurm, 3, 5, 1, 2);
  check_refused({{"WORLD_SIZE", "4"}}, {"WORLD_SIZE=4", "RANK"});
  CHECK(read({{"WORLD_SIZE", "1"}})->launcher == LauncherKind::nobody);
}

TEST_CASE("a variable without its counterpart is refused by name") {
  check_refused({{"RANK", "0"}}, {"RANK=0", "WORLD_SIZE is not"});
  check_refused({{"HORO_SIZE", "3"}}, {"HORO_SIZE=3", "HORO_RANK is not"});
  check_refused({{"PMI_SIZE", "3"}}, {"PMI_SIZE=3", "PMI_RANK"});
  check_refused({{"OMPI_COMM_WORLD_RANK", "3"}}, {"OMPI_COMM_WORLD_RANK=3"});
}

TEST_CASE("invalid numbers are refused by name and value") {
  check_refused({{"RANK", "four"}, {"WORLD_SIZE", "4"}}, {"RANK='four'"});
  check_refused({{"RANK", "4"}, {"WORLD_SIZE", "4"}}, {"RANK=4 WORLD_SIZE=4"});
  check_refused({{"RANK", "-1"}, {"WORLD_SIZE", "4"}}, {"RANK='-1'"});
  check_refused(kTorch + Variables{{"LOCAL_WORLD_SIZE", "8"}}, {"LOCAL_WORLD_SIZE=8"});
  check_refused(kStep + Variables{{"SLURM_STEP_TASKS_PER_NODE", "2(x"}}, {"2(x"});
}

TEST_CASE("variables left over from something else contradict the launcher's") {
  check_refused(Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}} + kOpenMpi,
                {"RANK=0 WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4"});
  check_refused(Variables{{"HORO_RANK", "1"}, {"HORO_SIZE", "2"}} + kHydra + kOpenMpi,
                {"HORO_RANK=1 HORO_SIZE=2"});
  // Scripts that translate the launcher's variables say the same twice.
  check_place(Variables{{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}} + kOpenMpi +
                  Variables{{"LOCAL_WORLD_SIZE", "2"}},
              LauncherKind::torchrun, 2, 4, 0, 2);
}

TEST_CASE("jobs that run at the same time have different meeting places") {
  const auto place = [](const Variables& variables) { return read(variables)->meeting_place; };
  CHECK(place(kTorch) != place(kTorch + Variables{{"MASTER_PORT", "29501"}}));
  CHECK(place(kTorchrun) != place(kTorchrun + Variables{{"TORCHELASTIC_RESTART_COUNT", "1"}}));
  CHECK(place(kStep) != place(kStep + Variables{{"SLURM_STEP_ID", "1"}}));
  CHECK(place(kOpenMpi) != place(kOpenMpi + Variables{{"PMIX_NAMESPACE", "18"}}));
  CHECK(place(kOpenMpi) == place(kOpenMpi + Variables{{"OMPI_COMM_WORLD_RANK", "3"}}));
  CHECK(place(kOpenMpi) != place(kOpenMpi + Variables{{"HORO_JOB_ID", "mine"}}));
  CHECK(place({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).empty());
  CHECK(place({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"HORO_JOB_ID", "a"}}) ==
        place({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"HORO_JOB_ID", "a"}}));
}

TEST_CASE("Slurm's counts per node are read in its short form") {
  CHECK(*slurm_tasks_on("4", 0) == 4);
  CHECK(*slurm_tasks_on("2(x3),1", 2) == 2);
  CHECK(*slurm_tasks_on("2(x3),1", 3) == 1);
  for (const char* wrong : {"", "x", "2(x3", "2(x0),1", "0", "2(x)", ","})
    CHECK_FALSE(slurm_tasks_on(wrong, 0));
  CHECK_FALSE(slurm_tasks_on("2(x3),1", 4));
}
