// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/agent_link.hpp"

#include <optional>
#include <utility>

#include "launcher/protocol/descriptor_stream.hpp"
#include "launcher/protocol/free_ports.hpp"
#include "launcher/protocol/heartbeat_timer.hpp"
#include "launcher/protocol/protocol.hpp"

namespace horo::launcher {

namespace {

using protocol::Message;

/// Time for an agent without ranks to end: its host may be gone.
constexpr Duration kIdleEndTime = std::chrono::seconds(5);

/// Standard input that came before the ranks could be described to the agent.
struct EarlyInput {
  std::string bytes;
  bool fed = false;
  bool closed = false;
};

/// Messages that do not belong to an assignment. They count even when the agent has no ranks.
template <typename M>
constexpr bool is_of_agent() {
  return std::is_same_v<M, protocol::Reached> || std::is_same_v<M, protocol::Carry> ||
         std::is_same_v<M, protocol::Gone> || std::is_same_v<M, protocol::Step> ||
         std::is_same_v<M, protocol::EndAsked> || std::is_same_v<M, protocol::ControlGroupMade> ||
         std::is_same_v<M, protocol::Assigned> || std::is_same_v<M, protocol::Failed>;
}

enum class Orders : std::uint8_t { preparing, ready, begun, stopping, killing, cancelled };

/// The agent's part in one generation of the job, and how far it is.
struct Assignment {
  explicit Assignment(const AgentSpec& given)
      : epoch(given.epoch),
        ports(static_cast<int>(given.ranks.size()) + 1),
        grace(given.failure_grace + given.grace),
        stays(given.stay > Duration::zero()),
        job_id(given.ranks.empty() ? std::string() : given.ranks.front().job_id) {
    if (!given.held) spec = given;
  }

  bool has_begun() const {
    return orders == Orders::begun || orders == Orders::stopping || orders == Orders::killing;
  }

  Epoch epoch;
  int ports;
  Duration grace;
  bool stays;  ///< The agent waits for another assignment after this one.
  std::string job_id;
  std::optional<AgentSpec> spec;  ///< To be sent as soon as the stream is there.
  Orders orders = Orders::preparing;
  EarlyInput early_input;
  bool taken = false;           ///< The agent's messages belong to this assignment.
  std::optional<int> finished;  ///< The survivors, once its ranks have finished.
};

/// The conversation with one agent, as three state machines.
///
///   Talk:   opening -> greeting -> talking -> closed     the stream; any state may go to closed
///   Orders: preparing -> ready -> begun -> stopping -> killing
///           preparing or ready -> cancelled              the agent is to have no ranks
///           preparing -> begun                           a spec that is not held
///           any -> preparing                             a further assignment
///   Idle:   no -> waiting -> released                    between two assignments, see assign()
///
/// The last event follows when the carrier is gone and the stream is closed or was never opened.
/// The carrier's and stream's handlers own the link, because an event may destroy the agent.
class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(Loop& loop, const AgentSpec& spec, std::unique_ptr<Carrier> carrier, Duration end_timeout,
       AgentEvents& events, std::shared_ptr<AgentRelay> relay)
      : loop_(loop),
        host_(spec.host),
        heartbeat_(spec.heartbeat),
        end_timeout_(end_timeout),
        events_(&events),
        relay_(std::move(relay)),
        carrier_(std::move(carrier)),
        task_(spec) {}

  Status open() {
    const auto self = weak_from_this();
    return carrier_->open({.on_open =
                               [self](OpenedStream stream) {
                                 if (const auto link = self.lock()) link->opened(std::move(stream));
                               },
                           .on_gone =
                               [self](Error why) {
                                 if (const auto link = self.lock())
                                   link->carrier_gone(std::move(why));
                               }});
  }

  // -- Orders of the launcher ------------------------------------------------------------------

  void begin(const AgentSpec& spec) {
    if ((task_.orders != Orders::preparing && task_.orders != Orders::ready) || over()) return;
    send(protocol::Start{spec});
    task_.orders = Orders::begun;
    if (task_.early_input.fed) feed_stdin(task_.early_input.bytes);
    if (task_.early_input.closed) send(protocol::CloseStdin{});
  }

  bool assign(const AgentSpec& spec) {
    const bool connected = talk_ == Talk::talking && !gone_ && !failed_ && !over();
    if (idle_ != Idle::waiting || !connected) return false;
    idle_ = Idle::no;
    end_timer_.reset();
    task_ = Assignment(spec);
    give_assignment();
    return true;
  }

  void release() {
    if (!has_begun()) return cancel();
    send(protocol::Release{});
    if (idle_ == Idle::waiting && !relays()) expect_end(kIdleEndTime);
    if (idle_ == Idle::waiting) idle_ = Idle::released;
  }

