// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/monitor.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/loop/abstract_address.hpp"
#include "base/unique_fd.hpp"
#include "launcher/protocol/descriptor_stream.hpp"

namespace horo::launcher {

namespace {

using protocol::DescriptorStream;
using protocol::Message;

constexpr std::size_t kMostViewers = 16;
constexpr int kMostPieces = 4;  ///< Pieces of one agent in transit to one viewer.
constexpr Duration kPause =
    std::chrono::seconds(1);  ///< Before accepting again, when no descriptors are left.
constexpr Duration kAnswerTimeout =
    std::chrono::seconds(5);  ///< For an answer; then the agent is asked again.

Result<UniqueFd> listen_at(const std::string& name) {
  HORO_TRY(const auto address, AbstractAddress::of(name));
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || bind(fd.value(), address.get(), address.size) != 0 ||
      listen(fd.value(), static_cast<int>(kMostViewers)) != 0) {
    return fail_errno(errno, "opening the socket for horo top");
  }
  return fd;
}

bool may_look(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

}  // namespace

class Monitor::Impl {
 public:
  Impl(Loop& loop, std::unique_ptr<MonitoredJob> job) : loop_(loop), job_(std::move(job)) {}

  Status begin() {
    const auto roster = job_->roster();
    HORO_TRY(socket_,
             listen_at(fmt::format("{}{}/{}/{}", kMonitorPrefix, geteuid(), getpid(), roster.job)));
    HORO_TRY(listener_, loop_.watch(socket_.value()));
    listener_.on_readable([this] { accept_viewer(); });
    job_->on_answer([this](std::size_t agent, const Answer& answer) {
      std::visit([&](const auto& words) { pass_back(agent, words); }, answer);
    });
    return {};
  }

 private:
  struct Place {
    std::set<std::uint32_t> waiting;  ///< Viewers that wait for the answer to a Look.
    TimePoint asked{};
  };

  struct Viewer {
    UniqueFd socket;
    bool greeted = false;
    std::size_t agents = 0;             ///< In the last roster that it got.
    std::map<std::size_t, int> pieces;  ///< Requested pieces that have not arrived, by agent.
    std::unique_ptr<DescriptorStream> channel;
  };

  void accept_viewer() {
    UniqueFd connection(accept4(socket_.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection && (errno == EMFILE || errno == ENFILE)) {
      listener_.on_readable({});
      pause_ = loop_.after(kPause, [this] { listener_.on_readable([this] { accept_viewer(); }); });
    }
    if (!connection || !may_look(connection.value()) || viewers_.size() >= kMostViewers) return;
    const auto id = ++last_id_;
    auto channel = DescriptorStream::open(
        loop_, connection.value(), connection.value(),
        {.on_message = [this, id](const Message& message) { receive(id, message); },
         .on_end = [this, id](const Status&) { viewers_.erase(id); },
         .on_room = [this, id] { viewers_.at(id).channel->want_input(true); },
         .skip_until_hello = false,
         .on_frame = {}});
    if (!channel) return;
    auto& viewer = viewers_[id];
    viewer.socket = std::move(connection);
    viewer.channel = std::move(*channel);
    send(viewer, protocol::Hello::ours());
    send_roster(viewer);
  }

  void send_roster(Viewer& viewer) {
    const auto roster = job_->roster();
    viewer.agents = roster.agents.size();
    places_.resize(std::max(places_.size(), viewer.agents));
    send(viewer, roster);
  }

  static void send(Viewer& viewer, const Message& message) {
    static_cast<void>(viewer.channel->send(message));
    if (!viewer.channel->has_room()) viewer.channel->want_input(false);
  }

  void receive(std::uint32_t id, const Message& message) {
    auto& viewer = viewers_.at(id);
    if (!viewer.greeted) {
      const auto* hello = std::get_if<protocol::Hello>(&message);
      viewer.greeted = hello != nullptr && protocol::check_hello(*hello, "a viewer");
      if (!viewer.greeted) viewers_.erase(id);
      return;
    }
    if (std::holds_alternative<AskMembers>(message)) return tell_members(viewer);
    if (const auto* wish = std::get_if<Resize>(&message)) return send(viewer, job_->resize(*wish));
    const auto* carry = std::get_if<protocol::Carry>(&message);
    if (carry == nullptr || carry->host >= viewer.agents) {
      viewers_.erase(id);
      return;
    }
    const auto question = protocol::decode(carry->frame);
    if (question && std::holds_alternative<Look>(*question)) return look(id, carry->host);
    if (question && std::holds_alternative<Fetch>(*question))
      return fetch(id, carry->host, std::get<Fetch>(*question));
    viewers_.erase(id);
  }

  void tell_members(Viewer& viewer) {
    send_roster(viewer);
    if (auto members = job_->members()) send(viewer, std::move(*members));
  }

  /// An agent has at most one Look to answer, however many viewers wait for it.
  void look(std::uint32_t id, std::uint32_t at) {
    auto& place = places_[at];
    const auto now = SteadyClock::instance().now();
    const bool asked =
        !place.waiting.empty() && now - place.asked < kAnswerTimeout && !job_->is_over(at);
    place.waiting.insert(id);
    if (asked) return;
    place.asked = now;
    if (job_->ask(at, Look{})) return;
    for (const auto viewer_id : std::exchange(place.waiting, {})) refuse(viewer_id, at);
  }

  void fetch(std::uint32_t id, std::uint32_t at, Fetch question) {
    auto& pieces = viewers_.at(id).pieces[at];
    if (pieces >= kMostPieces) return;
    question.asker = id;
    if (!job_->ask(at, question)) return refuse(id, at);
    ++pieces;
  }

  void refuse(std::uint32_t id, std::uint32_t at) {
    const auto found = viewers_.find(id);
    if (found == viewers_.end()) return;
    send(found->second, protocol::Gone{.host = at,
                                       .error = {Errc::unavailable,
                                                 job_->is_over(at) ? "its ranks have ended"
                                                                   : "its ranks do not run now"}});
  }

  void pass_back(std::size_t at, const Viewed& answer) {
    for (const auto viewer_id : std::exchange(places_[at].waiting, {})) give(viewer_id, at, answer);
  }

  void pass_back(std::size_t at, const Piece& answer) {
    const auto found = viewers_.find(answer.asker);
    // An agent that was not asked gives no answer.
    if (found == viewers_.end() || found->second.pieces[at] <= 0) return;
    --found->second.pieces[at];
    give(answer.asker, at, answer);
  }

  void give(std::uint32_t id, std::size_t at, const Message& answer) {
    const auto found = viewers_.find(id);
    if (found == viewers_.end()) return;
    std::string frame;
    if (!protocol::encode(answer, frame)) return;
    send(found->second, protocol::Carry{.host = static_cast<std::uint32_t>(at),
                                        .frame = std::string_view(frame).substr(4)});
  }

  Loop& loop_;
  const std::unique_ptr<MonitoredJob> job_;
  std::vector<Place> places_;  ///< By agent.
  UniqueFd socket_;
  Descriptor listener_;
  Subscription pause_;
  std::uint32_t last_id_ = 0;
  std::map<std::uint32_t, Viewer> viewers_;
};

Result<std::unique_ptr<Monitor>> Monitor::open(Loop& loop, std::unique_ptr<MonitoredJob> job) {
  auto impl = std::make_unique<Impl>(loop, std::move(job));
  HORO_TRY_STATUS(impl->begin());
  return std::unique_ptr<Monitor>(new Monitor(std::move(impl)));
}

Monitor::Monitor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Monitor::~Monitor() = default;

}  // namespace horo::launcher
