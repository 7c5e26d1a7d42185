// SPDX-License-Identifier: Apache-2.0
#include "apps/common/launch_simulator/cluster_launch.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launcher/protocol/protocol.hpp"
#include "launcher/starters/link/login_limiter.hpp"
#include "launcher/starters/link/remote_agent.hpp"
#include "launcher/starters/ssh/ssh_route.hpp"
#include "launcher/starters/tree/reach.hpp"
#include "launcher/starters/tree/tree_plan.hpp"
#include "runtime/simulator/cluster/cluster_world.hpp"

namespace horo::apps {

namespace {

using namespace launcher;      // NOLINT(google-build-using-namespace): what it simulates
using namespace runtime::sim;  // NOLINT(google-build-using-namespace): what it simulates it with

// A login by ssh: connection, versions, two messages for the keys, service, key, channel, command,
// and the agent's first bytes.
constexpr int kLoginTrips = 9;
constexpr std::size_t kLoginBytes = 500;      // Each message of a login has so many.
constexpr double kCopiedPerSecond = 1e9;      // Bytes that a process encrypts and copies.
constexpr std::size_t kMostAddressed = 1024;  // As in launcher/plan: TF_CONFIG of more is left out.
constexpr const char* kAgent = "/usr/bin/horo-agent";

/// The launcher, or one host's agent.
struct Process {
  int machine = 0;
  TimePoint busy{};  ///< Its thread works until then.
  FrameCounters sent;
  FrameCounters received;
  int children = 0;  ///< Agents that it has started.
};

struct AgentState {
  std::vector<std::size_t> path;  ///< The hosts from below the launcher to this one, itself last.
  std::vector<std::size_t> children;
  std::vector<Rank> ranks;
  std::string name;
  LoginLimiter::Slot slot;
};

/// Thread: owner.
class LaunchRun {
 public:
  explicit LaunchRun(const Cluster& cluster)
      : model_(cluster.launch), params_(params_of(cluster)), network_(params_.links, cluster.seed) {
    network_.use(links_of(cluster));
    const auto count = params_.hosts.size();
    std::vector<bool> takes_part(count, true);
    takes_part.front() = false;
    const auto plan = plan_tree(takes_part, static_cast<std::size_t>(model_.fanout));
    left_.resize(static_cast<std::size_t>(plan.levels));
    report_.levels.resize(left_.size());
    for (std::size_t host = 0; host < count; ++host) add(host, plan);
    processes_.push_back({});  // The launcher.
    environment_ = std::make_shared<const Environment>(Environment{
        {"VARIABLES", std::string(static_cast<std::size_t>(model_.environment_bytes), 'x')}});
  }

  LaunchReport run() {
    processes_[launcher()].busy += model_.spawn;  // The agent of the launcher's own host.
    network_.at(processes_[launcher()].busy, [this] {
      down(0, protocol::Hello::ours(), {});
      up(0, protocol::Hello::ours(), {});
      prepared(0);
    });
    for (std::size_t host = 1; host < agents_.size(); ++host) {
      if (agents_[host].path.size() == 1) queue_login(host);
    }
    network_.run_until(TimePoint::max(), [this] { return started_ == ranks_; });
    HORO_CHECK(started_ == ranks_);
    report_.ranks = network_.now().time_since_epoch();
    report_.sent = processes_[launcher()].sent;
    report_.received = processes_[launcher()].received;
    count_agents();
    return report_;
  }

 private:
  std::size_t launcher() const { return agents_.size(); }

  void add(std::size_t host, const TreePlan& plan) {
    const auto& given = params_.hosts[host];
    AgentState agent{
        .path = {}, .children = {}, .ranks = given.ranks, .name = given.name, .slot = {}};
    for (auto above = std::optional(host); above; above = plan.parents[*above])
      agent.path.insert(agent.path.begin(), *above);
    if (const auto parent = plan.parents[host]) agents_[*parent].children.push_back(host);
    ranks_ += agent.ranks.size();
    if (host > 0) ++left_[agent.path.size() - 1];
    agents_.push_back(std::move(agent));
    processes_.push_back({.machine = static_cast<int>(host)});
  }

  // -- Frames ----------------------------------------------------------------------------------

  /// The bytes of `message` on each link between the launcher and `host`, as agents wrap it.
  std::vector<std::size_t> sizes(std::size_t host, const protocol::Message& message) const {
    const auto& path = agents_[host].path;
    std::vector<std::size_t> bytes(path.size());
    std::string frame;
    HORO_CHECK(protocol::encode(message, frame));
    for (std::size_t hop = path.size(); hop-- > 0;) {
      bytes[hop] = frame.size();
      std::string outer;
      const protocol::Carry carry{static_cast<std::uint32_t>(path[hop]),
                                  std::string_view(frame).substr(4)};
      HORO_CHECK(protocol::encode(carry, outer));
      frame = std::move(outer);
    }
    return bytes;
  }

