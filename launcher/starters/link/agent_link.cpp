// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/agent_link.hpp"

#include <optional>
#include <utility>

#include "launcher/agent/free_ports.hpp"
#include "launcher/agent/pulse.hpp"

namespace horo::launcher {

namespace {

using protocol::Message;

/// For an agent without ranks to end: its host may be gone.
constexpr Duration kIdleEnd = std::chrono::seconds(5);

/// Orders for the ranks that came before their description could be sent.
struct Early {
  std::string input;
  bool fed = false;
  bool closed = false;
};

/// Its handlers own it: an event may destroy the agent.
class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(Loop& loop, const AgentSpec& spec, std::unique_ptr<Carrier> carrier, Duration patience,
       AgentEvents& events, std::shared_ptr<Relay> relay)
      : loop_(loop),
        host_(spec.host),
        ports_(static_cast<int>(spec.ranks.size()) + 1),
        grace_(spec.failure_grace + spec.grace),
        heartbeat_(spec.heartbeat),
        patience_(patience),
        events_(&events),
        relay_(std::move(relay)),
        carrier_(std::move(carrier)) {}

  Status open(const AgentSpec& spec) {
    if (!spec.held) spec_ = spec;
    const auto self = weak_from_this();
    return carrier_->open({.on_open =
                               [self](int descriptor) {
                                 if (const auto link = self.lock()) link->opened(descriptor);
                               },
                           .on_gone =
                               [self](Error why) {
                                 if (const auto link = self.lock()) link->gone(std::move(why));
                               }});
  }

  void begin(const AgentSpec& spec) {
    if (begun_ || over()) return;
    send(protocol::Start{spec});
    begun_ = true;
    if (early_.fed) feed_stdin(early_.input);
    if (early_.closed) send(protocol::CloseStdin{});
  }

  std::string step() const {
    if (!opened_) return carrier_->step();
    if (!greeted_) return "waiting for the first word of horo-agent";
    return ready_ || begun_ ? std::string() : "waiting for horo-agent to look around";
  }

  void signal(int number) {
    if (begun_) send(protocol::Signal{number});
  }

  void stop(const Poison& cause, std::string_view host) {
    if (!begun_) return cancel();
    send(protocol::Stop{cause, std::string(host)});
    if (!told_to_end_) expect_end(grace_ + patience_);
  }

  void kill() {
    if (!begun_) return cancel();
    send(protocol::Kill{});
    if (!told_to_kill_) expect_end(patience_);
    told_to_kill_ = true;
  }

  void dismiss() {
    if (begun_) send(protocol::Dismiss{});
  }

  void feed_stdin(std::string_view bytes) {
    if (!begun_) {
      early_.fed = true;
      early_.input.append(bytes);
      return;
    }
    do {
      const auto part = bytes.substr(0, protocol::kMaxChunk);
      send(protocol::FeedStdin{part});
      bytes.remove_prefix(part.size());
    } while (!bytes.empty());
  }

  void close_stdin() {
    early_.closed = true;
    if (begun_) send(protocol::CloseStdin{});
  }

  void output_taken(Rank rank, std::size_t bytes) {
    if (begun_) send(protocol::OutputTaken{rank, static_cast<std::uint32_t>(bytes)});
  }

  bool ask(const Question& question) {
    if (!begun_ || channel_ == nullptr || finished_ || failed_) return false;
    std::visit([this](const auto& words) { send(words); }, question);
    return true;
  }

  /// Nobody wants its news any more.
  void close() {
    events_ = nullptr;
    silence_.reset();
    pulse_.reset();
    channel_.reset();
    carrier_->hang_up();
    if (relay_) relay_->abandon();
  }

 private:
  bool over() const { return events_ == nullptr; }

  void opened(int descriptor) {
    opened_ = true;
    const auto self = weak_from_this();
    auto channel = carrier_->converse(loop_, descriptor,
                                      {.on_message =
                                           [self](const Message& message) {
                                             if (const auto link = self.lock())
                                               link->receive(message);
                                           },
                                       .on_end =
                                           [self](const Status& status) {
                                             if (const auto link = self.lock())
                                               link->channel_ended(status);
                                           },
                                       .on_room = {},
                                       .noisy_start = carrier_->remote(),
                                       .on_frame = {}});
    if (!channel) return distrust(std::move(channel).error());
    channel_ = std::move(*channel);
    send(protocol::Hello::ours());
    if (spec_) {
      begin(*std::exchange(spec_, std::nullopt));
    } else if (carrier_->remote()) {
      send(
          protocol::Prepare{ports_, carrier_->launcher_address(), heartbeat_, !carrier_->direct()});
    } else {
      loop_.post([self] {
        if (const auto link = self.lock()) link->ready_here();
      });
    }
  }

