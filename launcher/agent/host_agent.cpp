// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/host_agent.hpp"

#include <csignal>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#include "launcher/agent/assignments.hpp"
#include "launcher/agent/host_facts.hpp"
#include "launcher/agent/peer_heartbeats.hpp"
#include "launcher/agent/worker_calls.hpp"
#include "launcher/process/control_group.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/protocol/descriptor_stream.hpp"
#include "launcher/protocol/protocol.hpp"
#include "launcher/ranks/rank_descriptors.hpp"
#include "launcher/ranks/rank_orders.hpp"
#include "launcher/ranks/rank_set.hpp"

namespace horo::launcher {

using namespace std::chrono_literals;
using protocol::DescriptorStream;
using protocol::Message;

namespace {

constexpr Duration kLeftoverKillTime = 5s;  ///< For the kernel to end processes after SIGKILL.
constexpr Duration kReasonTime = 1s;        ///< For the launcher to read why an agent ends early.
constexpr Duration kChildrenEndTime = 3s;   ///< For relayed agents to end when this one must.
constexpr Duration kHelloTime = 15s;        ///< For the launcher's hello: its host may be cut off.
constexpr Duration kOrderTime = 1s;         ///< For the launcher's order after a signal to end.

}  // namespace

/// Its life: greeting -> serving -> done -> leaving. It is done when its own ranks have ended as
/// reported; it may stay then. With a further assignment to come it waits instead, and serves
/// again: serving -> waiting -> serving. It may go to leaving from any state.
class HostAgent::Impl {
 public:
  Impl(Loop& loop, Options options)
      : loop_(loop), options_(std::move(options)), stays_(options_.stays) {
    if (!options_.children) return;
    children_ = options_.children(loop_, {.send = [this](const Message& message) { send(message); },
                                          .on_empty = [this] { leave_when_done(); }});
    options_.inheritance.others = [this] { return children_->processes(); };
  }

  Status begin() {
    HORO_TRY_STATUS(watch_replacements());
    HORO_TRY(terminated_, loop_.on_signal(SIGTERM, [this] { told_to_end(); }));
    HORO_TRY(stream_, DescriptorStream::open(
                          loop_, options_.in, options_.out,
                          {.on_message = [this](const Message& message) { receive(message); },
                           .on_end = [this](const Status& status) { input_ended(status); },
                           .on_room = [this] { read_as_output_drains(); }},
                          options_.seals));
    hello_timer_ = loop_.after(kHelloTime, [this] {
      abandon({Errc::peer_lost, "the launcher has sent no hello"});
    });
    HORO_TRY_STATUS(stream_->send(protocol::Hello::ours()));
    return stream_->send(protocol::ControlGroupMade{options_.control_group});
  }

  int exit_code() const { return exit_code_; }

  // -- Orders, see protocol::dispatch ----------------------------------------------------------

  void on(const protocol::Hello&) { refuse_order("the launcher sent a second hello"); }

  void on(const protocol::Heartbeat&) {}

  void on(const protocol::Reach& order) { order_children(order); }

  void on(const protocol::Carry& order) { order_children(order); }

  void on(const protocol::Leave& order) { order_children(order); }

  void on(const protocol::Prepare& order) {
    if (phase_ == Phase::serving || phase_ == Phase::waiting) prepare(order);
  }

  void on(const protocol::Start& order) {
    if (phase_ == Phase::serving || phase_ == Phase::waiting) start_ranks(order);
  }

  void on(const protocol::Signal& order) {
    heartbeats_.excuse_silence(order);
    if (auto* ranks = ordered_ranks()) ranks->signal(order.number);
  }

  void on(const protocol::Stop& order) {
    release();
    if (auto* ranks = ordered_ranks()) ranks->stop(order.cause, order.host);
  }

  void on(const protocol::Kill&) {
    release();
    if (auto* ranks = ordered_ranks()) ranks->kill();
  }

  void on(const protocol::Dismiss&) { release(); }

  void on(const protocol::Release&) {
    assignments_.release();
    wait_timer_.reset();
    if (phase_ == Phase::waiting) phase_ = Phase::done;
    release();
  }

