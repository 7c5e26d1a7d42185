// SPDX-License-Identifier: Apache-2.0
// Hosts without processes. Their agents answer like real ones, forward frames with the real code,
// and are reached over socket pairs.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sys/socket.h>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.hpp"
#include "launcher/protocol/descriptor_stream.hpp"
#include "launcher/starters/tree/reached_agents.hpp"

namespace horo::launcher {

/// Many hosts on one loop. Thread: the loop's.
class FakeHosts {
 public:
  explicit FakeHosts(Loop& loop) : loop_(loop) {}

  /// Hosts that no other agent can reach.
  std::set<std::uint32_t> unreachable;
  /// Exit codes of the ranks of a host; 0 for the other hosts.
  std::unordered_map<std::uint32_t, int> exit_codes;
  /// Hosts whose ranks run until they are stopped.
  std::set<std::uint32_t> long_running;
  std::size_t most_children = 0;  ///< The largest number of children of any agent so far.
  std::size_t ended = 0;          ///< Number of agents that have ended.
  std::size_t begun = 0;          ///< Number of agents that have been started.

  /// A connection to a host, from the launcher or from another agent.
  std::unique_ptr<Carrier> reach(std::uint32_t host) {
    return std::make_unique<FakeCarrier>(*this, host);
  }

  /// Starts an agent at the other end of `stream`; `on_end` runs when it has ended.
  void begin(std::uint32_t host, UniqueFd stream, Task on_end) {
    ++begun;
    agents_[host] = std::make_unique<FakeAgent>(*this, host, std::move(stream));
    ends_[host] = std::move(on_end);
  }

  /// Kills both halves of the agent, so its streams end.
  void kill(std::uint32_t host) {
    if (agents_.erase(host) == 0) return;
    ++ended;
    const auto found = ends_.find(host);
    loop_.post(std::move(found->second));
    ends_.erase(found);
  }

  std::size_t alive() const { return agents_.size(); }

 private:
  class FakeAgent {
   public:
    FakeAgent(FakeHosts& hosts, std::uint32_t host, UniqueFd stream)
        : hosts_(hosts), host_(host), stream_(std::move(stream)) {
      channel_ =
          protocol::DescriptorStream::open(hosts.loop_, stream_.value(), stream_.value(),
                                           {.on_message = [this](const auto& m) { hear(m); },
                                            .on_end = [this](const Status&) { leave(); },
                                            .on_room = [this] { branches_->want_input(true); },
                                            .on_frame = {}})
              .value();
      branches_ = make_child_agents(
          hosts.loop_,
          {.send = [this](const auto& m) { send(m); }, .on_empty = [this] { leave_when_done(); }},
          [&hosts](const protocol::Reach& reach) { return hosts.reach_from_there(reach.host); });
      send(protocol::Hello::ours());
      send(protocol::ControlGroupMade{});
    }

   private:
    void send(const protocol::Message& message) {
      static_cast<void>(channel_->send(message));
      branches_->want_input(channel_->has_room());
    }

    void hear(const protocol::Message& message) {
      if (const auto* reach = std::get_if<protocol::Reach>(&message)) {
        hosts_.most_children = std::max(hosts_.most_children, ++reached_);
        branches_->take(*reach);
      } else if (const auto* carry = std::get_if<protocol::Carry>(&message)) {
        branches_->take(*carry);
      } else if (const auto* going = std::get_if<protocol::Leave>(&message)) {
        branches_->take(*going);
      } else if (const auto* prepare = std::get_if<protocol::Prepare>(&message)) {
        ranks_.clear();
        done_ = false;
        send(protocol::Assigned{prepare->epoch});
        std::vector<int> ports(static_cast<std::size_t>(prepare->ports));
        std::iota(ports.begin(), ports.end(), 4711);
        send(protocol::Prepared{
            .ports = std::move(ports), .address = "127.0.0.1", .interface = "lo"});
      } else if (const auto* start = std::get_if<protocol::Start>(&message)) {
        stays_ = start->spec.stay > Duration::zero();
        begin_ranks(start->spec.ranks);
        if (!start->spec.elastic) end_by_itself();
      } else if (const auto* spawn = std::get_if<protocol::Spawn>(&message)) {
        begin_ranks(spawn->workers);
      } else if (const auto* end = std::get_if<protocol::EndWorker>(&message)) {
        std::erase(ranks_, end->worker);
        send(protocol::Exited{{.rank = end->worker, .wait_status = 15}});
        finish_if_closed();
      } else if (std::holds_alternative<protocol::Close>(message)) {
        closed_ = true;
        finish_if_closed();
      } else if (std::holds_alternative<protocol::Release>(message)) {
        stays_ = false;
        leave_when_done();
      } else if (std::holds_alternative<protocol::Stop>(message) ||
                 std::holds_alternative<protocol::Kill>(message)) {
        end_ranks(15);
      }
    }

