// SPDX-License-Identifier: Apache-2.0
#include "apps/common/launch_simulator/elastic_loss.hpp"

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/elastic/membership_messages.hpp"
#include "base/json.hpp"
#include "launcher/agent/call_gathering.hpp"
#include "launcher/elastic/driver/call_answers.hpp"
#include "launcher/elastic/membership.hpp"
#include "launcher/protocol/protocol.hpp"
#include "runtime/simulator/cluster/cluster_run.hpp"

namespace horo::apps {

namespace {

using namespace launcher;      // NOLINT(google-build-using-namespace): what it simulates
using namespace runtime::sim;  // NOLINT(google-build-using-namespace): what it simulates it with

Duration processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// The launcher's decisions about a job of which every rank is a worker.
class Launcher {
 public:
  Launcher(const Cluster& cluster, const std::vector<runtime::tree::HostRanks>& hosts)
      : state_(begin_membership(rules_of(cluster), TimePoint{})) {
    HostsOffered offered;
    for (const auto& host : hosts)
      offered.hosts.add({.name = host.name, .slots = static_cast<int>(host.ranks.size())});
    apply(offered, TimePoint{});
    for (int worker = 0; worker < cluster.ranks(); ++worker)
      apply(WorkerStarted{worker}, TimePoint{});
    for (int worker = 0; worker < cluster.ranks(); ++worker)
      apply(WorkerCalled{.worker = worker}, TimePoint{});
    HORO_CHECK(state_.generation == 1 && state_.phase == MembershipPhase::running);
  }

  /// Returns the orders that follow from it, and takes them out of the state as ElasticDriver does.
  MembershipOrders apply(const MembershipEvent& event, TimePoint now) {
    const auto begin = processor_time();
    state_ = next(std::move(state_), event, now);
    used_ += processor_time() - begin;
    return std::exchange(state_.orders, {});
  }

  void forget_time() { used_ = {}; }

  Duration used() const { return used_; }

 private:
  static ElasticRules rules_of(const Cluster& cluster) {
    return {.min_np = 1, .np = cluster.ranks()};
  }

  MembershipState state_;
  Duration used_{};
};

Traffic sum(const Traffic& a, const Traffic& b) {
  return {a.frames + b.frames, a.bytes + b.bytes};
}

/// The cluster without one host.
Cluster without(Cluster cluster, int host) {
  for (auto& group : cluster.groups) {
    if (host < group.count) {
      --group.count;
      break;
    }
    host -= group.count;
  }
  std::erase_if(cluster.groups, [](const HostGroup& group) { return group.count == 0; });
  return cluster;
}

/// One host's agent, with the store at which its ranks call. It gathers their calls.
struct SimAgent {
  SimAgent(Network& network, int host, const std::vector<Rank>& ranks) : store(network, host) {
    for (const auto rank : ranks) gathering.begin(rank);
  }

  SimStore store;
  CallGathering gathering;
};

/// Thread: owner.
class ElasticLossRun {
 public:
  explicit ElasticLossRun(const Cluster& cluster)
      : cluster_(cluster),
        world_(params_of(cluster)),
        network_(world_.network()),
        store_(network_, 0),
        launcher_(cluster, world_.params().hosts) {
    HORO_CHECK(!cluster.failures.empty() && cluster.failures.front().host > 0);
    report_.failure = cluster.failures.front();
    network_.use(links_of(cluster));
    knows_.resize(static_cast<std::size_t>(world_.hosts()));
    for (int host = 0; host < world_.hosts(); ++host)
      agents_.push_back(std::make_unique<SimAgent>(network_, host, ranks_of(host)));
    for (int host = 0; host < world_.hosts(); ++host) {
      agents_[static_cast<std::size_t>(host)]->store.intercept(
          std::string(elastic::kCallPrefix), [this, host](std::string_view value) {
            called(host, elastic::decode_call(value).value());
          });
    }
    launcher_.forget_time();
  }

  ElasticLossReport run() {
    begin_ = network_.now();
    lose();
    HORO_CHECK(world_.run(10 * cluster_.heartbeat_timeout + std::chrono::seconds(10), [this] {
      spread();
      return knowing_ == world_.hosts() && answered_ == survivors();
    }));
    report_.membership = launcher_.used();
    meet();
    return report_;
  }