  /// Both processes work for a frame, one frame after another.
  void send(std::size_t from, std::size_t to, std::size_t bytes, Network::Event arrived) {
    const auto copying =
        Duration(static_cast<Duration::rep>(static_cast<double>(bytes) / kCopiedPerSecond * 1e9));
    auto& sender = processes_[from];
    ++sender.sent.frames;
    sender.sent.bytes += bytes;
    sender.busy = std::max(sender.busy, network_.now()) + network_.model().send_cost + copying;
    network_.carry(sender.machine, processes_[to].machine, bytes, sender.busy,
                   [this, to, bytes, copying, arrived = std::move(arrived)]() mutable {
                     auto& reader = processes_[to];
                     ++reader.received.frames;
                     reader.received.bytes += bytes;
                     reader.busy = std::max(reader.busy, network_.now()) +
                                   network_.model().receive_cost + copying;
                     network_.at(reader.busy, std::move(arrived));
                   });
  }

  void pass_down(std::size_t host, std::size_t hop, std::vector<std::size_t> bytes,
                 Network::Event arrived) {
    const auto& path = agents_[host].path;
    if (hop == path.size()) return arrived ? arrived() : void();
    const auto from = hop == 0 ? launcher() : path[hop - 1];
    const auto size = bytes[hop];
    send(from, path[hop], size,
         [=, this, bytes = std::move(bytes), arrived = std::move(arrived)]() mutable {
           pass_down(host, hop + 1, std::move(bytes), std::move(arrived));
         });
  }

  void pass_up(std::size_t host, std::size_t hop, std::vector<std::size_t> bytes,
               Network::Event arrived) {
    const auto& path = agents_[host].path;
    const auto to = hop == 0 ? launcher() : path[hop - 1];
    const auto size = bytes[hop];
    send(path[hop], to, size,
         [=, this, bytes = std::move(bytes), arrived = std::move(arrived)]() mutable {
           if (hop > 0) return pass_up(host, hop - 1, std::move(bytes), std::move(arrived));
           if (arrived) arrived();
         });
  }

  void down(std::size_t host, const protocol::Message& message, Network::Event arrived) {
    pass_down(host, 0, sizes(host, message), std::move(arrived));
  }

  void up(std::size_t host, const protocol::Message& message, Network::Event arrived) {
    pass_up(host, agents_[host].path.size() - 1, sizes(host, message), std::move(arrived));
  }

  // -- Logins ----------------------------------------------------------------------------------

  std::string server_of(std::size_t host) const {
    return model_.jump_host ? "jump" : agents_[host].name;
  }

  /// The launcher's own logins.
  void queue_login(std::size_t host) {
    agents_[host].slot =
        limiter_.queue(server_of(host), [this, host] { log_in(launcher(), host); });
  }

  void log_in(std::size_t from, std::size_t host) {
    auto& process = processes_[from];
    ++process.children;
    report_.most_logins = std::max(report_.most_logins, ++logins_[server_of(host)]);
    process.busy = std::max(process.busy, network_.now()) + model_.login_cost;
    network_.at(process.busy, [this, from, host] { exchange(from, host, kLoginTrips); });
  }

  void exchange(std::size_t from, std::size_t host, int left) {
    if (left == 0)
      return network_.after(model_.login, [this, from, host] { agent_runs(from, host); });
    const int here = processes_[from].machine;
    const int there = processes_[host].machine;
    network_.carry(here, there, kLoginBytes, network_.now(), [=, this] {
      network_.carry(there, here, kLoginBytes, network_.now(),
                     [=, this] { exchange(from, host, left - 1); });
    });
  }

  void agent_runs(std::size_t from, std::size_t host) {
    if (from == launcher()) {
      prepare(host);
      up(host, protocol::Hello::ours(), [this, host] { greeted(host); });
    } else {
      greet_relay(from, host);
    }
    up(host, protocol::ControlGroupMade{{.path = "/sys/fs/cgroup/horo/" + agents_[host].name}}, {});
  }

  /// The relaying agent tells the launcher before it passes the hello on.
  void greet_relay(std::size_t parent, std::size_t host) {
    const auto bytes = sizes(host, protocol::Hello::ours());
    send(host, parent, bytes.back(), [this, parent, host, bytes] {
      up(parent, protocol::Reached{static_cast<std::uint32_t>(host), address_of(host)},
         [this, host] { prepare(host); });
      pass_up(host, agents_[host].path.size() - 2, bytes, [this, host] { greeted(host); });
    });
  }

  void greeted(std::size_t host) {
    --logins_[server_of(host)];
    agents_[host].slot.reset();
    for (const auto child : agents_[host].children)
      down(host, reach_of(child), [this, host, child] { log_in(host, child); });
  }

  // -- Assignments -----------------------------------------------------------------------------

