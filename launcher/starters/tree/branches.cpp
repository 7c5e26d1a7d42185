// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/tree/branches.hpp"

#include <optional>
#include <unordered_map>
#include <utility>

#include "launcher/agent/channel.hpp"
#include "launcher/agent/pulse.hpp"

namespace horo::launcher {

namespace {

using protocol::Channel;

/// Between two looks at what is being done to reach a host, for the case that it takes long.
constexpr Duration kLook = std::chrono::milliseconds(250);

/// One other host's agent, from the wish to reach it until it is gone.
class Branch {
 public:
  struct Handlers {
    std::function<void(const protocol::Message&)> send;
    std::function<void(Error why)> on_gone;  ///< Once; the branch may be destroyed in it.
  };

  Branch(Loop& loop, const protocol::Reach& reach, Handlers handlers)
      : loop_(loop),
        host_(reach.host),
        heartbeat_(reach.heartbeat),
        patience_(reach.patience),
        handlers_(std::move(handlers)) {}

  void open(Result<std::unique_ptr<Carrier>> carrier) {
    if (!carrier) return fail(std::move(carrier).error());
    carrier_ = std::move(*carrier);
    auto opened = carrier_->open({.on_open = [this](int descriptor) { converse(descriptor); },
                                  .on_gone =
                                      [this](Error why) {
                                        carrier_gone_ = true;
                                        if (!why_) why_ = std::move(why);
                                        settle();
                                      }});
    if (!opened) return fail(std::move(opened).error());
    give_it_time();
    look();
  }

  void take(std::string_view frame) {
    if (channel_ == nullptr) return;
    channel_->send_frame(frame);
    // From its preparation on it knows how often it is to be heard.
    if (protocol::is<protocol::Prepare>(frame) && !pulse_ && heartbeat_ > Duration::zero())
      watch_over();
  }

  void leave(bool at_once) {
    if (carrier_ == nullptr) return;
    why_ = Error{Errc::cancelled, "it was told to end"};
    drop_channel();
    if (!at_once) return carrier_->hang_up();
    carrier_->give_up();
    settle();
  }

  void want_input(bool wanted) {
    wanted_ = wanted;
    if (channel_) channel_->want_input(wanted);
    // What it says waits for us.
    if (pulse_) pulse_->excuse(!wanted);
  }

  int process() const { return carrier_ == nullptr ? 0 : carrier_->process(); }

 private:
  void fail(Error why) {
    why_ = std::move(why);
    carrier_gone_ = true;
    settle();
  }

  /// Whoever cannot even be connected to from here may be in somebody else's reach.
  void give_it_time() {
    if (patience_ <= Duration::zero()) return;
    patience_timer_ = loop_.after(patience_, [this] {
      if (greeted_ || carrier_->connected()) return;
      why_ = Error{Errc::timed_out, carrier_->step()};
      carrier_->give_up();
    });
  }

  void look() {
    look_timer_ = loop_.after(kLook, [this] {
      if (greeted_ || carrier_gone_) return;
      auto step = channel_ ? "waiting for the first word of horo-agent" : carrier_->step();
      if (step != step_) {
        step_ = std::move(step);
        handlers_.send(protocol::Step{host_, step_});
      }
      look();
    });
  }

  void converse(int descriptor) {
    auto channel = Channel::open(loop_, descriptor, descriptor,
                                 {.on_message = {},
                                  .on_end = [this](const Status& status) { ended(status); },
                                  .on_room = {},
                                  .noisy_start = true,
                                  .on_frame = [this](auto frame) { pass_on(frame); }});
    if (!channel) {
      why_ = std::move(channel).error();
      return carrier_->hang_up();
    }
    channel_ = std::move(*channel);
    if (!wanted_) channel_->want_input(false);
  }

  void pass_on(std::string_view frame) {
    if (!greeted_) {
      greeted_ = true;
      look_timer_.reset();
      patience_timer_.reset();
      carrier_->greeted();
      handlers_.send(protocol::Reached{host_, carrier_->peer_address()});
    }
    if (pulse_) pulse_->heard();
    if (!protocol::is<protocol::Heartbeat>(frame)) handlers_.send(protocol::Carry{host_, frame});
  }

