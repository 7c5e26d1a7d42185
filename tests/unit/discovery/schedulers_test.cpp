// SPDX-License-Identifier: Apache-2.0
// Uses environments from the schedulers' manuals and from real jobs.
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "discovery/sources/csm.hpp"
#include "discovery/sources/kubernetes.hpp"
#include "discovery/sources/lsf.hpp"
#include "discovery/sources/pbs.hpp"
#include "discovery/sources/slurm.hpp"

using namespace horo;
using namespace horo::discovery;

namespace {

using Variables = std::map<std::string, std::string>;
using Hosts = std::vector<Host>;

Lookup lookup(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

Result<Listing> slurm(Variables variables, int ranks_per_host = 0) {
  variables.emplace("SLURM_JOB_ID", "42");
  return SlurmSource(lookup(std::move(variables)), ranks_per_host).list(Deadline::never());
}

/// A folder for the files of one test case.
class Folder {
 public:
  Folder() { REQUIRE(mkdtemp(path_.data()) != nullptr); }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  ~Folder() {
    for (const auto& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }

  std::string add(const std::string& name, const std::string& content) {
    files_.push_back(path_ + "/" + name);
    std::ofstream(files_.back()) << content;
    chmod(files_.back().c_str(), 0700);
    return files_.back();
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/horo-discovery-XXXXXX";
  std::vector<std::string> files_;
};

}  // namespace

TEST_CASE("Slurm's nodes get their tasks as slots") {
  // The variables that salloc -N 2 -n 4 and sbatch --ntasks-per-node set.
  const auto listing = slurm({{"SLURM_JOB_NODELIST", "h[1-2]"},
                              {"SLURM_JOB_CPUS_PER_NODE", "3,1"},
                              {"SLURM_NTASKS", "4"},
                              {"SLURM_TASKS_PER_NODE", "3,1"}});
  REQUIRE(listing);
  CHECK(listing->hosts.hosts() == Hosts{{"h1", 3}, {"h2", 1}});
  CHECK(listing->from == "nodes from SLURM_JOB_NODELIST, slots from SLURM_TASKS_PER_NODE");

  CHECK(slurm({{"SLURM_JOB_NODELIST", "tux[1-2,5],gpu07"}, {"SLURM_TASKS_PER_NODE", "2(x3),1"}})
            .value()
            .hosts.hosts() == Hosts{{"tux1", 2}, {"tux2", 2}, {"tux5", 2}, {"gpu07", 1}});
}

TEST_CASE(
    "in a Slurm step slots come from the job's CPUs, because the tasks are those of the step") {
  const auto listing = slurm({{"SLURM_JOB_NODELIST", "h[1-2]"},
                              {"SLURM_JOB_CPUS_PER_NODE", "3,1"},
                              {"SLURM_NTASKS", "1"},
                              {"SLURM_TASKS_PER_NODE", "1"},
                              {"SLURM_STEP_ID", "0"}});
  CHECK(listing.value().hosts.hosts() == Hosts{{"h1", 3}, {"h2", 1}});
}

TEST_CASE("Slurm's GPUs are slots unless tasks were asked for") {
  const Variables nodes{{"SLURM_JOB_NODELIST", "a[1-2]"},
                        {"SLURM_TASKS_PER_NODE", "1(x2)"},
                        {"SLURM_JOB_CPUS_PER_NODE", "64(x2)"}};
  const auto with = [&](Variables more) {
    more.insert(nodes.begin(), nodes.end());
    return slurm(more).value().hosts.hosts();
  };
  CHECK(with({{"SLURM_GPUS_PER_NODE", "8"}}) == Hosts{{"a1", 8, 8}, {"a2", 8, 8}});
  CHECK(with({{"SLURM_GPUS_PER_NODE", "a100:3,v100:1"}}) == Hosts{{"a1", 4, 4}, {"a2", 4, 4}});
  CHECK(with({{"SLURM_GPUS_ON_NODE", "4"}}) == Hosts{{"a1", 4, 4}, {"a2", 4, 4}});
  CHECK(with({{"SLURM_GPUS_ON_NODE", "4"}, {"SLURM_GPUS", "6"}}) == Hosts{{"a1", 1}, {"a2", 1}});
  CHECK(with({{"SLURM_GPUS_PER_NODE", "8"}, {"SLURM_NTASKS_PER_NODE", "1"}}) ==
        Hosts{{"a1", 1, 8}, {"a2", 1, 8}});
}

TEST_CASE("ranks per host raise the slots above Slurm's tasks as far as its CPUs or GPUs reach") {
  const Variables job{{"SLURM_JOB_NODELIST", "a[1-2]"},
                      {"SLURM_TASKS_PER_NODE", "1(x2)"},
                      {"SLURM_NTASKS", "2"},
                      {"SLURM_JOB_CPUS_PER_NODE", "8,2"}};
  CHECK(slurm(job, 4).value().hosts.hosts() == Hosts{{"a1", 4}, {"a2", 2}});
}

TEST_CASE("a heterogeneous Slurm job has the hosts of all its components") {
  const auto listing = slurm({{"SLURM_HET_SIZE", "2"},
                              {"SLURM_JOB_NODELIST", "h1"},
                              {"SLURM_NTASKS", "5"},
                              {"SLURM_JOB_NODELIST_HET_GROUP_0", "h1"},
                              {"SLURM_JOB_NODELIST_HET_GROUP_1", "h[2-3]"},
                              {"SLURM_TASKS_PER_NODE_HET_GROUP_0", "2"},
                              {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "2,1"},
                              {"SLURM_NTASKS_HET_GROUP_0", "2"},
                              {"SLURM_NTASKS_HET_GROUP_1", "3"}});
  REQUIRE(listing);
  CHECK(listing->hosts.hosts() == Hosts{{"h1", 2}, {"h2", 2}, {"h3", 1}});
  CHECK_THAT(listing->from, Catch::Contains("2 components"));
  CHECK(slurm({{"SLURM_PACK_SIZE", "1"},
               {"SLURM_NODELIST_PACK_GROUP_0", "n1"},
               {"SLURM_TASKS_PER_NODE_PACK_GROUP_0", "6"}})
            .value()
            .hosts.hosts() == Hosts{{"n1", 6}});
}

TEST_CASE("the error for an unreadable Slurm job names what is missing or wrong") {
  const auto [variables, part] = GENERATE(table<Variables, std::string>({
      {Variables{}, "neither SLURM_JOB_NODELIST nor SLURM_NODELIST is set; give the hosts with -H"},
      {{{"SLURM_JOB_NODELIST", "h[1-"}}, "SLURM_JOB_NODELIST='h[1-': column 1: host 'h[1-' has no"},
      {{{"SLURM_JOB_NODELIST", "h[0-999999999]"}}, "more than 100000 hosts"},
      {{{"SLURM_JOB_NODELIST", "h[1-2]"}}, "neither SLURM_TASKS_PER_NODE nor SLURM_JOB_CPUS"},
      {{{"SLURM_JOB_NODELIST", "h1"}, {"SLURM_TASKS_PER_NODE", "2(3)"}}, "'2(3)' must be a number"},
      {{{"SLURM_JOB_NODELIST", "h1"}, {"SLURM_TASKS_PER_NODE", "1(x999999999)"}}, "repetition"},
      {{{"SLURM_JOB_NODELIST", "h1"}, {"SLURM_GPUS_PER_NODE", "many"}},
       "SLURM_GPUS_PER_NODE='many'"},
      {{{"SLURM_JOB_NODELIST", "h1"}, {"SLURM_TASKS_PER_NODE", "0"}}, "its nodes take no tasks"},
      {{{"SLURM_JOB_NODELIST", "h[1-2]"}, {"SLURM_JOB_NUM_NODES", "3"}},
       "SLURM_JOB_NUM_NODES='3' contradicts the 2 nodes of SLURM_JOB_NODELIST; give the hosts"},
      {{{"SLURM_JOB_NODELIST", "h[1-2]"}, {"SLURM_JOB_CPUS_PER_NODE", "4(x3)"}},
       "SLURM_JOB_CPUS_PER_NODE='4(x3)' describes 3 nodes, but SLURM_JOB_NODELIST has 2"},
      {{{"SLURM_JOB_NODELIST", "h1"}, {"SLURM_TASKS_PER_NODE", "1"}, {"SLURM_JOBID", "43"}},
       "SLURM_JOB_ID is '42' and SLURM_JOBID is '43', but both must name one job"},
      {{{"SLURM_HET_SIZE", "x"}}, "SLURM_HET_SIZE='x' must be"},
      {{{"SLURM_HET_SIZE", "1"}}, "neither SLURM_JOB_NODELIST_HET_GROUP_0 nor"},
  }));
  INFO(part);
  const auto listing = slurm(variables);
  REQUIRE(!listing);
  CHECK(listing.error().code == Errc::unavailable);
  CHECK_THAT(listing.error().message, Catch::StartsWith("Slurm job 42: ") && Catch::Contains(part));
}

TEST_CASE("LSF's hosts are read from the first readable variable") {
  Folder folder;
  const auto file = folder.add("hosts", "hostA\nhostA\nhostB\n");
  const auto list = [](Variables variables) {
    variables.emplace("LSB_JOBID", "7");
    return LsfSource(lookup(std::move(variables))).list(Deadline::never());
  };
  const auto all = list({{"LSB_DJOB_HOSTFILE", file}, {"LSB_MCPU_HOSTS", "hostC 9"}});
  CHECK(all.value().hosts.hosts() == Hosts{{"hostA", 2}, {"hostB", 1}});
  CHECK(all.value().from == "slots from LSB_DJOB_HOSTFILE");
  CHECK(list({{"LSB_DJOB_RANKFILE", file}}).value().hosts.slots() == 3);
  CHECK(list({{"LSB_MCPU_HOSTS", "hostA 2 hostB 4 "}}).value().hosts.hosts() ==
        Hosts{{"hostA", 2}, {"hostB", 4}});
  CHECK(list({{"LSB_DJOB_HOSTFILE", "/nonexistent"}, {"LSB_HOSTS", "hostA hostA hostB"}})
            .value()
            .from == "slots from LSB_HOSTS");

  const auto none = list({{"LSB_DJOB_HOSTFILE", "/nonexistent"}, {"LSB_MCPU_HOSTS", "hostA"}});
  REQUIRE(!none);
  CHECK(none.error().code == Errc::unavailable);
  CHECK_THAT(
      none.error().message,
      Catch::Contains("LSF job 7: its hosts cannot be read (LSB_DJOB_HOSTFILE: "
                      "'/nonexistent': opening it") &&
          Catch::Contains("LSB_DJOB_RANKFILE: is not set; LSB_MCPU_HOSTS: it must be pairs") &&
          Catch::Contains("give them with -H"));
}

TEST_CASE("a job that follows its LSF allocation takes no other hosts in place of the job's file") {
  Folder folder;
  const auto list = [](Variables variables) {
    variables.emplace("LSB_JOBID", "7");
    variables.emplace("LSB_MCPU_HOSTS", "hostA 2 hostB 2");
    return LsfSource(lookup(std::move(variables)), kCsmFolder, LsfSource::Use::follow)
        .list(Deadline::never());
  };
  const auto file = folder.add("hosts", "hostA\nhostA\nhostC\n");
  CHECK(list({{"LSB_DJOB_HOSTFILE", file}}).value().hosts.hosts() ==
        Hosts{{"hostA", 2}, {"hostC", 1}});
  // As while LSF writes it.
  const auto empty = folder.add("empty", "");
  CHECK_THAT(list({{"LSB_DJOB_HOSTFILE", empty}}).error().message,
             Catch::Contains("it names no host"));
  CHECK_FALSE(list({{"LSB_DJOB_HOSTFILE", "/nonexistent"}, {"LSB_DJOB_RANKFILE", file}}));
  CHECK(LsfSource::can_follow(lookup({{"LSB_DJOB_RANKFILE", file}})));
  CHECK_FALSE(LsfSource::can_follow(lookup({{"LSB_MCPU_HOSTS", "hostA 2"}})));
  CHECK_FALSE(
      LsfSource::can_follow(lookup({{"LSB_DJOB_HOSTFILE", file}, {"CSM_ALLOCATION_ID", "5"}})));
}

TEST_CASE("under CSM the slots of a node are its GPUs, and the launch node is left out") {
  Folder folder;
  folder.add("csm_allocation_query",
             "#!/bin/sh\n[ \"$1 $2\" = '-a 5' ] || exit 2\n"
             "printf -- '---\\nallocation_id: 5\\nisolated_cores: 2\\ncompute_nodes:\\n"
             " - h50n06\\n - h50n05\\nlaunch_node_name: batch1\\n...\\n'\n");
  folder.add("csm_node_attributes_query",
             "#!/bin/sh\nprintf -- 'TOTAL_RECORDS: 1\\nRecord_1:\\n  node_name: %s\\n"
             "  discovered_cores: 44\\n  discovered_gpus: 6\\n' \"$2\"\n");
  const Variables job{{"LSB_JOBID", "7"},
                      {"CSM_ALLOCATION_ID", "5"},
                      {"LSB_MCPU_HOSTS", "batch1 1 h50n05 42 h50n06 42"}};
  const auto asked = LsfSource(lookup(job), folder.path())
                         .list(Deadline::in(SteadyClock::instance(), std::chrono::seconds(30)));
  REQUIRE(asked);
  CHECK(asked->hosts.hosts() == Hosts{{"h50n05", 6, 6}, {"h50n06", 6, 6}});
  CHECK(asked->from == "nodes of CSM allocation 5, slots from their GPUs");

  const auto read = LsfSource(lookup(job), "/nonexistent").list(Deadline::never());
  CHECK(read.value().hosts.hosts() == Hosts{{"h50n05", 42}, {"h50n06", 42}});
  const auto plain = LsfSource(lookup({{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "a 1 b 4"}}))
                         .list(Deadline::never());
  CHECK(plain.value().hosts.size() == 2);
}

TEST_CASE("CSM's cores leave out those that each socket keeps for the system") {
  Folder folder;
  folder.add("csm_allocation_query",
             "#!/bin/sh\nprintf 'isolated_cores: 1\\ncompute_nodes:\\n - a\\n'\n");
  folder.add("csm_node_attributes_query",
             "#!/bin/sh\nprintf 'Record_1:\\n  discovered_cores: 44\\n  discovered_gpus: 6\\n"
             "  discovered_sockets: 2\\n'\n");
  const auto found =
      ask_csm(folder.path(), "5", Deadline::in(SteadyClock::instance(), std::chrono::seconds(30)));
  REQUIRE(found);
  CHECK(found->cores == 42);
  CHECK(found->gpus == 6);
}

TEST_CASE("a host of an LSF job is recognised with and without its domain") {
  const auto has = [](Variables variables, const char* host) {
    return LsfSource(lookup(std::move(variables))).may_have(host);
  };
  const Variables job{{"LSB_JOBID", "7"}, {"LSB_MCPU_HOSTS", "a.example 2 b 1"}};
  CHECK(has(job, "a"));
  CHECK(has(job, "b.example"));
  CHECK(!has(job, "c"));
  CHECK(has({{"LSB_JOBID", "7"}}, "c"));
}

TEST_CASE("values in CSM's output may be a word, a list in brackets or lines") {
  using Words = std::vector<std::string>;
  CHECK(csm_values("a: 1\nb: [x, 'y']\nc:\n - p\n - q\nd: 2\n", "b") == Words{"x", "y"});
  CHECK(csm_values("a: 1\nc:\n - p\n - q\nd: 2\n", "c") == Words{"p", "q"});
  CHECK(csm_values("cc: 1\n", "c").empty());
}

TEST_CASE("PBS's node file has a line per slot") {
  Folder folder;
  const auto file = folder.add("nodes", "node1\nnode1\nnode2.cluster\nnode1\n");
  const auto list = [](Variables variables) {
    variables.emplace("PBS_JOBID", "12.server");
    return PbsSource(lookup(std::move(variables))).list(Deadline::never());
  };
  CHECK(list({{"PBS_NODEFILE", file}}).value().hosts.hosts() ==
        Hosts{{"node1", 3}, {"node2.cluster", 1}});
  CHECK_THAT(list({}).error().message,
             Catch::Contains("PBS job 12.server: PBS_NODEFILE is not set"));
  const auto bad = folder.add("bad", "node1\nno$de\n");
  CHECK_THAT(list({{"PBS_NODEFILE", bad}}).error().message,
             Catch::Contains("line 2: host 'no$de'"));
  CHECK(list({{"PBS_NODEFILE", "/nonexistent"}}).error().code == Errc::unavailable);
}

TEST_CASE("the workers of an MPIJob are read from the operator's host file") {
  Folder folder;
  const auto file =
      folder.add("hostfile", "job-worker-0.job.ns.svc slots=2\njob-worker-1.job.ns.svc:2\n");
  CHECK(KubernetesSource::is_here(lookup({{"OMPI_MCA_orte_default_hostfile", file}}), file));
  CHECK(KubernetesSource::is_here(lookup({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}), file));
  CHECK(!KubernetesSource::is_here(lookup({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}),
                                   "/nonexistent"));
  CHECK(!KubernetesSource::is_here(lookup({}), file));
  CHECK(KubernetesSource(file).list(Deadline::never()).value().hosts.slots() == 4);
  const auto missing = KubernetesSource("/nonexistent").list(Deadline::never());
  CHECK(missing.error().code == Errc::unavailable);
}