  /// An agent on this machine finds out nothing that we cannot.
  void ready_here() {
    auto ports = free_ports(ports_);
    if (!ports) return distrust(std::move(ports).error());
    ready({.address = {}, .interface = {}, .launcher_address = {}, .ports = std::move(*ports)});
  }

  void ready(const HostFacts& facts) {
    if (ready_ || over()) return;
    ready_ = true;
    events_->on_ready(facts);
  }

  void send(const Message& message) {
    if (channel_ == nullptr) return;
    if (auto sent = channel_->send(message); !sent) distrust(std::move(sent).error());
  }

  /// It has no ranks yet, and is to have none.
  void cancel() {
    cancelled_ = true;
    pulse_.reset();
    channel_.reset();
    channel_over_ = true;
    carrier_->hang_up();
    expect_end(kIdleEnd);
    loop_.post([self = weak_from_this()] {
      if (const auto link = self.lock()) link->settle();
    });
  }

  void expect_end(Duration within) {
    told_to_end_ = true;
    silence_ = loop_.after(within, [self = weak_from_this()] {
      // Its last word may be on its way all the same.
      if (const auto link = self.lock()) link->carrier_->give_up();
    });
  }

  void receive(const Message& message) {
    if (!greeted_) {
      const auto* hello = std::get_if<protocol::Hello>(&message);
      if (hello == nullptr) return distrust({Errc::protocol, "it did not begin with a hello"});
      if (auto same = protocol::check_hello(*hello, "horo-agent"); !same)
        return distrust(std::move(same).error());
      greet();
      return;
    }
    if (pulse_) pulse_->heard();
    if (failed_ || relayed(message)) return;
    if (!finished_ || std::holds_alternative<protocol::EndAsked>(message)) take(message);
  }

  void greet() {
    greeted_ = true;
    carrier_->greeted();
    if (carrier_->remote() && carrier_->direct() && heartbeat_ > Duration::zero()) watch_over();
    if (!relay_) return;
    const auto self = weak_from_this();
    relay_->on_idle([self] {
      if (const auto link = self.lock()) link->relay_idle();
    });
    relay_->open([self](const Message& message) {
      if (const auto link = self.lock()) link->send(message);
    });
  }

  /// Whether it was news of hosts that are reached through this one.
  bool relayed(const Message& message) {
    if (!relay_) return false;
    const auto relay = relay_;
    return std::visit(
        [&](const auto& news) {
          if constexpr (requires { relay->take(news); }) {
            relay->take(news);
            return true;
          } else {
            return false;
          }
        },
        message);
  }

  bool passes_on() const { return relay_ && relay_->users() > 0; }

  /// An agent that passes on ends with the last whom it passes on to.
  void relay_idle() {
    if (finished_ && told_to_end_ && !over()) expect_end(patience_);
  }

  void watch_over() {
    const auto self = weak_from_this();
    pulse_.emplace(
        loop_, heartbeat_, 1,
        [self] {
          if (const auto link = self.lock()) link->send(protocol::Heartbeat{});
        },
        [self] {
          if (const auto link = self.lock()) link->vanished();
        });
  }

  void take(const Message& message) {
    if (const auto* output = std::get_if<protocol::Output>(&message)) {
      events_->on_output(output->rank, output->stream, output->bytes);
    } else if (const auto* prepared = std::get_if<protocol::Prepared>(&message)) {
      ready({.address = prepared->address,
             .interface = prepared->interface,
             .launcher_address = carrier_->launcher_address(),
             .ports = prepared->ports});
    } else if (const auto* covered = std::get_if<protocol::Covered>(&message)) {
      control_group_ = covered->cover.group;
      events_->on_cover(covered->cover);
    } else if (const auto* started = std::get_if<protocol::Started>(&message)) {
      events_->on_started(started->rank, started->pid);
    } else if (const auto* exited = std::get_if<protocol::Exited>(&message)) {
      events_->on_exit(exited->exit);
    } else if (const auto* failed_spawn = std::get_if<protocol::SpawnFailed>(&message)) {
      events_->on_spawn_failed(failed_spawn->rank, failed_spawn->error);
    } else if (std::holds_alternative<protocol::StdinRoom>(message)) {
      events_->on_stdin_room();
    } else if (const auto* asked = std::get_if<protocol::EndAsked>(&message)) {
      events_->on_end_asked(asked->number);
    } else if (const auto* recorded = std::get_if<protocol::Recorded>(&message)) {
      events_->on_timeline(recorded->saved);
    } else if (const auto* viewed = std::get_if<Viewed>(&message)) {
      events_->on_answer(0, *viewed);
    } else if (const auto* piece = std::get_if<Piece>(&message)) {
      events_->on_answer(0, *piece);
    } else if (const auto* finished = std::get_if<protocol::Finished>(&message)) {
      finished_ = finished->survivors;
      if (passes_on()) silence_.reset();
    } else if (const auto* failed = std::get_if<protocol::Failed>(&message)) {
      failed_ = failed->error;
    } else if (!std::holds_alternative<protocol::Heartbeat>(message)) {
      distrust({Errc::protocol, "it sent what only a launcher says"});
    }
  }