  std::string step() const {
    if (talk_ == Talk::opening) return carrier_->status().step;
    if (talk_ == Talk::greeting) return "waiting for the hello of horo-agent";
    return task_.orders == Orders::preparing ? "waiting for horo-agent to find addresses and ports"
                                             : "";
  }

  void signal(int number) {
    if (has_begun()) send(protocol::Signal{number});
  }

  void stop(const Poison& cause, std::string_view host) {
    if (idle_ != Idle::no) return;
    if (!has_begun()) return cancel();
    send(protocol::Stop{cause, std::string(host)});
    if (task_.orders != Orders::begun) return;
    task_.orders = Orders::stopping;
    expect_end(task_.grace + end_timeout_);
  }

  void kill() {
    if (idle_ != Idle::no) return;
    if (!has_begun()) return cancel();
    send(protocol::Kill{});
    if (std::exchange(task_.orders, Orders::killing) != Orders::killing) expect_end(end_timeout_);
  }

  void dismiss() {
    if (has_begun()) send(protocol::Dismiss{});
  }

  void feed_stdin(std::string_view bytes) {
    if (!has_begun()) {
      task_.early_input.fed = true;
      task_.early_input.bytes.append(bytes);
      return;
    }
    do {
      const auto part = bytes.substr(0, protocol::kMaxChunk);
      send(protocol::FeedStdin{part});
      bytes.remove_prefix(part.size());
    } while (!bytes.empty());
  }

  void close_stdin() {
    task_.early_input.closed = true;
    if (has_begun()) send(protocol::CloseStdin{});
  }

  void output_taken(Rank rank, std::size_t bytes) {
    if (has_begun()) send(protocol::OutputTaken{rank, static_cast<std::uint32_t>(bytes)});
  }

  bool ask(const Question& question) {
    if (!has_begun() || stream_ == nullptr || task_.finished || failed_) return false;
    std::visit([this](const auto& asked) { send(asked); }, question);
    return true;
  }

  /// The owner is gone: no event follows.
  void abandon() {
    events_ = nullptr;
    end_timer_.reset();
    close_stream();
    carrier_->hang_up();
    if (relay_) relay_->abandon();
  }

