// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/tree/reached_agents.hpp"

#include <optional>
#include <unordered_map>
#include <utility>

#include "launcher/protocol/descriptor_stream.hpp"
#include "launcher/protocol/heartbeat_timer.hpp"
#include "launcher/starters/link/remote_agent.hpp"

namespace horo::launcher {

namespace {

using protocol::DescriptorStream;

/// How often the progress of a slow connection is reported.
constexpr Duration kStepInterval = std::chrono::milliseconds(250);

/// One other host's agent, from the order to reach it until it is gone:
///   reaching -> greeting -> relaying    greeting: the stream is there, the hello is not
/// The stream and the carrier end one after the other, in any order; then the agent is gone.
class ReachedAgent {
 public:
  struct Handlers {
    std::function<void(const protocol::Message&)> send;  ///< To the launcher.
    std::function<void(Error why)> on_gone;              ///< Once; this may be destroyed in it.
  };

  ReachedAgent(Loop& loop, const protocol::Reach& reach, Handlers handlers)
      : loop_(loop),
        host_(reach.host),
        heartbeat_(reach.heartbeat),
        connect_timeout_(reach.connect_timeout),
        handlers_(std::move(handlers)) {}

  void open(Result<std::unique_ptr<Carrier>> carrier) {
    if (!carrier) return fail(std::move(carrier).error());
    carrier_ = std::move(*carrier);
    auto opened = carrier_->open({.on_open = [this](OpenedStream stream) { opened_stream(stream); },
                                  .on_gone =
                                      [this](Error why) {
                                        carrier_gone_ = true;
                                        if (!why_) why_ = std::move(why);
                                        report_if_gone();
                                      }});
    if (!opened) return fail(std::move(opened).error());
    limit_connecting();
    report_steps();
  }

  void take(std::string_view frame) {
    if (stream_ == nullptr) return;
    stream_->send_frame(frame);
    // Prepare tells the other agent the heartbeat: it sends some from then on.
    if (protocol::is<protocol::Prepare>(frame) && !heartbeat_timer_ &&
        heartbeat_ > Duration::zero())
      start_heartbeat();
  }

  void leave(bool at_once) {
    if (carrier_ == nullptr) return;
    why_ = Error{Errc::cancelled, "it was told to end"};
    close_stream();
    if (!at_once) return carrier_->hang_up();
    carrier_->give_up();
    report_if_gone();
  }

  void want_input(bool wanted) {
    wanted_ = wanted;
    if (stream_) stream_->want_input(wanted);
    // Its messages wait for this agent to read them, so its silence does not count.
    if (heartbeat_timer_) heartbeat_timer_->excuse(!wanted);
  }

  int process() const { return carrier_ == nullptr ? 0 : carrier_->status().process; }

 private:
  enum class State : std::uint8_t { reaching, greeting, relaying };

  void fail(Error why) {
    why_ = std::move(why);
    carrier_gone_ = true;
    report_if_gone();
  }

  /// A host that cannot be connected to from here may be reachable from another host.
  void limit_connecting() {
    if (connect_timeout_ <= Duration::zero()) return;
    connect_timer_ = loop_.after(connect_timeout_, [this] {
      const auto status = carrier_->status();
      if (state_ == State::relaying || status.connected) return;
      why_ = Error{Errc::timed_out, status.step};
      carrier_->give_up();
    });
  }

  void report_steps() {
    step_timer_ = loop_.after(kStepInterval, [this] {
      if (state_ == State::relaying || carrier_gone_) return;
      auto step = state_ == State::greeting ? "waiting for the hello of horo-agent"
                                            : carrier_->status().step;
      if (step != step_) {
        step_ = std::move(step);
        handlers_.send(protocol::Step{host_, step_});
      }
      report_steps();
    });
  }

  void opened_stream(const OpenedStream& opened) {
    peer_address_ = opened.peer_address;
    auto stream = DescriptorStream::open(loop_, opened.descriptor, opened.descriptor,
                                         {.on_message = {},
                                          .on_end = [this](const Status& status) { ended(status); },
                                          .on_room = {},
                                          .skip_until_hello = true,
                                          .on_stray = [this](auto bytes) { stray_.add(bytes); },
                                          .on_frame = [this](auto frame) { relay(frame); }});
    if (!stream) {
      why_ = std::move(stream).error();
      return carrier_->hang_up();
    }
    state_ = State::greeting;
    stream_ = std::move(*stream);
    if (!wanted_) stream_->want_input(false);
  }

  void relay(std::string_view frame) {
    if (state_ == State::greeting) {
      state_ = State::relaying;
      stray_ = {};
      step_timer_.reset();
      connect_timer_.reset();
      handlers_.send(protocol::Reached{host_, peer_address_});
    }
    if (heartbeat_timer_) heartbeat_timer_->heard();
    if (!protocol::is<protocol::Heartbeat>(frame)) handlers_.send(protocol::Carry{host_, frame});
  }

