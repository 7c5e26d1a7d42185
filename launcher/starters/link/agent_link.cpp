// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/agent_link.hpp"

#include <utility>

#include "launcher/protocol/free_ports.hpp"
#include "launcher/protocol/protocol.hpp"
#include "launcher/starters/link/agent_end.hpp"
#include "launcher/starters/link/agent_stream.hpp"
#include "launcher/starters/link/agent_task.hpp"
#include "launcher/starters/link/report_check.hpp"

namespace horo::launcher {

namespace {

using protocol::Message;

/// Time for an agent without ranks to end: its host may be gone.
constexpr Duration kIdleEndTime = std::chrono::seconds(5);

/// Time for what is there before an agent's hello: it may be another program, which no order ends.
constexpr Duration kUngreetedEndTime = std::chrono::seconds(1);

/// Connects one agent's stream, its task, its end and the agents behind it: turns the launcher's
/// orders into messages, and messages into events.
///
///   Idle: no -> waiting -> released       between two tasks, see assign()
///
/// The last event follows when the carrier is gone and the stream is closed or was never opened.
/// The handlers of carrier and stream hold the link while they run, because an event may destroy
/// the agent.
class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(Loop& loop, const AgentSpec& spec, std::unique_ptr<Carrier> carrier, EndLimits limits,
       AgentEvents& events, std::shared_ptr<AgentRelay> relay)
      : loop_(loop),
        heartbeat_(spec.heartbeat),
        limits_(limits),
        events_(&events),
        relay_(std::move(relay)),
        carrier_(std::move(carrier)),
        task_(spec) {}

  Status open(const std::string& host) {
    // The agent's last message may still be on its way, so the stream stays open.
    end_.emplace(loop_, host, held([](Link& link) { link.carrier_->give_up(); }));
    stream_ = std::make_shared<AgentStream>(
        loop_, heartbeat_,
        AgentStream::Handlers{
            .on_greeted = held([](Link& link) { link.greeted(); }),
            .on_message = held_with<const Message&>(
                [](Link& link, const Message& message) { link.receive(message); }),
            .on_end = held([](Link& link) { link.report_end_if_over(); }),
            .on_fault =
                held_with<Error>([](Link& link, Error fault) { link.distrust(std::move(fault)); }),
            .on_silence = held([](Link& link) { link.vanished(); })});
    return carrier_->open({.on_open = held_with<OpenedStream>([](Link& link, OpenedStream opened) {
                             link.opened(std::move(opened));
                           }),
                           .on_gone = held_with<Error>(
                               [](Link& link, Error why) { link.carrier_gone(std::move(why)); })});
  }

  // -- Orders of the launcher ------------------------------------------------------------------

  void begin(const AgentSpec& spec) {
    if (over() || !task_.begin()) return;
    if (task_.ranks().is_elastic()) task_.ranks().add(spec.ranks);
    stream_->send(protocol::Start{spec});
    const auto& input = task_.early_input();
    if (input.fed) feed_stdin(input.bytes);
    if (input.closed) stream_->send(protocol::CloseStdin{});
    for (const auto& order : std::exchange(task_.early_orders(), {})) stream_->send(order);
  }

  bool assign(const AgentSpec& spec) {
    const bool connected =
        stream_->is_talking() && !end_->is_carrier_gone() && !end_->is_blamed() && !over();
    if (idle_ != Idle::waiting || !connected) return false;
    idle_ = Idle::no;
    end_->expect_nothing();
    task_ = AgentTask(spec);
    give_task();
    return true;
  }

  void release() {
    if (!task_.has_begun()) return cancel();
    stream_->send(protocol::Release{});
    if (idle_ == Idle::waiting && !relays()) expect_end(kIdleEndTime);
    if (idle_ == Idle::waiting) idle_ = Idle::released;
  }

  std::string step() const {
    if (stream_->is_opening()) return carrier_->status().step;
    if (stream_->is_greeting())
      return "waiting for the hello of horo-agent; a startup file of the login shell there may "
             "run another program";
    return task_.stage() == AgentTask::Stage::preparing
               ? "waiting for horo-agent to find addresses and ports"
               : "";
  }

  /// An order that means nothing to an agent without ranks.
  void order(const Message& message) {
    if (task_.has_begun()) stream_->send(message);
  }

  /// An order of an elastic assignment.
  void order_or_keep(Message message) {
    if (idle_ != Idle::no || over()) return;
    if (task_.has_begun()) return stream_->send(message);
    task_.early_orders().push_back(std::move(message));
  }

