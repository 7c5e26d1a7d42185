// SPDX-License-Identifier: Apache-2.0
// A job over simulated hosts whose agents are started by other agents: measures its cost for the
// launcher. The launcher and the code that forwards frames are real. The agents have no rank
// processes; they live in other processes than the launcher, which reaches them over socket pairs.
//
// usage: bench_launch_tree [HOSTS] [FANOUT] [RANKS_PER_HOST]     one line of JSON
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/job/job_driver.hpp"
#include "launcher/output/job_output.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/protocol/descriptor_stream.hpp"
#include "launcher/starters/tree/tree_starter.hpp"
#include "tests/support/fake_hosts.hpp"

namespace {

using namespace horo;
using namespace horo::launcher;

// Processes with the simulated hosts; each has its own limit of descriptors.
constexpr std::size_t kShards = 8;
constexpr std::size_t kVariables = 60;  // Number of variables in an environment of 4 KiB.

/// A connected stream; the agent has ended when the stream ends.
class StreamCarrier final : public Carrier {
 public:
  StreamCarrier(Loop& loop, UniqueFd stream) : loop_(loop), stream_(std::move(stream)) {}

  Status open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    loop_.post([this] {
      handlers_.on_open(
          {.open_messages = [this](auto reading) { return open_messages(std::move(reading)); },
           .place = AgentPlace::other_host,
           .launcher_address = "127.0.0.1"});
    });
    return {};
  }

  void hang_up() override { shutdown(stream_.value(), SHUT_WR); }

  void give_up() override { shutdown(stream_.value(), SHUT_RDWR); }

  CarrierStatus status() const override { return {}; }

 private:
  Result<std::unique_ptr<protocol::MessageStream>> open_messages(
      protocol::MessageStream::Handlers handlers) {
    auto tell = std::move(handlers.on_end);
    handlers.on_end = [this, tell = std::move(tell)](const Status& status) {
      loop_.post([this] { handlers_.on_gone({Errc::peer_lost, "its stream has ended"}); });
      tell(status);
    };
    const int fd = stream_.value();
    HORO_TRY(auto stream, protocol::DescriptorStream::open(loop_, fd, fd, std::move(handlers)));
    return std::unique_ptr<protocol::MessageStream>(std::move(stream));
  }

  Loop& loop_;
  const UniqueFd stream_;
  Handlers handlers_;
};

class TreeOnly final : public Starter {
 public:
  explicit TreeOnly(TreeStarter& tree) : tree_(tree) {}

  std::string_view name() const override { return "simulated"; }

  Status probe() const override { return {}; }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    return tree_.start(next_++, spec, events);
  }

 private:
  TreeStarter& tree_;
  std::size_t next_ = 0;
};

/// Runs the agents of every kShards-th subtree. Never returns.
[[noreturn]] void be_hosts(std::vector<UniqueFd>& theirs, std::size_t shard) {
  const auto loop = Loop::make().value();
  FakeHosts hosts(*loop);
  std::size_t left = 0;
  for (std::size_t host = shard; host < theirs.size(); host += kShards) {
    ++left;
    hosts.begin(static_cast<std::uint32_t>(host), std::move(theirs[host]), [&] {
      if (--left == 0) loop->stop();
    });
  }
  theirs.clear();
  if (left > 0) loop->run();
  _exit(hosts.alive() == 0 ? 0 : 1);
}

double status_mib(const char* field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field))
      return std::strtod(line.c_str() + line.find(':') + 1, nullptr) / 1024;
  }
  return 0;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

struct Shape {
  std::size_t hosts = 10'000;
  std::size_t fanout = 32;
  int ranks_per_host = 1;
};

/// The plan of `horo run` for one job.
struct Plan {
  std::vector<std::string> names;
  Placement placement;
  TreePlan tree;
  std::vector<AgentSpec> agents;
};

Plan make_plan(const Shape& shape) {
  Plan plan;
  discovery::HostSet set;
  for (std::size_t i = 0; i < shape.hosts; ++i) {
    plan.names.push_back(fmt::format("node{:05}", i));
    set.add({.name = plan.names.back(), .slots = shape.ranks_per_host});
  }
  plan.placement = place(set, {.np = static_cast<int>(set.slots())}).value();
  plan.tree = plan_tree(std::vector<bool>(shape.hosts, true), shape.fanout);
  Environment environment;
  for (std::size_t i = 0; i < kVariables; ++i)
    environment.emplace_back(fmt::format("VARIABLE_{}", i), std::string(54, 'x'));
  const auto common = std::make_shared<const Environment>(std::move(environment));
  for (std::size_t i = 0; i < shape.hosts; ++i) {
    auto& agent = plan.agents.emplace_back(AgentSpec{.host = plan.names[i],
                                                     .command = {"python3", "train.py"},
                                                     .directory = "/srv/work",
                                                     .common = common});
    for (const auto rank : plan.placement.hosts[i].ranks) {
      const auto& placed = plan.placement.ranks[rank.index()];
      agent.ranks.push_back({.rank = rank,
                             .size = static_cast<int>(plan.placement.ranks.size()),
                             .local_rank = placed.local_rank,
                             .local_size = placed.local_size,
                             .hostname = plan.names[i]});
    }
    agent.held = true;
    agent.heartbeat = std::chrono::minutes(1);
  }
  return plan;
}

