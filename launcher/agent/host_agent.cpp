// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/host_agent.hpp"

#include <csignal>
#include <cstdlib>
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
constexpr Duration kBranchesEnd = 3s;    ///< For the agents behind this one to end, when it must.
constexpr Duration kFirstWord = 15s;     ///< For the launcher to greet: its host may be cut off.
constexpr Duration kLauncherFirst = 1s;  ///< For its order to come after a signal to end.
/// A launcher may wait for a disk longer than a host may be silent: nobody else takes its place.
constexpr int kLauncherSilence = 3;
constexpr int kAgentSilence = 1;
constexpr const char* kSlurmStep = "SLURM_STEP_ID";  ///< Set where srun has started us.

}  // namespace

class HostAgent::Impl {
 public:
  Impl(Loop& loop, Options options)
      : loop_(loop), options_(std::move(options)), stays_(options_.stays) {
    if (!options_.branches) return;
    branches_ = options_.branches(loop_, {.send = [this](const Message& message) { tell(message); },
                                          .on_empty = [this] { leave_when_done(); }});
    options_.inheritance.others = [this] { return branches_->processes(); };
  }

  Status begin() {
    HORO_TRY(terminated_, loop_.on_signal(SIGTERM, [this] { told_to_end(); }));
    HORO_TRY(channel_,
             Channel::open(loop_, options_.in, options_.out,
                           {.on_message = [this](const Message& message) { receive(message); },
                            .on_end = [this](const Status& status) { input_ended(status); },
                            .on_room = [this] { balance(); }}));
    first_word_ = loop_.after(kFirstWord, [this] {
      abandon({Errc::peer_lost, "the launcher has not said a word"});
    });
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
      first_word_.reset();
      return;
    }
    if (pulse_) pulse_->heard();
    if (std::holds_alternative<protocol::Heartbeat>(message) || branched(message)) return;
    if (std::holds_alternative<protocol::Dismiss>(message)) return dismiss();
    if (ends_ranks(message)) dismiss();
    if (const auto* signal = std::get_if<protocol::Signal>(&message)) excuse(*signal);
    if (done_) return;
    if (const auto* prepare = std::get_if<protocol::Prepare>(&message)) return make_ready(*prepare);
    if (const auto* start = std::get_if<protocol::Start>(&message)) return begin_ranks(*start);
    if (ranks_ == nullptr)
      return abandon({Errc::protocol, "horo-agent: an order came before the ranks' description"});
    if (!obey(message))
      abandon({Errc::protocol, "horo-agent: the launcher sent what only an agent says"});
  }

  /// Whether it was for other hosts' agents.
  bool branched(const Message& message) {
    if (branches_ == nullptr) return false;
    return std::visit(
        [this](const auto& order) {
          if constexpr (requires { branches_->take(order); }) {
            branches_->take(order);
            return true;
          } else {
            return false;
          }
        },
        message);
  }

  void make_ready(const protocol::Prepare& prepare) {
    if (pulse_ || ranks_ != nullptr)
      return abandon({Errc::protocol, "horo-agent: the launcher prepared its ranks twice"});
    by_launcher_ = !prepare.relayed;
    // Slurm signals a step's processes one by one, ranks before us, maybe: they may have ended well
    // by then, and the other hosts' ranks still have to be told.
    stays_ = stays_ || in_slurm_step();
    pulse_.emplace(
        loop_, prepare.heartbeat, by_launcher_ ? kLauncherSilence : kAgentSilence,
        [this] { static_cast<void>(channel_->send(protocol::Heartbeat{})); },
        [this] {
          abandon({Errc::peer_lost,
                   fmt::format("nothing was heard of {} for too long",
                               by_launcher_ ? "the launcher" : "the agent in between")});
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

  static bool in_slurm_step() { return std::getenv(kSlurmStep) != nullptr; }

  static bool ends_ranks(const Message& message) {
    return std::holds_alternative<protocol::Stop>(message) ||
           std::holds_alternative<protocol::Kill>(message);
  }

  void dismiss() {
    stays_ = options_.stays;
    if (done_) leave_when_done();
  }

  /// A launcher that is stopped says nothing, and has said so.
  void excuse(const protocol::Signal& signal) {
    if (!pulse_ || !by_launcher_) return;
    if (signal.number == SIGSTOP) pulse_->excuse(true);
    if (signal.number == SIGCONT) pulse_->excuse(false);
  }

  bool obey(const Message& message) {
    if (const auto* signal = std::get_if<protocol::Signal>(&message)) {
      ranks_->signal(signal->number);
    } else if (const auto* stop = std::get_if<protocol::Stop>(&message)) {
      ranks_->stop(stop->cause, stop->host);
    } else if (std::holds_alternative<protocol::Kill>(message)) {
      ranks_->kill();
    } else if (const auto* feed = std::get_if<protocol::FeedStdin>(&message)) {
      ranks_->feed_stdin(feed->bytes);
    } else if (std::holds_alternative<protocol::CloseStdin>(message)) {
      ranks_->close_stdin();
    } else if (const auto* taken = std::get_if<protocol::OutputTaken>(&message)) {
      ranks_->output_taken(taken->rank, taken->bytes);
    } else if (const auto* look = std::get_if<Look>(&message)) {
      ranks_->ask(*look);
    } else if (const auto* fetch = std::get_if<Fetch>(&message)) {
      ranks_->ask(*fetch);
    } else {
      return false;
    }
    return true;
  }

  void tell(const Message& report) {
    if (auto sent = channel_->send(report); !sent) return abandon(std::move(sent).error());
    if (std::holds_alternative<protocol::Output>(report) ||
        std::holds_alternative<protocol::Carry>(report))
      balance();
    if (std::holds_alternative<protocol::Finished>(report)) {
      done_ = true;
      exit_code_ = 0;
      leave_when_done();
    }
  }

  /// Everything is read only as fast as the stream takes it.
  void balance() {
    if (over_) return;
    const bool room = channel_->has_room();
    if (branches_ != nullptr) branches_->want_input(room);
    if (ranks_ != nullptr && !done_) ranks_->want_output(room);
  }

  bool passes_on() const { return branches_ != nullptr && !branches_->empty(); }

  /// Others may still go through this one when its own ranks have ended.
  void leave_when_done() {
    if (passes_on()) return;
    if (over_) {
      part();
    } else if (done_ && !stays_) {
      over_ = true;
      channel_->on_drained([this] { leave(0); });
    }
  }

  void told_to_end() {
    if (over_) return;
    if (getppid() != options_.guard_pid) {
      if (done_) return;
      return abandon({Errc::unavailable,
                      fmt::format("the guard of the agent on host '{}' was killed; its ranks were "
                                  "killed too",
                                  host_)});
    }
    if (launcher_first_) return;
    // Slurm may signal its steps alone, as before it preempts a job.
    if (in_slurm_step()) tell(protocol::EndAsked{SIGTERM});
    if (done_) return;
    // A batch system signals all processes of a job, the launcher too, whose order leaves the ranks
    // their grace.
    const auto give_up = [this] {
      if (ranks_ != nullptr && ranks_->ending()) return;
      abandon({Errc::cancelled,
               fmt::format("the agent on host '{}' was told to end by a signal", host_)});
    };
    launcher_first_ = loop_.after(kLauncherFirst, give_up);
  }

  void input_ended(const Status& status) {
    if (!status) return abandon(status.error());
    // The launcher is gone: so are its ranks, at once, and nobody listens.
    const int code = done_ ? exit_code_ : 1;
    if (std::exchange(over_, true) && done_) return leave(code);
    part_from_branches([this, code] { leave(code); });
  }

  /// Ends everything and says why, if somebody still listens.
  void abandon(Error reason) {
    if (std::exchange(over_, true)) return;
    // First: who is behind this one is lost because of it.
    static_cast<void>(channel_->send(protocol::Failed{std::move(reason)}));
    part_from_branches([this] {
      channel_->on_drained([this] { leave(1); });
      patience_ = loop_.after(kLastWords, [this] { leave(1); });
    });
  }

  /// Ends everything here, and what goes through this agent; then `next`.
  void part_from_branches(Task next) {
    if (passes_on()) branches_->hang_up();
    kill_descendants(Deadline::in(SteadyClock::instance(), kPatience),
                     passes_on() ? branches_->processes() : std::vector<int>());
    if (!passes_on()) return next();
    parting_ = std::move(next);
    patience_ = loop_.after(kBranchesEnd, [this] { part(); });
  }

  void part() {
    patience_.reset();
    if (const auto next = std::exchange(parting_, nullptr)) next();
  }

  void leave(int code) {
    exit_code_ = code;
    // A guard that was stopped would keep the launcher waiting.
    if (getppid() == options_.guard_pid) kill(options_.guard_pid, SIGCONT);
    loop_.stop();
  }

  Loop& loop_;
  Options options_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Branches> branches_;
  std::unique_ptr<RankSet> ranks_;
  std::string host_;
  bool greeted_ = false;
  bool done_ = false;        ///< Its own ranks are gone, as told.
  bool stays_;               ///< Even when done, until the launcher lets it go.
  bool over_ = false;        ///< It is about to leave.
  bool by_launcher_ = true;  ///< Not another agent: who is next to it.
  int exit_code_ = 1;
  std::optional<Pulse> pulse_;  ///< With a launcher on another host.
  Subscription terminated_;
  Subscription first_word_;
  Subscription launcher_first_;
  Subscription patience_;
  Task parting_;  ///< What follows when nobody goes through this one any more.
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