  void start_heartbeat() {
    heartbeat_timer_.emplace(
        loop_, heartbeat_, 1, [this] { static_cast<void>(stream_->send(protocol::Heartbeat{})); },
        [this] { fell_silent(); });
    if (!wanted_) heartbeat_timer_->excuse(true);
  }

  void fell_silent() {
    why_ =
        Error{Errc::peer_lost, fmt::format("it sent no heartbeat for {:g} s (--heartbeat-timeout)",
                                           std::chrono::duration<double>(heartbeat_).count())};
    close_stream();
    carrier_->give_up();
    report_if_gone();
  }

  void ended(const Status& status) {
    if (!status && !why_) why_ = status.error();
    close_stream();
    if (!status) carrier_->hang_up();
    report_if_gone();
  }

  void close_stream() {
    heartbeat_timer_.reset();
    stream_.reset();
  }

  void report_if_gone() {
    if (!carrier_gone_ || stream_ != nullptr) return;
    const auto handler = std::exchange(handlers_.on_gone, nullptr);
    if (handler == nullptr) return;
    why_->message += stray_.text();
    handler(*why_);
  }

  Loop& loop_;
  const std::uint32_t host_;
  const Duration heartbeat_;
  const Duration connect_timeout_;
  Handlers handlers_;
  State state_ = State::reaching;
  bool wanted_ = true;  ///< Input of the agent is read.
  bool carrier_gone_ = false;
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<DescriptorStream> stream_;
  OutputTail stray_;  ///< Empty once the agent's hello has come.
  std::string peer_address_;
  std::optional<HeartbeatTimer> heartbeat_timer_;
  std::optional<Error> why_;
  std::string step_;
  Subscription step_timer_;
  Subscription connect_timer_;
};

class ReachedAgents final : public ChildAgents {
 public:
  ReachedAgents(Loop& loop, ParentLink parent, MakeCarrier make,
                std::shared_ptr<EndingPrograms> ending)
      : loop_(loop),
        parent_(std::move(parent)),
        make_(std::move(make)),
        ending_(std::move(ending)) {}

  void take(const protocol::Reach& reach) override {
    const auto host = reach.host;
    if (hung_up_ || agents_.contains(host))
      return parent_.send(protocol::Gone{host, {Errc::duplicate, "it is being reached already"}});
    auto& agent = agents_[host];
    agent = std::make_unique<ReachedAgent>(
        loop_, reach,
        ReachedAgent::Handlers{.send = parent_.send, .on_gone = [this, host](const Error& why) {
                                 // In a later turn: gone() destroys the agent that calls this.
                                 loop_.post([this, alive = std::weak_ptr(alive_), host, why] {
                                   if (!alive.expired()) gone(host, why);
                                 });
                               }});
    agent->want_input(wanted_);
    agent->open(make_(reach));
  }

  void take(const protocol::Carry& carry) override {
    const auto found = agents_.find(carry.host);
    if (found != agents_.end()) found->second->take(carry.frame);
  }

  void take(const protocol::Leave& leave) override {
    const auto found = agents_.find(leave.host);
    if (found != agents_.end()) found->second->leave(leave.at_once);
  }

  void want_input(bool wanted) override {
    if (std::exchange(wanted_, wanted) == wanted) return;
    for (const auto& [host, agent] : agents_) agent->want_input(wanted);
  }

  void hang_up() override {
    if (std::exchange(hung_up_, true)) return;
    for (const auto& [host, agent] : agents_) agent->leave(false);
  }

  bool empty() const override { return agents_.empty(); }

  std::vector<int> processes() const override {
    auto pids = ending_ ? ending_->keepers() : std::vector<int>();
    for (const auto& [host, agent] : agents_) {
      if (const int pid = agent->process(); pid > 0) pids.push_back(pid);
    }
    return pids;
  }

 private:
  void gone(std::uint32_t host, const Error& why) {
    agents_.erase(host);
    parent_.send(protocol::Gone{host, why});
    if (agents_.empty()) parent_.on_empty();
  }

  Loop& loop_;
  const ParentLink parent_;
  const MakeCarrier make_;
  const std::shared_ptr<EndingPrograms> ending_;
  std::unordered_map<std::uint32_t, std::unique_ptr<ReachedAgent>> agents_;
  bool wanted_ = true;
  bool hung_up_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<ChildAgents> make_child_agents(Loop& loop, ChildAgents::ParentLink parent,
                                               MakeCarrier make,
                                               std::shared_ptr<EndingPrograms> ending) {
  return std::make_unique<ReachedAgents>(loop, std::move(parent), std::move(make),
                                         std::move(ending));
}

}  // namespace horo::launcher