  /// From here on nothing it says counts; it ends its ranks at the end of its input.
  void distrust(Error reason) {
    failed_ = std::move(reason);
    pulse_.reset();
    channel_.reset();
    channel_over_ = true;
    carrier_->hang_up();
    settle();
  }

  void vanished() {
    failed_ = Error{Errc::peer_lost,
                    fmt::format("nothing was heard of it for {:g} s (--heartbeat-timeout)",
                                std::chrono::duration<double>(heartbeat_).count())};
    pulse_.reset();
    channel_.reset();
    channel_over_ = true;
    carrier_->give_up();
    settle();
  }

  void gone(Error why) {
    gone_ = std::move(why);
    settle();
  }

  /// Both halves of the pair hold the stream: its end means that both are gone, and the ranks too.
  void channel_ended(const Status& status) {
    channel_over_ = true;
    if (!status) return distrust(status.error());
    settle();
  }

  void settle() {
    if (!gone_ || (opened_ && !channel_over_) || over()) return;
    auto& events = *std::exchange(events_, nullptr);
    silence_.reset();
    pulse_.reset();
    const auto self = shared_from_this();
    tell_end(events);
    // After this one's: it is to blame for theirs.
    if (relay_) relay_->close();
  }

  void tell_end(AgentEvents& events) {
    if (finished_ && !passes_on()) return events.on_finished(*finished_);
    if (cancelled_) return events.on_finished(0);
    carrier_->bury(control_group_);
    auto why = *gone_;
    if (failed_) why = std::move(*failed_).context(fmt::format("agent on host '{}'", host_));
    if (passes_on())
      why.message += fmt::format("; {} other hosts were reached through it", relay_->users());
    events.on_lost(why);
  }

  Loop& loop_;
  const std::string host_;
  const int ports_;
  const Duration grace_;
  const Duration heartbeat_;
  const Duration patience_;
  AgentEvents* events_;
  const std::shared_ptr<Relay> relay_;  ///< To hosts behind it; null: there are none.
  std::unique_ptr<Carrier> carrier_;
  std::optional<AgentSpec> spec_;  ///< To be sent as soon as the stream is there.
  std::string control_group_;      ///< Of the agent and all that it started; empty: none.
  std::unique_ptr<protocol::Conduit> channel_;
  std::optional<Pulse> pulse_;  ///< Of a host that may vanish.
  Subscription silence_;
  Early early_;
  bool opened_ = false;
  bool greeted_ = false;
  bool ready_ = false;
  bool begun_ = false;
  bool cancelled_ = false;
  bool told_to_end_ = false;
  bool told_to_kill_ = false;
  bool channel_over_ = false;
  std::optional<int> finished_;
  std::optional<Error> failed_;
  std::optional<Error> gone_;
};

class LinkedAgent final : public Agent {
 public:
  explicit LinkedAgent(std::shared_ptr<Link> link) : link_(std::move(link)) {}

  ~LinkedAgent() override { link_->close(); }

  LinkedAgent(const LinkedAgent&) = delete;
  LinkedAgent& operator=(const LinkedAgent&) = delete;

  void begin(const AgentSpec& spec) override { link_->begin(spec); }

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
  std::shared_ptr<Link> link_;
};

}  // namespace

Result<std::unique_ptr<Agent>> open_agent(Loop& loop, const AgentSpec& spec,
                                          std::unique_ptr<Carrier> carrier, Duration patience,
                                          AgentEvents& events, std::shared_ptr<Relay> relay) {
  auto link =
      std::make_shared<Link>(loop, spec, std::move(carrier), patience, events, std::move(relay));
  HORO_TRY_STATUS(link->open(spec).context("starting horo-agent"));
  return std::unique_ptr<Agent>(std::make_unique<LinkedAgent>(std::move(link)));
}

}  // namespace horo::launcher