  void on(const RankOrder auto& order) {
    auto* ranks = ordered_ranks();
    if (ranks == nullptr) return;
    if (auto done = carry_out(order, *ranks); !done)
      abandon(Error(done.error()).context("horo-agent"));
  }

  void on(const protocol::Answered& order) { take_answers(order); }

  void on(const protocol::EndMeeting& order) { take_answers(order); }

  void on_misdirected(const AgentMessageRow& row) {
    refuse_order(fmt::format("the launcher sent '{}', which only an agent sends", row.name));
  }

 private:
  enum class Phase : std::uint8_t { greeting, serving, waiting, done, leaving };

  /// The guard replaces a sweeper that was killed. Nobody has to act, so --verbose alone says it.
  Status watch_replacements() {
    HORO_TRY(replacements_, loop_.watch(options_.replacements));
    replacements_.on_readable([this] {
      eventfd_t count = 0;
      if (eventfd_read(options_.replacements, &count) != 0 || phase_ == Phase::leaving) return;
      send(protocol::Noted{"the process job-sweep was killed; another one has taken its place"});
    });
    return {};
  }

  void receive(const Message& message) {
    if (phase_ == Phase::leaving) return;
    if (phase_ == Phase::greeting) return take_hello(message);
    heartbeats_.heard();
    protocol::dispatch<Receiver::agent>(message, *this);
  }

  void take_hello(const Message& message) {
    const auto* hello = std::get_if<protocol::Hello>(&message);
    if (hello == nullptr)
      return abandon({Errc::protocol, "horo-agent: the launcher did not begin with a hello"});
    if (auto same = protocol::check_hello(*hello, "the launcher"); !same)
      return abandon(std::move(same).error());
    phase_ = Phase::serving;
    hello_timer_.reset();
  }

  /// The ranks, if an order for them counts: null when they have ended, or were never described.
  RankSet* ordered_ranks() {
    if (phase_ != Phase::serving) return nullptr;
    if (ranks_ == nullptr) refuse_order("an order came before the ranks' description");
    return ranks_.get();
  }

  void refuse_order(std::string_view problem) {
    if (phase_ == Phase::serving) abandon({Errc::protocol, fmt::format("horo-agent: {}", problem)});
  }

  template <typename Order>
  void order_children(const Order& order) {
    if (children_ == nullptr) return refuse_order("this agent does not relay for other hosts");
    children_->take(order);
  }

  template <typename Order>
  void take_answers(const Order& order) {
    if (ordered_ranks() == nullptr) return;
    if (calls_ == nullptr)
      return refuse_order(
          fmt::format("the launcher sent '{}', but the job is not elastic", order.kRow.name));
    calls_->take(order);
  }

  void prepare(const protocol::Prepare& order) {
    if (auto accepted = assignments_.prepare(order.epoch); !accepted)
      return abandon(Error(accepted.error()).context("horo-agent"));
    if (!enter_assignment()) return;
    // Slurm signals the processes of a step one by one, perhaps the ranks before the agent. Those
    // ranks may have ended well by then, and the other hosts' ranks still have to be told.
    stays_ = stays_ || in_slurm_step();
    heartbeats_.begin(order);
    auto facts = find_host_facts(order);
    if (!facts) return abandon(std::move(facts).error());
    send(*facts);
  }

  void start_ranks(const protocol::Start& order) {
    const bool prepared = assignments_.stage() == Assignments::Stage::prepared;
    if (auto accepted = assignments_.begin(order.spec.epoch, order.spec.stay); !accepted)
      return abandon(Error(accepted.error()).context("horo-agent"));
    if (!prepared && !enter_assignment()) return;
    host_ = order.spec.host;
    auto spec = order.spec;
    if (auto opened = open_calls(spec); !opened) return abandon(Error(opened.error()));
    auto ranks = RankSet::start(loop_, std::move(spec), options_.inheritance,
                                [this](const Message& report) { send_of_ranks(report); });
    if (!ranks) return abandon(std::move(ranks).error());
    ranks_ = std::move(*ranks);
  }

