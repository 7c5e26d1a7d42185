// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/host_agent.hpp"

#include <csignal>
#include <optional>
#include <unistd.h>
#include <utility>

#include "launcher/agent/channel.hpp"
#include "launcher/agent/free_ports.hpp"
#include "launcher/agent/pulse.hpp"
#include "launcher/agent/rank_set.hpp"
#include "launcher/agent/route.hpp"
#include "launcher/process/descendants.hpp"

namespace horo::launcher {

using namespace std::chrono_literals;
using protocol::Channel;
using protocol::Message;

namespace {

constexpr Duration kPatience = 5s;       ///< For the kernel to end processes that have got SIGKILL.
constexpr Duration kLastWords = 1s;      ///< For the launcher to take the reason of an early end.
constexpr Duration kLauncherFirst = 1s;  ///< For its order to come after a signal to end.
/// A launcher may wait for a disk longer than a host may be silent: nobody else takes its place.
constexpr int kLauncherSilence = 3;

}  // namespace

class HostAgent::Impl {
 public:
  Impl(Loop& loop, const Options& options) : loop_(loop), options_(options) {}

  Status begin() {
    HORO_TRY(terminated_, loop_.on_signal(SIGTERM, [this] { told_to_end(); }));
    HORO_TRY(channel_,
             Channel::open(loop_, options_.in, options_.out,
                           {.on_message = [this](const Message& message) { receive(message); },
                            .on_end = [this](const Status& status) { input_ended(status); },
                            .on_room = [this] { balance(); }}));
    HORO_TRY_STATUS(channel_->send(protocol::Hello::ours()));
    return channel_->send(protocol::Covered{options_.cover});
  }

  int exit_code() const { return exit_code_; }

 private:
  void receive(const Message& message) {
    if (over_) return;
    if (!greeted_) {
      const auto* hello = std::get_if<protocol::Hello>(&message);
      if (hello == nullptr)
        return abandon({Errc::protocol, "horo-agent: the launcher did not begin with a hello"});
      if (auto same = protocol::check_hello(*hello, "the launcher"); !same)
        return abandon(std::move(same).error());
      greeted_ = true;
      return;
    }
    if (pulse_) pulse_->heard();
    if (std::holds_alternative<protocol::Heartbeat>(message)) return;
    if (const auto* prepare = std::get_if<protocol::Prepare>(&message)) return make_ready(*prepare);
    if (const auto* start = std::get_if<protocol::Start>(&message)) return begin_ranks(*start);
    if (ranks_ == nullptr)
      return abandon({Errc::protocol, "horo-agent: an order came before the ranks' description"});
    if (!obey(message))
      abandon({Errc::protocol, "horo-agent: the launcher sent what only an agent says"});
  }

  void make_ready(const protocol::Prepare& prepare) {
    if (pulse_ || ranks_ != nullptr)
      return abandon({Errc::protocol, "horo-agent: the launcher prepared its ranks twice"});
    pulse_.emplace(
        loop_, prepare.heartbeat, kLauncherSilence,
        [this] { static_cast<void>(channel_->send(protocol::Heartbeat{})); },
        [this] {
          abandon({Errc::peer_lost, "nothing was heard of the launcher for too long"});
        });
    auto facts = find_facts(prepare);
    if (!facts) return abandon(std::move(facts).error());
    tell(*facts);
  }

  static Result<protocol::Prepared> find_facts(const protocol::Prepare& prepare) {
    protocol::Prepared facts;
    HORO_TRY(facts.ports, free_ports(prepare.ports));
    HORO_TRY(facts.address, own_address_towards(prepare.launcher_address));
    facts.interface = interface_of(facts.address);
    return facts;
  }

  void begin_ranks(const protocol::Start& start) {
    if (ranks_ != nullptr)
      return abandon({Errc::protocol, "horo-agent: the launcher described its ranks twice"});
    host_ = start.spec.host;
    auto ranks = RankSet::start(loop_, start.spec, options_.inheritance,
                                [this](const Message& report) { tell(report); });
    if (!ranks) return abandon(std::move(ranks).error());
    ranks_ = std::move(*ranks);
  }