 private:
  enum class Talk : std::uint8_t { opening, greeting, talking, closed };
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
                         .launcher_address = link.opened_.launcher_address,
                         .ports = m.ports});
    }

    void on(const protocol::ControlGroupMade& m) {
      link.control_group_ = m.control_group;
      link.events_->on_control_group(m.control_group);
    }

    void on(const protocol::Assigned& m) { link.taken(m.epoch); }

    void on(const protocol::Started& m) { link.events_->on_started(m.rank, m.pid); }

    void on(const protocol::Exited& m) { link.events_->on_exit(m.exit); }

    void on(const protocol::SpawnFailed& m) { link.events_->on_spawn_failed(m.rank, m.error); }

    void on(const protocol::StdinRoom&) { link.events_->on_stdin_room(); }

    void on(const protocol::EndAsked& m) { link.events_->on_end_asked(m.number); }

    void on(const protocol::Recorded& m) { link.events_->on_timeline(m.saved); }

    void on(const Viewed& m) { link.events_->on_answer(0, m); }

    void on(const Piece& m) { link.events_->on_answer(0, m); }

    void on(const protocol::Finished& m) { link.finished(m.survivors); }

    void on(const protocol::Failed& m) { link.failed_ = m.error; }

    void on(const protocol::Reached& m) { link.hand_to_relay(m); }

    void on(const protocol::Carry& m) { link.hand_to_relay(m); }

    void on(const protocol::Gone& m) { link.hand_to_relay(m); }

    void on(const protocol::Step& m) { link.hand_to_relay(m); }

    void on_misdirected(const AgentMessageRow& row) {
      link.distrust(
          {Errc::protocol, fmt::format("it sent '{}', which only a launcher sends", row.name)});
    }
  };

  bool over() const { return events_ == nullptr; }

  bool has_begun() const { return task_.has_begun(); }

  bool is_remote() const { return opened_.place != AgentPlace::this_machine; }

  /// Whether other hosts are reached, or are to be reached, through this agent.
  bool relays() const { return relay_ && relay_->users() > 0; }

  // -- The stream ------------------------------------------------------------------------------

  void opened(OpenedStream stream) {
    if (talk_ != Talk::opening) return;  // It was cancelled meanwhile.
    talk_ = Talk::greeting;
    opened_ = std::move(stream);
    auto messages = open_messages();
    if (!messages) return distrust(std::move(messages).error());
    stream_ = std::move(*messages);
    send(protocol::Hello::ours());
    give_assignment();
  }

  void give_assignment() {
    if (task_.spec) {
      begin(*std::exchange(task_.spec, std::nullopt));
    } else if (is_remote()) {
      send(protocol::Prepare{task_.ports, opened_.launcher_address, heartbeat_,
                             opened_.place == AgentPlace::behind_agent, task_.epoch});
    } else {
      loop_.post([self = weak_from_this()] {
        if (const auto link = self.lock()) link->find_local_ports();
      });
    }
  }

  Result<std::unique_ptr<protocol::MessageStream>> open_messages() {
    const auto self = weak_from_this();
    protocol::MessageStream::Handlers handlers{.on_message =
                                                   [self](const Message& message) {
                                                     if (const auto link = self.lock())
                                                       link->receive(message);
                                                   },
                                               .on_end =
                                                   [self](const Status& status) {
                                                     if (const auto link = self.lock())
                                                       link->stream_ended(status);
                                                   },
                                               .on_room = {},
                                               .skip_until_hello = is_remote(),
                                               .on_frame = {}};
    if (opened_.open_messages) return opened_.open_messages(std::move(handlers));
    const int fd = opened_.descriptor;
    HORO_TRY(auto stream, protocol::DescriptorStream::open(loop_, fd, fd, std::move(handlers)));
    return std::unique_ptr<protocol::MessageStream>(std::move(stream));
  }

  /// An agent on this machine would find the same ports as this process.
  void find_local_ports() {
    auto ports = free_ports(task_.ports);
    if (!ports) return distrust(std::move(ports).error());
    report_ready(
        {.address = {}, .interface = {}, .launcher_address = {}, .ports = std::move(*ports)});
  }

  void report_ready(const HostFacts& facts) {
    if (task_.orders != Orders::preparing || over()) return;
    task_.orders = Orders::ready;
    events_->on_ready(facts);
  }

  void send(const Message& message) {
    if (stream_ == nullptr) return;
    if (auto sent = stream_->send(message); !sent) distrust(std::move(sent).error());
  }

  void receive(const Message& message) {
    if (talk_ == Talk::greeting) return take_hello(message);
    if (heartbeat_timer_) heartbeat_timer_->heard();
    // The link drops messages that belong to an earlier assignment.
    const bool counts = (task_.taken && !task_.finished) ||
                        std::visit([]<typename M>(const M&) { return is_of_agent<M>(); }, message);
    if (failed_ || !counts) return;
    Incoming incoming{*this};
    protocol::dispatch<Receiver::launcher>(message, incoming);
  }

  void take_hello(const Message& message) {
    const auto* hello = std::get_if<protocol::Hello>(&message);
    if (hello == nullptr) return distrust({Errc::protocol, "it did not begin with a hello"});
    if (auto same = protocol::check_hello(*hello, "horo-agent"); !same)
      return distrust(std::move(same).error());
    talk_ = Talk::talking;
    opened_.login_slot.reset();
    if (opened_.place == AgentPlace::other_host && heartbeat_ > Duration::zero()) start_heartbeat();
    if (relay_) open_relay();
  }

  void open_relay() {
    const auto self = weak_from_this();
    relay_->on_idle([self] {
      if (const auto link = self.lock()) link->relay_idle();
    });
    relay_->open([self](const Message& message) {
      if (const auto link = self.lock()) link->send(message);
    });
  }

  void taken(Epoch epoch) {
    if (epoch != task_.epoch || std::exchange(task_.taken, true)) return;
    // The first assignment's control group came right after the hello.
    if (std::exchange(assigned_before_, true)) events_->on_control_group(control_group_);
  }

  void finished(int survivors) {
    task_.finished = survivors;
    const bool waits = task_.stays;
    if (waits || relays()) end_timer_.reset();
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
    if (!task_.finished || over()) return;
    const bool told_to_end =
        idle_ == Idle::no ? task_.orders > Orders::begun : idle_ == Idle::released;
    if (told_to_end) expect_end(end_timeout_);
  }

  void start_heartbeat() {
    const auto self = weak_from_this();
    heartbeat_timer_.emplace(
        loop_, heartbeat_, 1,
        [self] {
          if (const auto link = self.lock()) link->send(protocol::Heartbeat{});
        },
        [self] {
          if (const auto link = self.lock()) link->vanished();
        });
  }

  // -- The end ---------------------------------------------------------------------------------

  void close_stream() {
    talk_ = Talk::closed;
    heartbeat_timer_.reset();
    stream_.reset();
    opened_.login_slot.reset();
  }

  /// The agent has no ranks yet, and is to have none.
  void cancel() {
    if (task_.orders == Orders::cancelled || over()) return;
    task_.orders = Orders::cancelled;
    close_stream();
    carrier_->hang_up();
    expect_end(kIdleEndTime);
    loop_.post([self = weak_from_this()] {
      if (const auto link = self.lock()) link->report_end_if_over();
    });
  }

  void expect_end(Duration within) {
    if (over()) return;
    end_timer_ = loop_.after(within, [self = weak_from_this()] {
      // The agent's last message may still be on its way, so the stream stays open.
      if (const auto link = self.lock()) link->carrier_->give_up();
    });
  }

  /// From here on none of its messages counts. It ends its ranks at the end of its input.
  void distrust(Error reason) {
    failed_ = std::move(reason);
    close_stream();
    carrier_->hang_up();
    report_end_if_over();
  }

  void vanished() {
    failed_ =
        Error{Errc::peer_lost, fmt::format("it sent no heartbeat for {:g} s (--heartbeat-timeout)",
                                           std::chrono::duration<double>(heartbeat_).count())};
    close_stream();
    carrier_->give_up();
    report_end_if_over();
  }

  void carrier_gone(Error why) {
    gone_ = std::move(why);
    opened_.login_slot.reset();
    report_end_if_over();
  }

  /// Guard and agent both hold the stream: its end means that both are gone, and the ranks too.
  void stream_ended(const Status& status) {
    if (!status) return distrust(status.error());
    talk_ = Talk::closed;
    report_end_if_over();
  }

  void report_end_if_over() {
    if (!gone_ || (talk_ != Talk::opening && talk_ != Talk::closed) || over()) return;
    auto& events = *std::exchange(events_, nullptr);
    end_timer_.reset();
    heartbeat_timer_.reset();
    const auto self = shared_from_this();
    report_end(events);
    // After this agent's end, so that it is blamed for the end of the hosts behind it.
    if (relay_) relay_->close();
  }

  void report_end(AgentEvents& events) {
    // An agent that waits for an assignment is not to end by itself.
    if (task_.finished && idle_ != Idle::waiting && !relays())
      return events.on_finished(*task_.finished);
    if (task_.orders == Orders::cancelled) return events.on_finished(0);
    if (opened_.end_leftovers) opened_.end_leftovers(control_group_.path, task_.job_id);
    auto why = *gone_;
    if (failed_) why = std::move(*failed_).context(fmt::format("agent on host '{}'", host_));
    if (relays())
      why.message += fmt::format("; {} other hosts were reached through it", relay_->users());
    events.on_lost(why);
  }

  Loop& loop_;
  const std::string host_;
  const Duration heartbeat_;
  const Duration end_timeout_;
  AgentEvents* events_;                      ///< Null after the last event.
  const std::shared_ptr<AgentRelay> relay_;  ///< To hosts behind this agent; null: there are none.
  const std::unique_ptr<Carrier> carrier_;
  Talk talk_ = Talk::opening;
  Assignment task_;  ///< The current one, or the last.
  Idle idle_ = Idle::no;
  bool assigned_before_ = false;
  OpenedStream opened_;
  std::unique_ptr<protocol::MessageStream> stream_;
  std::optional<HeartbeatTimer> heartbeat_timer_;  ///< For a host that may vanish.
  Subscription end_timer_;          ///< Until an agent that was told to end is given up.
  ControlGroupInfo control_group_;  ///< Its control group holds the agent and all that it started.
  std::optional<Error> failed_;     ///< The agent's own reason, or what is wrong with it.
  std::optional<Error> gone_;       ///< The carrier's reason.
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

  void signal(int number) override { link_->signal(number); }

  void stop(const Poison& cause, std::string_view host) override { link_->stop(cause, host); }

  void kill() override { link_->kill(); }

  void dismiss() override { link_->dismiss(); }

  void feed_stdin(std::string_view bytes) override { link_->feed_stdin(bytes); }

  void close_stdin() override { link_->close_stdin(); }

  void output_taken(Rank rank, std::size_t bytes) override { link_->output_taken(rank, bytes); }

  bool ask(std::size_t /*part*/, const Question& question) override { return link_->ask(question); }

 private:
  const std::shared_ptr<Link> link_;
};

}  // namespace

Result<std::unique_ptr<Agent>> open_agent(Loop& loop, const AgentSpec& spec,
                                          std::unique_ptr<Carrier> carrier, Duration end_timeout,
                                          AgentEvents& events, std::shared_ptr<AgentRelay> relay) {
  auto link =
      std::make_shared<Link>(loop, spec, std::move(carrier), end_timeout, events, std::move(relay));
  HORO_TRY_STATUS(link->open().context("starting horo-agent"));
  return std::unique_ptr<Agent>(std::make_unique<LinkedAgent>(std::move(link)));
}

}  // namespace horo::launcher