  /// Only the workers of an elastic job ask for their places.
  Status open_calls(AgentSpec& spec) {
    if (!spec.elastic) return {};
    HORO_TRY(calls_, WorkerCalls::open(loop_, spec.secret,
                                       [this](const protocol::Called& called) { send(called); }));
    spec.membership = calls_->address();
    return {};
  }

  void send_of_ranks(const Message& report) {
    if (calls_ != nullptr) calls_->note(report);
    send(report);
  }

  // -- Between two assignments -----------------------------------------------------------------

  /// Begins an assignment with nothing of the one before. False: something of it is still there,
  /// and this agent ends.
  bool enter_assignment() {
    const bool again = std::exchange(phase_, Phase::serving) == Phase::waiting;
    wait_timer_.reset();
    // A launcher that gives orders is not stopped, even if its SIGCONT was not passed on.
    heartbeats_.end_excuse();
    forget_ranks();
    exit_code_ = 1;
    stays_ = options_.stays;
    if (const int left = again ? kill_all() : 0; left != 0) {
      abandon({Errc::unavailable,
               fmt::format("{} processes of the ranks before cannot be killed on host '{}'", left,
                           host_)});
      return false;
    }
    if (again) clear_control_group(options_.control_group.path);
    send(protocol::Assigned{assignments_.epoch()});
    return phase_ == Phase::serving;
  }

  /// Their board, timeline, output windows and standard input go with them.
  void forget_ranks() {
    forget_timer_.reset();
    if (ranks_ == nullptr) return;
    ranks_.reset();
    calls_.reset();
    clear_rank_descriptors();
  }

  void await_assignment() {
    phase_ = Phase::waiting;
    // In a later turn of the loop: the ranks' object has called this.
    forget_timer_ = loop_.after(Duration::zero(), [this] { forget_ranks(); });
    wait_timer_ = loop_.after(assignments_.stay(), [this] {
      abandon({Errc::timed_out,
               fmt::format("the launcher gave no further ranks within {:g} s",
                           std::chrono::duration<double>(assignments_.stay()).count())});
    });
  }

  // -- The end ---------------------------------------------------------------------------------

  /// No order will follow that this agent would have to stay for.
  void release() {
    stays_ = options_.stays;
    if (phase_ == Phase::done) leave_when_done();
  }

  void send(const Message& report) {
    if (auto sent = stream_->send(report); !sent) return abandon(std::move(sent).error());
    if (std::holds_alternative<protocol::Output>(report) ||
        std::holds_alternative<protocol::Carry>(report))
      read_as_output_drains();
    if (std::holds_alternative<protocol::Finished>(report)) finished();
  }

  void finished() {
    exit_code_ = 0;
    assignments_.finish();
    if (phase_ != Phase::leaving) {
      phase_ = Phase::done;
      if (assignments_.stage() == Assignments::Stage::waiting) await_assignment();
    }
    leave_when_done();
  }

  /// Ranks and child agents are read only as fast as the launcher takes their bytes.
  void read_as_output_drains() {
    if (phase_ == Phase::leaving) return;
    const bool room = stream_->has_room();
    if (children_ != nullptr) children_->want_input(room);
    if (ranks_ != nullptr && phase_ == Phase::serving) ranks_->want_output(room);
  }

  bool relays() const { return children_ != nullptr && !children_->empty(); }

  /// Other hosts may still be reached through this agent when its own ranks have ended.
  void leave_when_done() {
    if (relays()) return;
    if (phase_ == Phase::leaving) {
      children_ended();
    } else if (phase_ == Phase::done && !stays_) {
      phase_ = Phase::leaving;
      stream_->on_drained([this] { stop_loop(0); });
    }
  }