  void spawn(std::vector<WorkerIdentity> workers) {
    task_.ranks().add(workers);
    order_or_keep(protocol::Spawn{std::move(workers)});
  }

  void stop(const Poison& cause, std::string_view host) {
    if (idle_ != Idle::no) return;
    if (!task_.has_begun()) return cancel();
    stream_->send(protocol::Stop{cause, std::string(host)});
    if (task_.stop()) expect_end(task_.grace() + limits_.agent);
  }

  void kill() {
    if (idle_ != Idle::no) return;
    if (!task_.has_begun()) return cancel();
    stream_->send(protocol::Kill{});
    if (task_.kill()) expect_end(limits_.agent);
  }

  void feed_stdin(std::string_view bytes) {
    if (!task_.has_begun()) {
      task_.early_input().fed = true;
      task_.early_input().bytes.append(bytes);
      return;
    }
    do {
      const auto part = bytes.substr(0, protocol::kMaxChunk);
      stream_->send(protocol::FeedStdin{part});
      bytes.remove_prefix(part.size());
    } while (!bytes.empty());
  }

  void close_stdin() {
    task_.early_input().closed = true;
    order(protocol::CloseStdin{});
  }

  bool ask(const Question& question) {
    if (!task_.has_begun() || task_.is_finished() || end_->is_blamed()) return false;
    if (!stream_->is_greeting() && !stream_->is_talking()) return false;
    std::visit([this](const auto& asked) { stream_->send(asked); }, question);
    return true;
  }

  /// The owner is gone: no event follows.
  void abandon() {
    events_ = nullptr;
    end_->expect_nothing();
    stream_timer_.reset();
    stream_->close();
    carrier_->hang_up();
    if (relay_) relay_->abandon();
  }

 private:
  enum class Idle : std::uint8_t { no, waiting, released };

  /// One function per message of the agent, see protocol::dispatch.
  struct Incoming {
    Link& link;

    void on(const protocol::Hello&) { link.distrust({Errc::protocol, "it sent a second hello"}); }

    void on(const protocol::Heartbeat&) {}

    void on(const protocol::Output& m) { link.events_->on_output(m.rank, m.stream, m.bytes); }

    void on(const protocol::Prepared& m) {
      link.report_ready({.address = m.address,
                         .interface = m.interface,
                         .launcher_address = link.stream_->opened().launcher_address,
                         .ports = m.ports});
    }

    void on(const protocol::ControlGroupMade& m) {
      link.control_group_ = m.control_group;
      link.events_->on_control_group(m.control_group);
    }

    void on(const protocol::Noted& m) { link.events_->on_note(m.text); }

    void on(const protocol::Assigned& m) { link.taken(m.epoch); }

    void on(const protocol::Started& m) { link.events_->on_started(m.rank, m.pid); }

    void on(const protocol::Exited& m) {
      link.task_.ranks().forget(m.exit.rank);
      link.events_->on_exit(m.exit);
    }

    void on(const protocol::SpawnFailed& m) {
      link.task_.ranks().forget(m.rank);
      link.events_->on_spawn_failed(m.rank, m.error);
    }

    void on(const protocol::Called& m) { link.events_->on_called(m.calls); }

    void on(const protocol::StdinRoom&) { link.events_->on_stdin_room(); }

    void on(const protocol::EndAsked& m) { link.events_->on_end_asked(m.number); }

    void on(const protocol::Recorded& m) { link.events_->on_timeline(m.saved); }

    void on(const Viewed& m) { link.events_->on_answer(0, m); }

    void on(const Piece& m) { link.events_->on_answer(0, m); }

    void on(const protocol::Finished& m) { link.finished(m.survivors); }

    void on(const protocol::Failed& m) { link.end_->blame(m.error); }

    void on(const protocol::Reached& m) { link.hand_to_relay(m); }

    void on(const protocol::Carry& m) { link.hand_to_relay(m); }

    void on(const protocol::Gone& m) { link.hand_to_relay(m); }

    void on(const protocol::Step& m) { link.hand_to_relay(m); }

    void on_misdirected(const AgentMessageRow& row) {
      link.distrust(
          {Errc::protocol, fmt::format("it sent '{}', which only a launcher sends", row.name)});
    }
  };

  /// `call` with this link, which lives at least until it returns; nothing once the link is gone.
  template <typename Call>
  Task held(Call call) {
    return [self = weak_from_this(), call] {
      if (const auto link = self.lock()) call(*link);
    };
  }