 private:
  int lost() const { return report_.failure.host; }

  int survivors() const { return cluster_.ranks() - static_cast<int>(ranks_of(lost()).size()); }

  const std::vector<Rank>& ranks_of(int host) const {
    return world_.params().hosts[static_cast<std::size_t>(host)].ranks;
  }

  Duration since() const { return network_.now() - begin_; }

  /// The launcher's connection to the agent ends at once, or is silent for the heartbeat timeout.
  void lose() {
    auto silence = cluster_.heartbeat_timeout;
    switch (report_.failure.how) {
      case HostFailure::How::dies:
        world_.kill(lost());
        silence = network_.model().latency;
        break;
      case HostFailure::How::is_cut:
        world_.cut(lost());
        break;
      case HostFailure::How::stops:
        world_.stop(lost());
        break;
    }
    network_.after(silence, [this] {
      note_knowledge();
      carry_out(launcher_.apply(
          AgentLost{static_cast<std::size_t>(lost()), {Errc::peer_lost, "the connection is lost"}},
          network_.now()));
    });
  }

  /// One of the hosts, or the launcher, knows of the loss now. The lost host counts as the
  /// launcher.
  void note_knowledge() {
    if (knowing_++ == 0) {
      report_.first_knows = since();
      network_.forget_traffic();
    }
    report_.last_knows = since();
  }

  /// Lets the ranks call on hosts that have come to know of the loss.
  void spread() {
    for (int host = 0; host < world_.hosts(); ++host) {
      auto knows = knows_[static_cast<std::size_t>(host)];
      if (knows || host == lost() || !world_.loss(host)) continue;
      knows_[static_cast<std::size_t>(host)] = true;
      note_knowledge();
      for (const auto rank : ranks_of(host)) spawn([this, host, rank] { call(host, rank); });
    }
  }

  void spawn(std::function<void()> body) {
    fibers_.push_back(std::make_unique<Fiber>(std::move(body)));
    network_.at(network_.now(), [fiber = fibers_.back().get()] { fiber->resume(); });
  }

  /// As MembershipCaller::call() and GenerationGuard::start().
  void call(int host, Rank rank) {
    auto& store = agents_[static_cast<std::size_t>(host)]->store;
    const auto worker = static_cast<std::uint32_t>(rank.value());
    store.connect(host);
    const elastic::MembershipCall call{.worker = worker, .attempt = 2, .generation = 1};
    const auto response = store.call_after(
        host, {.op = kv::Op::set, .keys = {elastic::call_key(worker)}, .value = encode(call)},
        {.op = kv::Op::get, .keys = {elastic::answer_key(worker, call.attempt)}});
    const auto answer = elastic::decode_answer(response.value).value();
    HORO_CHECK(answer.generation == 2 && answer.size == survivors());
    if (++answered_ == survivors()) note_agreement();
    store.send(host, {.op = kv::Op::get, .keys = {elastic::over_key(answer.generation)}});
  }

  /// As WorkerCalls::called(). All ranks of a host call before the time for gathering is over.
  void called(int host, const elastic::MembershipCall& call) {
    auto& agent = *agents_[static_cast<std::size_t>(host)];
    HORO_CHECK(agent.gathering.add(call));
    if (!agent.gathering.complete()) return;
    const protocol::Called message{agent.gathering.take()};
    carry(host, agent.store, 0, store_, message, [this, message] {
      for (const auto& one : message.calls) {
        carry_out(
            launcher_.apply(WorkerCalled{static_cast<int>(one.worker), one.attempt, one.generation},
                            network_.now()));
      }
    });
  }

  /// As ElasticDriver::carry_out().
  void carry_out(const MembershipOrders& orders) {
    if (orders.over) {
      for (int host = 0; host < world_.hosts(); ++host) {
        if (host != lost()) tell(host, protocol::EndMeeting{*orders.over});
      }
    }
    if (!orders.formed) return;
    for (auto& [host, answers] : answers_of(*orders.formed))
      tell(static_cast<int>(host), protocol::Answered{std::move(answers)});
  }