  void told_to_end() {
    if (phase_ == Phase::leaving) return;
    if (getppid() != options_.guard_pid) {
      if (phase_ == Phase::done) return;
      return abandon(
          {Errc::unavailable,
           fmt::format("the guard of the agent on host '{}' was killed; its ranks were killed too",
                       host_)});
    }
    const bool elastic = phase_ == Phase::serving && ranks_ != nullptr && ranks_->is_elastic();
    const auto now = SteadyClock::instance().now();
    // The guard passes its signals on, so one signal to all processes of a host comes twice.
    if (order_timer_ && elastic && now - told_at_ >= kOrderTime) return give_up("a second signal");
    if (order_timer_) return;
    told_at_ = now;
    // Slurm may signal its steps alone, such as before it preempts a job. An elastic job can go on
    // without this host, whoever ends it.
    if (in_slurm_step() || elastic) send(protocol::EndAsked{SIGTERM});
    if (phase_ == Phase::done) return;
    // A batch system signals all processes of a job, the launcher too. The launcher's order leaves
    // the ranks their grace, so it is given time to arrive. Elastic workers may end their step.
    order_timer_ = loop_.after(elastic ? ranks_->term_wait() : kOrderTime, [this] {
      order_timer_.reset();
      if (ranks_ == nullptr || !ranks_->ends_by_order()) give_up("a signal");
    });
  }

  void give_up(std::string_view cause) {
    abandon({Errc::cancelled,
             fmt::format("the agent on host '{}' was told to end by {}", host_, cause)});
  }

  void input_ended(const Status& status) {
    if (!status) return abandon(status.error());
    // The launcher is gone: its ranks end at once, and no report is read any more.
    const int code = exit_code_;
    const bool was_leaving = std::exchange(phase_, Phase::leaving) == Phase::leaving;
    if (was_leaving && code == 0) return stop_loop(code);
    end_everything([this, code] { stop_loop(code); });
  }

  /// Ends everything and says why, if the launcher still reads.
  void abandon(Error reason) {
    if (std::exchange(phase_, Phase::leaving) == Phase::leaving) return;
    // Before the ends of relayed agents, so that this agent is blamed for them.
    static_cast<void>(stream_->send(protocol::Failed{std::move(reason)}));
    end_everything([this] {
      stream_->on_drained([this] { stop_loop(1); });
      end_timer_ = loop_.after(kReasonTime, [this] { stop_loop(1); });
    });
  }

  /// Kills everything on this host and ends the relayed agents; then runs `next`.
  void end_everything(Task next) {
    if (relays()) children_->hang_up();
    kill_all();
    if (!relays()) return next();
    after_children_ = std::move(next);
    end_timer_ = loop_.after(kChildrenEndTime, [this] { children_ended(); });
  }

  /// Ends everything but what connections to other agents need or needed. Returns how many live on.
  int kill_all() {
    return kill_descendants(Deadline::in(SteadyClock::instance(), kLeftoverKillTime),
                            children_ ? children_->processes() : std::vector<int>());
  }

  void children_ended() {
    end_timer_.reset();
    if (const auto next = std::exchange(after_children_, nullptr)) next();
  }

  void stop_loop(int code) {
    exit_code_ = code;
    // A guard that was stopped by a signal would keep the launcher waiting.
    if (getppid() == options_.guard_pid) kill(options_.guard_pid, SIGCONT);
    loop_.stop();
  }

  Loop& loop_;
  Options options_;
  std::unique_ptr<DescriptorStream> stream_;  ///< To the launcher.
  std::unique_ptr<ChildAgents> children_;     ///< Null: this agent never relays.
  std::unique_ptr<WorkerCalls> calls_;        ///< Null: the assignment is not elastic.
  std::unique_ptr<RankSet> ranks_;
  Assignments assignments_;
  std::string host_;
  Phase phase_ = Phase::greeting;
  bool stays_;         ///< Stays when done, until an order releases it.
  int exit_code_ = 1;  ///< 0 while no ranks are left and their ends are reported.
  PeerHeartbeats heartbeats_{
      loop_,
      {.send = [this] { static_cast<void>(stream_->send(protocol::Heartbeat{})); },
       .on_lost = [this](Error error) { abandon(std::move(error)); }}};
  Descriptor replacements_;  ///< Watches options_.replacements.
  Subscription terminated_;
  Subscription hello_timer_;
  Subscription order_timer_;
  TimePoint told_at_{};        ///< When it was told to end, while order_timer_ runs.
  Subscription wait_timer_;    ///< For a further assignment.
  Subscription forget_timer_;  ///< The ranks are gone, and their object goes in the next turn.
  Subscription end_timer_;
  Task after_children_;  ///< Runs when no agent is reached through this one any more.
};

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