    void begin_ranks(const std::vector<WorkerIdentity>& ranks) {
      for (const auto& identity : ranks) {
        ranks_.push_back(number_of(identity));
        send(protocol::Started{ranks_.back(), 1});
        send(protocol::Output{ranks_.back(), Stream::out, "here\n"});
      }
    }

    void finish_if_closed() {
      if (closed_ && ranks_.empty()) end_ranks(0);
    }

    void end_by_itself() {
      if (hosts_.long_running.count(host_) > 0) return;
      const auto code = hosts_.exit_codes.find(host_);
      end_ranks(code == hosts_.exit_codes.end() ? 0 : code->second << 8);
    }

    void end_ranks(int wait_status) {
      if (std::exchange(done_, true)) return;
      for (const auto rank : ranks_)
        send(protocol::Exited{{.rank = rank, .wait_status = wait_status}});
      send(protocol::Finished{0});
      leave_when_done();
    }

    void leave_when_done() {
      if (done_ && !stays_ && branches_->empty()) channel_->on_drained([this] { leave(); });
    }

    void leave() {
      hosts_.loop_.post([&hosts = hosts_, host = host_] { hosts.kill(host); });
    }

    FakeHosts& hosts_;
    const std::uint32_t host_;
    const UniqueFd stream_;
    std::unique_ptr<protocol::DescriptorStream> channel_;
    std::unique_ptr<ChildAgents> branches_;
    std::vector<Rank> ranks_;
    std::size_t reached_ = 0;
    bool done_ = false;
    bool closed_ = false;
    bool stays_ = false;  ///< When done, until it is released.
  };

  class FakeCarrier final : public Carrier {
   public:
    FakeCarrier(FakeHosts& hosts, std::uint32_t host) : hosts_(hosts), host_(host) {}

    Status open(Handlers handlers) override {
      handlers_ = std::move(handlers);
      std::array<int, 2> ends{};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return fail_errno(errno, "a socket pair");
      ours_ = UniqueFd(ends[0]);
      hosts_.begin(host_, UniqueFd(ends[1]), [this, alive = std::weak_ptr(alive_)] {
        if (alive.expired()) return;
        if (const auto handler = std::exchange(handlers_.on_gone, nullptr))
          handler({Errc::peer_lost, "its agent is gone"});
      });
      hosts_.loop_.post([this, alive = std::weak_ptr(alive_)] {
        if (alive.expired()) return;
        handlers_.on_open({.descriptor = ours_.value(),
                           .place = AgentPlace::other_host,
                           .launcher_address = "127.0.0.1"});
      });
      return {};
    }

    void hang_up() override { shutdown(ours_.value(), SHUT_WR); }

    void give_up() override { hosts_.kill(host_); }

    CarrierStatus status() const override { return {}; }

   private:
    FakeHosts& hosts_;
    const std::uint32_t host_;
    Handlers handlers_;
    UniqueFd ours_;
    std::shared_ptr<int> alive_ = std::make_shared<int>();
  };

  Result<std::unique_ptr<Carrier>> reach_from_there(std::uint32_t host) {
    if (unreachable.count(host) > 0) return fail(Errc::permission_denied, "no key");
    return reach(host);
  }

  Loop& loop_;
  std::unordered_map<std::uint32_t, std::unique_ptr<FakeAgent>> agents_;
  std::unordered_map<std::uint32_t, Task> ends_;
};

}  // namespace horo::launcher