  void prepare(std::size_t host) {
    const auto count = agents_[host].ranks.size() + 1;
    down(host, protocol::Hello::ours(), {});
    down(host,
         protocol::Prepare{.ports = static_cast<int>(count),
                           .launcher_address = address_of(0),
                           .heartbeat = std::chrono::seconds(5),
                           .relayed = agents_[host].path.size() > 1},
         [this, host, count] {
           up(host, protocol::Assigned{}, {});
           up(host,
              protocol::Prepared{.ports = std::vector<int>(count, 40000),
                                 .address = address_of(host),
                                 .interface = "eth0"},
              [this, host] { prepared(host); });
         });
  }

  void prepared(std::size_t host) {
    const auto level = agents_[host].path.size() - 1;
    if (host > 0 && --left_[level] == 0) report_.levels[level] = network_.now().time_since_epoch();
    if (++prepared_ < agents_.size()) return;
    for (std::size_t each = 0; each < agents_.size(); ++each)
      down(each, start_of(each), [this, each] { start_ranks(each); });
  }

  void start_ranks(std::size_t host) {
    for (const auto rank : agents_[host].ranks) {
      auto& process = processes_[host];
      process.busy = std::max(process.busy, network_.now()) + model_.spawn;
      network_.at(process.busy, [this, host, rank] {
        up(host, protocol::Started{rank, 100'000}, [this] { ++started_; });
      });
    }
  }

  // -- Messages --------------------------------------------------------------------------------

  static std::string address_of(std::size_t host) {
    return fmt::format("10.{}.{}.{}", host / 62500, host / 250 % 250, host % 250 + 1);
  }

  protocol::Reach reach_of(std::size_t host) const {
    const auto& name = agents_[host].name;
    const SshRoute route{.host = name,
                         .name = name,
                         .known_as = name,
                         .user = "somebody",
                         .identities = {"~/.ssh/id_ed25519", "~/.ssh/id_rsa"},
                         .known_hosts = {"~/.ssh/known_hosts"},
                         .global_known_hosts = "/etc/ssh/ssh_known_hosts",
                         .jump_host = model_.jump_host ? "jump" : "",
                         .program = model_.jump_host ? "ssh" : "",
                         .reason = ""};
    auto reach = reach_by_ssh(route, {}, remote_command_line(kAgent));
    reach.host = static_cast<std::uint32_t>(host);
    reach.heartbeat = std::chrono::seconds(5);
    reach.connect_timeout = std::chrono::seconds(10);
    return reach;
  }

  protocol::Start start_of(std::size_t host) {
    const auto& agent = agents_[host];
    AgentSpec spec{.host = agent.name,
                   .command = {"python3", "train.py"},
                   .directory = "/srv/training",
                   .common = environment_,
                   .environment = {{"GLOO_SOCKET_IFNAME", "eth0"}}};
    if (addresses_.empty() && ranks_ <= kMostAddressed) addresses_ = all_addresses();
    for (const auto rank : agent.ranks) {
      spec.ranks.push_back({.rank = rank,
                            .size = static_cast<int>(ranks_),
                            .local_rank = LocalRank{static_cast<int>(spec.ranks.size())},
                            .local_size = static_cast<int>(agent.ranks.size()),
                            .host_index = static_cast<int>(host),
                            .hostname = agent.name,
                            .job_id = "0123456789abcdef",
                            .rendezvous = address_of(0) + ":40000",
                            .master_address = address_of(0),
                            .master_port = 40001,
                            .worker_addresses = addresses_});
    }
    return {std::move(spec)};
  }

  std::vector<std::string> all_addresses() const {
    std::vector<std::string> addresses;
    for (std::size_t host = 0; host < agents_.size(); ++host)
      addresses.insert(addresses.end(), agents_[host].ranks.size(), address_of(host) + ":40000");
    return addresses;
  }

  void count_agents() {
    report_.most_children = processes_[launcher()].children;
    for (std::size_t host = 0; host < agents_.size(); ++host) {
      const auto& process = processes_[host];
      report_.most_children = std::max(report_.most_children, process.children);
      const auto bytes = process.sent.bytes + process.received.bytes;
      if (!agents_[host].children.empty() && bytes > report_.relayed.bytes)
        report_.relayed = {process.sent.frames + process.received.frames, bytes};
    }
  }

  const LaunchModel model_;
  const WorldParams params_;
  Network network_;
  LoginLimiter limiter_;
  std::vector<AgentState> agents_;     ///< By host.
  std::vector<Process> processes_;     ///< By host, and the launcher.
  std::map<std::string, int> logins_;  ///< Under way, by server.
  std::shared_ptr<const Environment> environment_;
  WorkerAddresses addresses_;
  std::vector<std::size_t> left_;  ///< By level: hosts that have not answered.
  std::size_t ranks_ = 0;
  std::size_t prepared_ = 0;  ///< Hosts.
  std::size_t started_ = 0;   ///< Ranks.
  LaunchReport report_;
};

}  // namespace

LaunchReport simulate_launch(const Cluster& cluster) {
  return LaunchRun(cluster).run();
}

}  // namespace horo::apps