  /// As held, for a handler with an argument.
  template <typename Argument, typename Call>
  std::function<void(Argument)> held_with(Call call) {
    return [self = weak_from_this(), call](Argument argument) {
      if (const auto link = self.lock()) call(*link, std::forward<Argument>(argument));
    };
  }

  bool over() const { return events_ == nullptr; }

  /// Whether other hosts are reached, or are to be reached, through this agent.
  bool relays() const { return relay_ && relay_->users() > 0; }

  // -- The agent's messages --------------------------------------------------------------------

  void opened(OpenedStream opened) {
    if (stream_->open(std::move(opened))) give_task();
  }

  void give_task() {
    if (const auto spec = task_.take_spec()) {
      begin(*spec);
    } else if (stream_->is_remote()) {
      const auto& opened = stream_->opened();
      stream_->send(protocol::Prepare{task_.ports(), opened.launcher_address, heartbeat_,
                                      opened.place == AgentPlace::behind_agent, task_.epoch()});
    } else {
      loop_.post(held([](Link& link) { link.find_local_ports(); }));
    }
  }

  /// An agent on this machine would find the same ports as this process.
  void find_local_ports() {
    auto ports = free_ports(task_.ports());
    if (!ports) return distrust(std::move(ports).error());
    report_ready(
        {.address = {}, .interface = {}, .launcher_address = {}, .ports = std::move(*ports)});
  }

  void report_ready(const HostFacts& facts) {
    if (!over() && task_.become_ready()) events_->on_ready(facts);
  }

  void receive(const Message& message) {
    // The link drops messages that belong to an earlier task.
    const bool counts = task_.is_under_way() || is_of_agent(message);
    if (end_->is_blamed() || !counts) return;
    if (auto sound = check_report(task_, message); !sound)
      return distrust(std::move(sound).error());
    Incoming incoming{*this};
    protocol::dispatch<Receiver::launcher>(message, incoming);
  }

  void greeted() {
    if (!relay_) return;
    relay_->on_idle(held([](Link& link) { link.relay_idle(); }));
    relay_->open(held_with<const Message&>(
        [](Link& link, const Message& message) { link.stream_->send(message); }));
  }

  void taken(Epoch epoch) {
    if (!task_.take(epoch)) return;
    // The first task's control group came right after the hello.
    if (std::exchange(assigned_before_, true)) events_->on_control_group(control_group_);
  }

  void finished(int survivors) {
    task_.finish(survivors);
    const bool waits = task_.stays();
    if (waits || relays()) end_->expect_nothing();
    if (!waits) return;
    idle_ = Idle::waiting;
    events_->on_waiting(survivors);
  }

  template <typename M>
  void hand_to_relay(const M& message) {
    if (!relay_) return distrust({Errc::protocol, "it speaks for an agent that it does not relay"});
    const auto relay = relay_;  // A handler may destroy the link.
    relay->take(message);
  }

  /// An agent that relays can end only when no other agent is reached through it.
  void relay_idle() {
    if (!task_.is_finished() || over()) return;
    const bool told_to_end =
        idle_ == Idle::no ? task_.stage() > AgentTask::Stage::begun : idle_ == Idle::released;
    if (told_to_end) expect_end(limits_.agent);
  }

  // -- The end ---------------------------------------------------------------------------------

  void expect_end(Duration within) {
    if (!over()) end_->expect(within);
  }

  /// The agent has no ranks yet, and is to have none.
  void cancel() {
    if (over() || !task_.cancel()) return;
    const bool greeted = stream_->is_talking();
    stream_->close();
    carrier_->hang_up();
    expect_end(greeted ? kIdleEndTime : kUngreetedEndTime);
    loop_.post(held([](Link& link) { link.report_end_if_over(); }));
  }

  /// From here on none of its messages counts. It ends its ranks at the end of its input.
  void distrust(Error reason) {
    end_->blame(std::move(reason));
    stream_->close();
    carrier_->hang_up();
    report_end_if_over();
  }

  void vanished() {
    end_->blame(
        {Errc::peer_lost, fmt::format("it sent no heartbeat for {:g} s (--heartbeat-timeout)",
                                      std::chrono::duration<double>(heartbeat_).count())});
    stream_->close();
    carrier_->give_up();
    report_end_if_over();
  }

  void carrier_gone(Error why) {
    end_->carrier_gone(std::move(why));
    stream_->give_login_back();
    report_end_if_over();
    if (over()) return;
    // A process that was stopped by a signal would hold it for ever.
    stream_timer_ = loop_.after(limits_.stream, held([](Link& link) {
                                  link.stream_->close();
                                  link.report_end_if_over();
                                }));
  }