  bool obey(const Message& message) {
    if (const auto* signal = std::get_if<protocol::Signal>(&message)) {
      // A launcher that is stopped says nothing, and has said so.
      if (pulse_ && signal->number == SIGSTOP) pulse_->excuse(true);
      if (pulse_ && signal->number == SIGCONT) pulse_->excuse(false);
      ranks_->signal(signal->number);
    } else if (const auto* stop = std::get_if<protocol::Stop>(&message)) {
      ranks_->stop(stop->cause, stop->host);
    } else if (std::holds_alternative<protocol::Kill>(message)) {
      ranks_->kill();
    } else if (const auto* feed = std::get_if<protocol::FeedStdin>(&message)) {
      ranks_->feed_stdin(feed->bytes);
    } else if (std::holds_alternative<protocol::CloseStdin>(message)) {
      ranks_->close_stdin();
    } else if (std::holds_alternative<protocol::PauseOutput>(message)) {
      paused_ = true;
      balance();
    } else if (std::holds_alternative<protocol::ResumeOutput>(message)) {
      paused_ = false;
      balance();
    } else {
      return false;
    }
    return true;
  }

  void tell(const Message& report) {
    if (auto sent = channel_->send(report); !sent) return abandon(std::move(sent).error());
    if (std::holds_alternative<protocol::Output>(report)) balance();
    if (std::holds_alternative<protocol::Finished>(report)) {
      over_ = true;
      exit_code_ = 0;
      if (!options_.stays) channel_->on_drained([this] { leave(0); });
    }
  }

  /// Output is read only as fast as the launcher takes it.
  void balance() {
    if (ranks_ != nullptr && !over_) ranks_->want_output(!paused_ && channel_->has_room());
  }

  void told_to_end() {
    if (over_) return;
    if (getppid() != options_.guard_pid) {
      return abandon({Errc::unavailable,
                      fmt::format("the guard of the agent on host '{}' was killed; its ranks were "
                                  "killed too",
                                  host_)});
    }
    // A batch system signals all processes of a job, the launcher too, whose order leaves the ranks
    // their grace.
    const auto give_up = [this] {
      if (ranks_ != nullptr && ranks_->ending()) return;
      abandon({Errc::cancelled,
               fmt::format("the agent on host '{}' was told to end by a signal", host_)});
    };
    if (!launcher_first_) launcher_first_ = loop_.after(kLauncherFirst, give_up);
  }

  void input_ended(const Status& status) {
    if (!status) return abandon(status.error());
    // The launcher is gone: so are its ranks, at once, and nobody listens.
    end_all();
    leave(over_ ? exit_code_ : 1);
  }

  /// Ends everything and says why, if somebody still listens.
  void abandon(Error reason) {
    if (over_) return;
    end_all();
    static_cast<void>(channel_->send(protocol::Failed{std::move(reason)}));
    channel_->on_drained([this] { leave(1); });
    patience_ = loop_.after(kLastWords, [this] { leave(1); });
  }

  void end_all() {
    over_ = true;
    kill_descendants(Deadline::in(SteadyClock::instance(), kPatience));
  }

  void leave(int code) {
    exit_code_ = code;
    loop_.stop();
  }

  Loop& loop_;
  const Options options_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<RankSet> ranks_;
  std::string host_;
  bool greeted_ = false;
  bool paused_ = false;
  bool over_ = false;
  int exit_code_ = 1;
  std::optional<Pulse> pulse_;  ///< With a launcher on another host.
  Subscription terminated_;
  Subscription launcher_first_;
  Subscription patience_;
};

void HostAgent::refuse(int out, const Error& reason) {
  std::string words;
  static_cast<void>(protocol::encode(protocol::Hello::ours(), words));
  static_cast<void>(protocol::encode(protocol::Failed{reason}, words));
  [[maybe_unused]] const auto put = write(out, words.data(), words.size());
}

Result<std::unique_ptr<HostAgent>> HostAgent::make(Loop& loop, const Options& options) {
  auto impl = std::make_unique<Impl>(loop, options);
  HORO_TRY_STATUS(impl->begin());
  return std::unique_ptr<HostAgent>(new HostAgent(std::move(impl)));
}

HostAgent::HostAgent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HostAgent::~HostAgent() = default;

int HostAgent::exit_code() const {
  return impl_->exit_code();
}

}  // namespace horo::launcher