  void watch_over() {
    pulse_.emplace(
        loop_, heartbeat_, 1, [this] { static_cast<void>(channel_->send(protocol::Heartbeat{})); },
        [this] { fell_silent(); });
    if (!wanted_) pulse_->excuse(true);
  }

  void fell_silent() {
    why_ = Error{Errc::peer_lost,
                 fmt::format("nothing was heard of it for {:g} s (--heartbeat-timeout)",
                             std::chrono::duration<double>(heartbeat_).count())};
    drop_channel();
    carrier_->give_up();
    settle();
  }

  void ended(const Status& status) {
    if (!status && !why_) why_ = status.error();
    drop_channel();
    if (!status) carrier_->hang_up();
    settle();
  }

  void drop_channel() {
    pulse_.reset();
    channel_.reset();
  }

  void settle() {
    if (!carrier_gone_ || channel_ != nullptr) return;
    if (const auto handler = std::exchange(handlers_.on_gone, nullptr)) handler(*why_);
  }

  Loop& loop_;
  const std::uint32_t host_;
  const Duration heartbeat_;
  const Duration patience_;
  Handlers handlers_;
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<Channel> channel_;
  std::optional<Pulse> pulse_;
  std::optional<Error> why_;
  std::string step_;
  Subscription look_timer_;
  Subscription patience_timer_;
  bool greeted_ = false;
  bool wanted_ = true;
  bool carrier_gone_ = false;
};

class AllBranches final : public Branches {
 public:
  AllBranches(Loop& loop, Trunk trunk, MakeCarrier make)
      : loop_(loop), trunk_(std::move(trunk)), make_(std::move(make)) {}

  void take(const protocol::Reach& reach) override {
    const auto host = reach.host;
    if (hung_up_ || branches_.contains(host))
      return trunk_.send(protocol::Gone{host, {Errc::duplicate, "it is being reached already"}});
    auto& branch = branches_[host];
    branch = std::make_unique<Branch>(
        loop_, reach,
        Branch::Handlers{.send = trunk_.send, .on_gone = [this, host](const Error& why) {
                           // Not from within the branch, which ends with this.
                           loop_.post([this, alive = std::weak_ptr(alive_), host, why] {
                             if (!alive.expired()) gone(host, why);
                           });
                         }});
    branch->want_input(wanted_);
    branch->open(make_(reach));
  }

  void take(const protocol::Carry& carry) override {
    const auto found = branches_.find(carry.host);
    if (found != branches_.end()) found->second->take(carry.frame);
  }

  void take(const protocol::Leave& leave) override {
    const auto found = branches_.find(leave.host);
    if (found != branches_.end()) found->second->leave(leave.at_once);
  }

  void want_input(bool wanted) override {
    if (std::exchange(wanted_, wanted) == wanted) return;
    for (const auto& [host, branch] : branches_) branch->want_input(wanted);
  }

  void hang_up() override {
    if (std::exchange(hung_up_, true)) return;
    for (const auto& [host, branch] : branches_) branch->leave(false);
  }

  bool empty() const override { return branches_.empty(); }

  std::vector<int> processes() const override {
    std::vector<int> pids;
    for (const auto& [host, branch] : branches_) {
      if (const int pid = branch->process(); pid > 0) pids.push_back(pid);
    }
    return pids;
  }

 private:
  void gone(std::uint32_t host, const Error& why) {
    branches_.erase(host);
    trunk_.send(protocol::Gone{host, why});
    if (branches_.empty()) trunk_.on_empty();
  }

  Loop& loop_;
  const Trunk trunk_;
  const MakeCarrier make_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Branch>> branches_;
  bool wanted_ = true;
  bool hung_up_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace

std::unique_ptr<Branches> make_branches(Loop& loop, Branches::Trunk trunk, MakeCarrier make) {
  return std::make_unique<AllBranches>(loop, std::move(trunk), std::move(make));
}

}  // namespace horo::launcher
