// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpirun_command.hpp"

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using Words = std::vector<std::string>;

namespace {

MpiRequest request(MpiKind kind) {
  return {.kind = kind,
          .program = "mpirun",
          .agent = {"/opt/horo-agent", "--dial-in"},
          .hosts = {{.name = "node1", .ranks = {Rank{0}, Rank{1}}},
                    {.name = "node2", .ranks = {Rank{2}}}},
          .exported = {"HOME", "PATH"}};
}

std::string line(const MpiRequest& request) {
  const auto command = compose_mpirun(request);
  if (!command) return command.error().message;
  std::string text;
  for (const auto& word : command->words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

TEST_CASE("Open MPI gets hosts with slots, no binding, and the names of variables") {
  CHECK(line(request(MpiKind::open_mpi)) ==
        "mpirun -np 3 -H node1:2,node2:1 -bind-to none -map-by slot -x HOME -x PATH "
        "/opt/horo-agent --dial-in");
}

TEST_CASE("Spectrum MPI is bound by socket and takes -tcp") {
  auto wanted = request(MpiKind::spectrum);
  wanted.tcp = true;
  CHECK(line(wanted) ==
        "mpirun -np 3 -H node1:2,node2:1 -bind-to socket -map-by socket -rank-by core -tcp "
        "-x HOME -x PATH /opt/horo-agent --dial-in");
}

TEST_CASE("MPICH gets hosts with slots, and forwards variables by itself") {
  CHECK(line(request(MpiKind::mpich)) ==
        "mpirun -np 3 -hosts node1:2,node2:1 /opt/horo-agent --dial-in");
}

TEST_CASE("Intel MPI gets ranks per host, which must be equal on all hosts") {
  auto wanted = request(MpiKind::intel);
  CHECK(line(wanted).find("2 on 'node1' and 1 on 'node2'") != std::string::npos);
  wanted.hosts.back().ranks.push_back(Rank{3});
  CHECK(line(wanted) ==
        "mpirun -np 4 -ppn 2 -hosts node1,node2 -genvall /opt/horo-agent --dial-in");
}

TEST_CASE("the user's binding replaces ours, and further words come last") {
  auto wanted = request(MpiKind::open_mpi);
  wanted.binding = {"-bind-to", "core"};
  wanted.extra = {"-mca", "btl", "^openib"};
  wanted.exported = {};
  CHECK(line(wanted) ==
        "mpirun -np 3 -H node1:2,node2:1 -bind-to core -mca btl ^openib /opt/horo-agent "
        "--dial-in");
  wanted.kind = MpiKind::mpich;
  CHECK(line(wanted) ==
        "mpirun -np 3 -hosts node1:2,node2:1 -bind-to core -mca btl ^openib /opt/horo-agent "
        "--dial-in");
}

TEST_CASE("flags that the user did not give are explained in a note") {
  auto wanted = request(MpiKind::open_mpi);
  wanted.root = true;
  wanted.cores = 1;
  const auto command = compose_mpirun(wanted).value();
  CHECK(line(wanted).starts_with("mpirun --allow-run-as-root -np 3"));
  CHECK(line(wanted).find("-mca mpi_yield_when_idle 1") != std::string::npos);
  CHECK(command.notes.size() == 2);
  wanted.kind = MpiKind::mpich;
  CHECK(compose_mpirun(wanted)->notes.empty());
}

TEST_CASE("many hosts are started without a tree of daemons") {
  auto wanted = request(MpiKind::open_mpi);
  wanted.hosts.assign(64, {.name = "n", .ranks = {Rank{0}}});
  CHECK(line(wanted).find("-mca plm_rsh_no_tree_spawn true -mca plm_rsh_num_concurrent 64") !=
        std::string::npos);
}

TEST_CASE("option --tcp is refused for an MPI that has no option for it") {
  auto wanted = request(MpiKind::mpich);
  wanted.tcp = true;
  CHECK(line(wanted).find("--mpi-args") != std::string::npos);
}

TEST_CASE("ssh's arguments and network interfaces reach each MPI under its own options") {
  auto wanted = request(MpiKind::open_mpi);
  wanted.ssh = {"-p", "2222", "-i", "/k"};
  wanted.interfaces = {"eth0", "ib0"};
  wanted.exported = {};
  const auto open_mpi = compose_mpirun(wanted).value().words;
  CHECK(Words(open_mpi.begin() + 9, open_mpi.end() - 2) ==
        Words{"-mca", "plm_rsh_args", "-p 2222 -i /k", "-mca", "btl_tcp_if_include", "eth0,ib0",
              "-mca", "oob_tcp_if_include", "eth0,ib0"});
  wanted.kind = MpiKind::mpich;
  CHECK(line(wanted) ==
        "MPICH takes one network interface, not eth0 and ib0; give one with --network-interfaces");
  wanted.interfaces = {"eth0"};
  wanted.hosts.back().ranks.push_back(Rank{3});
  CHECK(line(wanted) ==
        "mpirun -np 4 -hosts node1:2,node2:2 -launcher ssh -iface eth0 /opt/horo-agent --dial-in");
  CHECK(compose_mpirun(wanted).value().variables ==
        Environment{{"HYDRA_LAUNCHER_EXTRA_ARGS", "-p 2222 -i /k"}});
  wanted.kind = MpiKind::intel;
  CHECK(line(wanted) ==
        "mpirun -np 4 -ppn 2 -hosts node1,node2 -genvall -bootstrap ssh -bootstrap-exec-args "
        "-p 2222 -i /k -iface eth0 /opt/horo-agent --dial-in");
}

TEST_CASE("exported names are sorted, unique and valid") {
  CHECK(names_to_export(
            {{"B", "1"}, {"A", "2"}, {"B", "3"}, {"no-name", ""}, {"1X", ""}, {"", ""}}) ==
        Words{"A", "B"});
}

TEST_CASE("variables that an MPI sets for one rank are recognised") {
  CHECK(is_of_one_mpi_rank("OMPI_COMM_WORLD_RANK"));
  CHECK(is_of_one_mpi_rank("PMI_FD"));
  CHECK_FALSE(is_of_one_mpi_rank("OMPI_MCA_btl"));
  CHECK_FALSE(is_of_one_mpi_rank("PATH"));
}
