// SPDX-License-Identifier: Apache-2.0
// Hosts without processes: agents that say what real ones say, pass frames on with the real code,
// and are reached over socket pairs.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sys/socket.h>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.hpp"
#include "launcher/agent/channel.hpp"
#include "launcher/starters/tree/branches.hpp"

namespace horo::launcher {

/// Many hosts on one loop. Thread: the loop's.
class FakeHosts {
 public:
  explicit FakeHosts(Loop& loop) : loop_(loop) {}

  /// Hosts that no other agent can reach.
  std::set<std::uint32_t> unreachable;
  /// Codes that the ranks of a host end with; 0 otherwise.
  std::unordered_map<std::uint32_t, int> exit_codes;
  /// Hosts whose ranks run until they are told to stop.
  std::set<std::uint32_t> patient;
  std::size_t most_branches = 0;  ///< Of any agent so far.
  std::size_t ended = 0;          ///< Agents that are gone.

  /// The launcher's way to a host, or another agent's.
  std::unique_ptr<Carrier> reach(std::uint32_t host) {
    return std::make_unique<FakeCarrier>(*this, host);
  }

  /// An agent at the other end of `stream`; `on_end` runs when it is gone.
  void begin(std::uint32_t host, UniqueFd stream, Task on_end) {
    agents_[host] = std::make_unique<FakeAgent>(*this, host, std::move(stream));
    ends_[host] = std::move(on_end);
  }

  /// Both halves of it are killed: its streams end.
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
      channel_ = protocol::Channel::open(hosts.loop_, stream_.value(), stream_.value(),
                                         {.on_message = [this](const auto& m) { hear(m); },
                                          .on_end = [this](const Status&) { leave(); },
                                          .on_room = [this] { branches_->want_input(true); },
                                          .on_frame = {}})
                     .value();
      branches_ = make_branches(
          hosts.loop_,
          {.send = [this](const auto& m) { send(m); }, .on_empty = [this] { leave_when_done(); }},
          [&hosts](const protocol::Reach& reach) { return hosts.reach_from_there(reach.host); });
      send(protocol::Hello::ours());
      send(protocol::Covered{});
    }

   private:
    void send(const protocol::Message& message) {
      static_cast<void>(channel_->send(message));
      branches_->want_input(channel_->has_room());
    }

    void hear(const protocol::Message& message) {
      if (const auto* reach = std::get_if<protocol::Reach>(&message)) {
        hosts_.most_branches = std::max(hosts_.most_branches, ++reached_);
        branches_->take(*reach);
      } else if (const auto* carry = std::get_if<protocol::Carry>(&message)) {
        branches_->take(*carry);
      } else if (const auto* going = std::get_if<protocol::Leave>(&message)) {
        branches_->take(*going);
      } else if (const auto* prepare = std::get_if<protocol::Prepare>(&message)) {
        send(protocol::Prepared{
            .ports = std::vector<int>(static_cast<std::size_t>(prepare->ports), 4711),
            .address = "127.0.0.1",
            .interface = "lo"});
      } else if (const auto* start = std::get_if<protocol::Start>(&message)) {
        start_ranks(start->spec);
      } else if (std::holds_alternative<protocol::Stop>(message) ||
                 std::holds_alternative<protocol::Kill>(message)) {
        end_ranks(15);
      }
    }

    void start_ranks(const AgentSpec& spec) {
      for (const auto& identity : spec.ranks) {
        ranks_.push_back(identity.rank);
        send(protocol::Started{identity.rank, 1});
        send(protocol::Output{identity.rank, Stream::out, "here\n"});
      }
      if (hosts_.patient.count(host_) > 0) return;
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
      if (done_ && branches_->empty()) channel_->on_drained([this] { leave(); });
    }

    void leave() {
      hosts_.loop_.post([&hosts = hosts_, host = host_] { hosts.kill(host); });
    }

    FakeHosts& hosts_;
    const std::uint32_t host_;
    const UniqueFd stream_;
    std::unique_ptr<protocol::Channel> channel_;
    std::unique_ptr<Branches> branches_;
    std::vector<Rank> ranks_;
    std::size_t reached_ = 0;
    bool done_ = false;
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
        if (!alive.expired()) handlers_.on_open(ours_.value());
      });
      return {};
    }

    void hang_up() override { shutdown(ours_.value(), SHUT_WR); }

    void give_up() override { hosts_.kill(host_); }

    bool remote() const override { return true; }

    std::string launcher_address() const override { return "127.0.0.1"; }

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