  void report_end_if_over() {
    const bool no_stream = stream_->is_opening() || stream_->is_closed();
    if (!end_->is_carrier_gone() || !no_stream || over()) return;
    auto& events = *std::exchange(events_, nullptr);
    end_->expect_nothing();
    stream_timer_.reset();
    stream_->stop_watching();
    const auto self = shared_from_this();
    report_end(events);
    // After this agent's end, so that it is blamed for the end of the hosts behind it.
    if (relay_) relay_->close();
  }

  void report_end(AgentEvents& events) {
    // An agent that waits for a task is not to end by itself.
    if (task_.is_finished() && idle_ != Idle::waiting && !relays())
      return events.on_finished(task_.survivors());
    if (task_.is_cancelled()) return events.on_finished(0);
    const auto& end_leftovers = stream_->opened().end_leftovers;
    if (end_leftovers) end_leftovers(control_group_.path, task_.ranks().job_id());
    auto why = end_->reason();
    if (!end_->is_blamed()) why.message += stream_->stray_output();
    if (relays())
      why.message += fmt::format("; {} other hosts were reached through it", relay_->users());
    events.on_lost(why);
  }

  Loop& loop_;
  const Duration heartbeat_;
  const EndLimits limits_;
  AgentEvents* events_;                      ///< Null after the last event.
  const std::shared_ptr<AgentRelay> relay_;  ///< To hosts behind this agent; null: there are none.
  const std::unique_ptr<Carrier> carrier_;
  std::shared_ptr<AgentStream> stream_;
  AgentTask task_;  ///< The current one, or the last.
  std::optional<AgentEnd> end_;
  Subscription stream_timer_;  ///< Since the carrier is gone and the stream is not.
  Idle idle_ = Idle::no;
  bool assigned_before_ = false;
  ControlGroupInfo control_group_;  ///< Its control group holds the agent and all that it started.
};

class LinkedAgent final : public Agent {
 public:
  explicit LinkedAgent(std::shared_ptr<Link> link) : link_(std::move(link)) {}

  ~LinkedAgent() override { link_->abandon(); }

  LinkedAgent(const LinkedAgent&) = delete;
  LinkedAgent& operator=(const LinkedAgent&) = delete;

  void begin(const AgentSpec& spec) override { link_->begin(spec); }

  bool assign(const AgentSpec& spec) override { return link_->assign(spec); }

  void release() override { link_->release(); }

  std::string step() const override { return link_->step(); }

  void signal(int number) override { link_->order(protocol::Signal{number}); }

  void stop(const Poison& cause, std::string_view host) override { link_->stop(cause, host); }

  void kill() override { link_->kill(); }

  void dismiss() override { link_->order(protocol::Dismiss{}); }

  void feed_stdin(std::string_view bytes) override { link_->feed_stdin(bytes); }

  void close_stdin() override { link_->close_stdin(); }

  void output_taken(Rank rank, std::size_t bytes) override {
    link_->order(protocol::OutputTaken{rank, static_cast<std::uint32_t>(bytes)});
  }

  void spawn(std::vector<WorkerIdentity> workers) override { link_->spawn(std::move(workers)); }

  void end_worker(Rank worker) override { link_->order_or_keep(protocol::EndWorker{worker}); }

  void notice(std::uint64_t sequence, std::uint32_t flags) override {
    link_->order_or_keep(protocol::PostNotice{{.sequence = sequence, .flags = flags}});
  }

  void answer(std::vector<elastic::CallAnswer> answers) override {
    link_->order(protocol::Answered{std::move(answers)});
  }

  void end_meeting(std::uint64_t generation) override {
    link_->order(protocol::EndMeeting{generation});
  }

  void close() override { link_->order_or_keep(protocol::Close{}); }

  bool ask(std::size_t /*part*/, const Question& question) override { return link_->ask(question); }

 private:
  const std::shared_ptr<Link> link_;
};

}  // namespace

Result<std::unique_ptr<Agent>> open_agent(Loop& loop, const AgentSpec& spec,
                                          std::unique_ptr<Carrier> carrier, EndLimits limits,
                                          AgentEvents& events, std::shared_ptr<AgentRelay> relay) {
  auto link =
      std::make_shared<Link>(loop, spec, std::move(carrier), limits, events, std::move(relay));
  HORO_TRY_STATUS(link->open(spec.host).context("starting horo-agent"));
  return std::unique_ptr<Agent>(std::make_unique<LinkedAgent>(std::move(link)));
}

}  // namespace horo::launcher
