// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/batch_system.hpp"

#include <fstream>
#include <map>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "base/knobs/launcher_knobs.hpp"

using namespace horo;
using namespace horo::launcher;
using Catch::Contains;
using Words = std::vector<std::string>;

namespace {

/// A job's variables, and a folder of programs that do nothing.
class Place {
 public:
  explicit Place(const Words& programs) {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
    for (const auto& program : programs) {
      const auto path = folder_ + "/" + program;
      std::ofstream(path) << "#!/bin/sh\nexit 0\n";
      REQUIRE(chmod(path.c_str(), 0755) == 0);
      files_.push_back(path);
    }
    variables["PATH"] = folder_;
  }

  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  ~Place() {
    for (const auto& file : files_) unlink(file.c_str());
    rmdir(folder_.c_str());
  }

  Result<BatchSystem> find(const std::vector<Given>& flags = {}) const {
    return BatchSystem::find(Settings::resolve({.flags = flags}).value(),
                             [this](const char* name) -> const char* {
                               const auto found = variables.find(name);
                               return found == variables.end() ? nullptr : found->second.c_str();
                             });
  }

  const std::string& folder() const { return folder_; }

  std::map<std::string, std::string> variables;

 private:
  std::string folder_{"/tmp/horo-ways-XXXXXX"};
  Words files_;
};

Given starter(const char* word) {
  return {"starter", word, {}};
}

std::string line_of(const Result<ProgramWay>& way) {
  REQUIRE(way);
  std::string line;
  for (const auto& word : way->arguments) line += (line.empty() ? "" : " ") + word;
  return line;
}

constexpr const char* kOperators =
    "#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n"
    "/opt/kube/kubectl exec ${POD_NAME} --container worker -- /bin/sh -c \"$*\"\n";

}  // namespace

TEST_CASE(
    "agents on nodes of a Slurm job start by srun, in the node's component; on other hosts they do "
    "not") {
  Place place({"srun"});
  CHECK(!place.find()->start_for("a1").value());
  place.variables["SLURM_JOB_ID"] = "5";
  place.variables["SLURM_JOB_NODELIST"] = "a[1-2]";
  const auto way = place.find()->start_for("a2").value();
  REQUIRE(way);
  CHECK(way->why == "a node of Slurm job 5");
  CHECK_THAT(line_of(program_start(*way, "a2", "/opt/agent")),
             Contains("--nodelist=a2 ") && !Contains("--het-group"));
  CHECK(!place.find()->start_for("b").value());
  CHECK(place.find({starter("slurm")})->start_for("b").error().message ==
        "host 'b' does not belong to Slurm job 5");
  CHECK(!place.find({starter("ssh")})->start_for("a1").value());
  place.variables["SLURM_HET_SIZE"] = "2";
  place.variables["SLURM_JOB_NODELIST_HET_GROUP_0"] = "a1";
  place.variables["SLURM_JOB_NODELIST_HET_GROUP_1"] = "a2";
  CHECK_THAT(line_of(program_start(*place.find()->start_for("a2").value(), "a2", "/opt/agent")),
             Contains("--het-group=1 "));
}

TEST_CASE(
    "a batch system that cannot be used gives a reason, or an error if the user requested it") {
  Place place({});
  place.variables["SLURM_JOB_ID"] = "5";
  place.variables["SLURM_JOB_NODELIST"] = "a[1-2]";
  CHECK(place.find()->why_not() == "Slurm job 5: command 'srun' is not found in PATH");
  CHECK(!place.find()->start_for("a1").value());
  CHECK_THAT(place.find({starter("slurm")}).error().message, Contains("'srun' is not found"));
  CHECK_THAT(place.find({starter("lsf")}).error().message, Contains("outside a job of LSF"));
  Place contrary({"srun"});
  contrary.variables = {{"PATH", contrary.folder()},
                        {"SLURM_JOB_ID", "5"},
                        {"SLURM_JOB_NODELIST", "a[1-2]"},
                        {"SLURM_JOB_NUM_NODES", "3"}};
  CHECK_THAT(contrary.find().error().message,
             Contains("with --starter ssh") && Contains("SLURM_JOB_NUM_NODES='3' contradicts"));
}

TEST_CASE("agents on hosts of an LSF job start by blaunch, which gets the agent as one word") {
  Place place({"blaunch"});
  place.variables["LSB_JOBID"] = "7";
  place.variables["LSB_MCPU_HOSTS"] = "a.example 2 b 2";
  const auto way = place.find()->start_for("a").value();
  REQUIRE(way);
  const auto started = program_start(*way, "a", "/opt/agent").value();
  CHECK(started.name == "blaunch");
  CHECK(Words(started.arguments.end() - 3, started.arguments.end()) ==
        Words{"blaunch", "a", "/opt/agent"});
  CHECK(!place.find()->start_for("c").value());
  CHECK(place.find({starter("lsf")})->start_for("c").error().message ==
        "host 'c' does not belong to LSF job 7");
}

TEST_CASE("the MPI operator's rsh agent is recognised by its name, others need the flag") {
  Place place({"kubexec.sh", "rsh"});
  place.variables["OMPI_MCA_plm_rsh_agent"] = place.folder() + "/rsh";
  CHECK(!place.find()->start_for("pod").value());
  place.variables["OMPI_MCA_plm_rsh_agent"] = place.folder() + "/kubexec.sh";
  CHECK(place.find()->start_for("pod").value()->why == "OMPI_MCA_plm_rsh_agent");
  CHECK(place.find({{"rsh-agent", "rsh", {}}})->start_for("pod").value()->before ==
        Words{place.folder() + "/rsh"});
  CHECK_THAT(place.find({{"rsh-agent", "none", {}}}).error().message, Contains("'none'"));
}

TEST_CASE("kubectl is called directly when a script would not pass standard input on") {
  auto way = rsh_start("/etc/mpi/kubexec.sh", kOperators);
  CHECK(way.before == Words{"/opt/kube/kubectl", "exec", "-i"});
  CHECK(way.between == Words{"--container", "worker", "--", "/bin/sh", "-c"});
  CHECK_THAT(line_of(program_start(way, "pod-0", "/it's")),
             Contains("kubectl exec -i pod-0 --container worker -- /bin/sh -c test -x ") &&
                 Contains(R"('/it'\''s')"));
  for (const auto* script : {"kubectl exec -i $POD_NAME -- sh -c \"$*\"\n", "ssh \"$@\"\n",
                             "kubectl exec $(pod $1) -- sh -c \"$*\"\n", "kubectl exec 'x\n",
                             "kubectl exec $POD_NAME -- sh -c \"$*\" | tee log\n",
                             "kubectl exec $POD_NAME -- sh\n", ""}) {
    CAPTURE(script);
    CHECK(rsh_start("/k.sh", script).before == Words{"/k.sh"});
  }
}