  void tell(int host, const protocol::EndMeeting& order) {
    auto& agent = *agents_[static_cast<std::size_t>(host)];
    carry(0, store_, host, agent.store, order, [&agent, generation = order.generation] {
      agent.store.set(elastic::over_key(generation), {});
    });
  }

  void tell(int host, const protocol::Answered& order) {
    auto& agent = *agents_[static_cast<std::size_t>(host)];
    carry(0, store_, host, agent.store, order, [&agent, answers = order.answers] {
      for (const auto& one : answers)
        agent.store.set(elastic::answer_key(one.worker, one.attempt), encode(one.answer));
    });
  }

  /// A message between an agent and the launcher, whose processes are those of their stores.
  void carry(int from, SimStore& sender, int to, SimStore& receiver,
             const protocol::Message& message, std::function<void()> arrive) {
    std::string frame;
    HORO_CHECK(protocol::encode(message, frame));
    const auto bytes = frame.size();
    network_.carry(from, to, bytes, sender.work(bytes),
                   [this, bytes, &receiver, arrive = std::move(arrive)]() mutable {
                     network_.at(receiver.work(bytes), std::move(arrive));
                   });
  }

  void note_agreement() {
    report_.last_answered = since();
    report_.of_launcher_to_agree = network_.traffic(0);
  }

  void meet() {
    ClusterRun next(without(cluster_, lost()));
    report_.last_connected = report_.last_answered + next.start().connected;
    const auto& network = next.world().network();
    std::vector<Traffic> others;
    for (int host = 0, now = 0; host < world_.hosts(); ++host) {
      if (host == lost()) continue;
      const auto traffic = sum(network_.traffic(host), network.traffic(now++));
      if (host == 0) {
        report_.of_launcher = traffic;
      } else {
        others.push_back(traffic);
      }
    }
    count(others, &Traffic::frames);
    count(others, &Traffic::bytes);
  }

  void count(std::vector<Traffic>& others, std::uint64_t Traffic::*field) {
    std::sort(others.begin(), others.end(),
              [field](const Traffic& a, const Traffic& b) { return a.*field < b.*field; });
    report_.most_of_host.*field = others.back().*field;
    report_.median_of_host.*field = others[others.size() / 2].*field;
  }

  const Cluster cluster_;
  World world_;
  Network& network_;
  SimStore store_;  ///< The launcher's process.
  std::vector<std::unique_ptr<SimAgent>> agents_;
  Launcher launcher_;
  ElasticLossReport report_;
  TimePoint begin_{};
  std::vector<bool> knows_;  ///< By host.
  int knowing_ = 0;          ///< Hosts, the launcher included.
  int answered_ = 0;         ///< Ranks.
  std::vector<std::unique_ptr<Fiber>> fibers_;
};

}  // namespace

ElasticLossReport simulate_elastic_loss(const Cluster& cluster) {
  return ElasticLossRun(cluster).run();
}

std::string to_json(const Cluster& cluster, const ElasticLossReport& report) {
  const auto us = [](Duration time) { return static_cast<double>(time.count()) / 1e3; };
  JsonWriter json;
  json.begin_object().key("ranks").value(cluster.ranks()).key("hosts").value(cluster.hosts());
  json.key("lost").value(report.failure.host).key("how").value(name(report.failure.how));
  json.key("first_knows_us").value(us(report.first_knows));
  json.key("last_knows_us").value(us(report.last_knows));
  json.key("answered_us").value(us(report.last_answered));
  json.key("connected_us").value(us(report.last_connected));
  json.key("membership_us").value(us(report.membership));
  const auto write = [&json](std::string_view who, const Traffic& traffic) {
    json.key(fmt::format("{}_frames", who)).value(static_cast<std::int64_t>(traffic.frames));
    json.key(fmt::format("{}_bytes", who)).value(static_cast<std::int64_t>(traffic.bytes));
  };
  write("launcher", report.of_launcher);
  write("launcher_agree", report.of_launcher_to_agree);
  write("most", report.most_of_host);
  write("median", report.median_of_host);
  json.end_object();
  return json.text();
}

}  // namespace horo::apps