/// Both ends of the streams to the hosts that the launcher reaches directly.
struct Streams {
  std::vector<UniqueFd> ours;
  std::vector<UniqueFd> theirs;
};

std::optional<Streams> make_streams(std::size_t count) {
  Streams streams{.ours = std::vector<UniqueFd>(count), .theirs = std::vector<UniqueFd>(count)};
  for (std::size_t host = 0; host < count; ++host) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
    streams.ours[host] = UniqueFd(ends[0]);
    streams.theirs[host] = UniqueFd(ends[1]);
  }
  return streams;
}

/// Starts the processes that contain the simulated hosts.
std::vector<pid_t> start_shards(Streams& streams) {
  std::vector<pid_t> shards;
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    shards.push_back(fork());
    if (shards.back() != 0) continue;
    streams.ours.clear();
    be_hosts(streams.theirs, shard);
  }
  streams.theirs.clear();
  return shards;
}

bool all_ended_well(const std::vector<pid_t>& shards) {
  bool good = true;
  for (const auto pid : shards) {
    int status = 1;
    waitpid(pid, &status, 0);
    good = good && status == 0;
  }
  return good;
}

protocol::Reach reach_of(const std::string& host) {
  return {.name = host,
          .target = host,
          .user = "somebody",
          .identities = {"~/.ssh/id_ed25519"},
          .known_hosts = {"~/.ssh/known_hosts"},
          .command_line = std::string(250, 'x')};
}

struct Times {
  Duration ready;  ///< Until all ranks were ready.
  Duration over;   ///< Until the job had ended.
  double cpu_s;    ///< CPU time of the launcher.
};

void print_row(const Shape& shape, const Plan& plan, const Times& times, bool good) {
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  std::printf(
      "{\"hosts\": %zu, \"ranks\": %zu, \"fanout\": %zu, \"levels\": %d, \"good\": %s, "
      "\"all_ready_s\": %.3f, \"over_s\": %.3f, \"launcher_cpu_s\": %.3f, "
      "\"launcher_peak_mib\": %.1f}\n",
      shape.hosts, plan.placement.ranks.size(), shape.fanout, plan.tree.levels,
      good ? "true" : "false", seconds(times.ready), seconds(times.over), times.cpu_s,
      status_mib("VmHWM"));
}

/// Runs one job over all hosts, from its plan to its end. Returns whether every rank succeeded.
bool run_job(const Shape& shape, std::vector<UniqueFd>& ours) {
  const auto begin = SteadyClock::instance().now();
  const auto cpu = own_cpu_seconds();
  auto plan = make_plan(shape);
  const auto loop = Loop::make().value();
  TreeStarter tree(*loop, plan.tree, plan.names,
                   {.from_here = [&](std::size_t host) -> Result<std::unique_ptr<Carrier>> {
                      return std::unique_ptr<Carrier>(
                          std::make_unique<StreamCarrier>(*loop, std::move(ours[host])));
                    },
                    .from_there = [&](std::size_t host) { return reach_of(plan.names[host]); }});
  TreeOnly starter(tree);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  JobOutput output(*loop, OutputOptions{.out_fd = null, .err_fd = null},
                   std::vector<RankLabel>(plan.placement.ranks.size()), std::nullopt);
  TimePoint ready{};
  JobDriver job(
      *loop, JobSpec{.start_timeout = std::chrono::hours(1)},
      GenerationSpec{.placement = plan.placement,
                     .agents = std::move(plan.agents),
                     .complete =
                         [&ready](auto&, const auto&) {
                           ready = SteadyClock::instance().now();
                           return Status();
                         },
                     .starter = std::shared_ptr<Starter>(std::shared_ptr<void>(), &starter),
                     .output = &output},
      JobHandlers{.on_ended = {}, .on_finished = [&] { loop->stop(); }});
  job.start();
  loop->run();
  const auto now = SteadyClock::instance().now();
  const bool good = job.state().generation.all_succeeded();
  print_row(shape, plan,
            {.ready = ready - begin, .over = now - begin, .cpu_s = own_cpu_seconds() - cpu}, good);
  return good;
}

int run(const Shape& shape) {
  auto streams = make_streams(std::min(shape.hosts, shape.fanout));
  if (!streams) return 1;
  const auto shards = start_shards(*streams);
  const bool good = run_job(shape, streams->ours);
  streams->ours.clear();
  return all_ended_well(shards) && good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  static_cast<void>(raise_descriptor_limit());
  Shape shape;
  if (argc > 1) shape.hosts = std::strtoul(argv[1], nullptr, 10);
  if (argc > 2) shape.fanout = std::strtoul(argv[2], nullptr, 10);
  if (argc > 3) shape.ranks_per_host = std::atoi(argv[3]);
  return run(shape);
}
