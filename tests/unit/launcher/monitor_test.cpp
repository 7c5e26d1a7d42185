// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/monitor.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"
#include "launcher/output/job_output.hpp"
#include "launcher/protocol/protocol.hpp"
#include "tests/support/fake_starter.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;
using protocol::Message;

namespace {

/// A job of two hosts, a and b, over fake agents, and the socket to look at it.
struct World {
  std::unique_ptr<Loop> loop = Loop::make().value();
  UniqueFd screen{open("/dev/null", O_WRONLY | O_CLOEXEC)};
  FakeStarter starter;
  std::optional<JobOutput> output;
  std::optional<JobDriver> job;
  std::unique_ptr<Monitor> monitor;

  World() {
    const discovery::HostSet set({{"a", 2}, {"b", 1}});
    const auto placement = place(set, {.np = 3}).value();
    output.emplace(*loop, OutputOptions{.out_fd = screen.value(), .err_fd = screen.value()},
                   std::vector<RankLabel>(placement.ranks.size()), std::nullopt);
    std::vector<AgentSpec> agents;
    for (const auto& host : placement.hosts) agents.push_back({.host = host.name});
    job.emplace(
        *loop, JobSpec{.start_timeout = 10s},
        GenerationSpec{.placement = placement,
                       .agents = std::move(agents),
                       .starter = std::shared_ptr<Starter>(std::shared_ptr<void>(), &starter),
                       .output = &*output},
        JobHandlers{.on_ended = {}, .on_finished = [] {}});
    monitor = Monitor::open(*loop, monitored(*job, "unit", false)).value();
    job->start();
  }

  AgentEvents& events(std::size_t host) { return *starter.host(host).events; }

  const std::vector<std::string>& calls(std::size_t host) { return starter.host(host).calls; }

  /// Runs the loop until nothing is left to do.
  void turn() {
    for (int i = 0; i < 8; ++i) {
      const auto soon = loop->after(1ms, [this] { loop->stop(); });
      loop->run();
    }
  }
};

/// One viewer of the job.
class Viewer {
 public:
  explicit Viewer(World& world) : world_(world) {
    const auto name = fmt::format("{}{}/{}/unit", kMonitorPrefix, geteuid(), getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(&address.sun_path[1], name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    REQUIRE(connect(socket_.value(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  }

  void say(const Message& message) {
    std::string frame;
    REQUIRE(protocol::encode(message, frame));
    say_bytes(frame);
  }

  void say_bytes(std::string_view bytes) {
    REQUIRE(send(socket_.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
    world_.turn();
  }

  void ask(std::uint32_t at, const Message& question) {
    std::string frame;
    REQUIRE(protocol::encode(question, frame));
    say(protocol::Carry{.host = at, .frame = std::string_view(frame).substr(4)});
  }

  /// The next message that the launcher sent; nothing: there is none.
  std::optional<Message> hear() {
    world_.turn();
    for (;;) {
      auto message = reader_.next();
      REQUIRE(message);
      if (*message) return std::move(**message);
      std::array<char, 65536> bytes{};
      const auto got = recv(socket_.value(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      hung_up_ = got == 0 || (got < 0 && errno != EAGAIN);
      if (got <= 0) return std::nullopt;
      reader_.feed({bytes.data(), static_cast<std::size_t>(got)});
    }
  }

  template <typename M>
  M hear_answer(std::uint32_t from) {
    const auto message = hear();
    REQUIRE(message);
    const auto& carry = std::get<protocol::Carry>(*message);
    CHECK(carry.host == from);
    bytes_ = carry.frame;
    return std::get<M>(protocol::decode(bytes_).value());
  }

  bool hung_up() {
    while (hear()) continue;
    return hung_up_;
  }

  void greet() {
    say(protocol::Hello::ours());
    REQUIRE(std::holds_alternative<protocol::Hello>(hear().value()));
    roster = std::get<protocol::Roster>(hear().value());
  }

  protocol::Roster roster;

 private:
  World& world_;
  UniqueFd socket_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  protocol::FrameSplitter reader_;
  std::string bytes_;
  bool hung_up_ = false;
};

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("a viewer gets the roster, and the answers of agents") {
  World world;
  Viewer viewer(world);
  viewer.greet();
  CHECK(viewer.roster.job == "unit");
  REQUIRE(viewer.roster.agents.size() == 2);
  CHECK(viewer.roster.agents[0].host == "a");
  CHECK(viewer.roster.agents[0].ranks == std::vector<int>{0, 1});
  CHECK(viewer.roster.agents[1].ranks == std::vector<int>{2});
  viewer.ask(1, Look{});
  CHECK(world.calls(0).empty());
  REQUIRE(world.calls(1) == Calls{"look 0"});
  world.events(1).on_answer(0, Viewed{.problem = {}, .rows = {{.rank = 2, .tensor = "t"}}});
  const auto view = viewer.hear_answer<Viewed>(1);
  REQUIRE(view.rows.size() == 1);
  CHECK(view.rows.front().tensor == "t");
}

TEST_CASE("an agent has one Look to answer at a time, however many viewers ask") {
  World world;
  Viewer first(world);
  Viewer second(world);
  first.greet();
  second.greet();
  for (int i = 0; i < 5; ++i) first.ask(0, Look{});
  second.ask(0, Look{});
  CHECK(world.calls(0) == Calls{"look 0"});
  world.events(0).on_answer(0, Viewed{});
  first.hear_answer<Viewed>(0);
  second.hear_answer<Viewed>(0);
  CHECK_FALSE(first.hear());
  first.ask(0, Look{});
  CHECK(world.calls(0) == Calls{"look 0", "look 0"});
}

TEST_CASE("pieces go to the viewer that asked, and few are in transit") {
  World world;
  Viewer first(world);
  Viewer second(world);
  first.greet();
  second.greet();
  first.ask(0, Fetch{.asker = 77, .offset = 0});
  second.ask(0, Fetch{.asker = 77, .offset = 0});
  REQUIRE(world.calls(0) == Calls{"fetch 0 1 0", "fetch 0 2 0"});
  world.events(0).on_answer(
      0, Piece{.asker = 2, .offset = 0, .size = 3, .problem = {}, .bytes = "two"});
  CHECK(second.hear_answer<Piece>(0).bytes == "two");
  CHECK_FALSE(first.hear());
  for (int i = 0; i < 20; ++i) first.ask(0, Fetch{.offset = 65536});
  CHECK(world.calls(0).size() == 5);  // The first one's four, the second one's one.
}

TEST_CASE("a viewer is told when a host's ranks do not run yet, or have ended") {
  World world;
  Viewer viewer(world);
  viewer.greet();
  world.starter.host(0).answers = false;
  viewer.ask(0, Look{});
  const auto none = viewer.hear();
  REQUIRE(none);
  CHECK(std::get<protocol::Gone>(*none).host == 0);
  viewer.ask(1, Look{});
  CHECK_FALSE(viewer.hear());
  world.events(1).on_lost({Errc::peer_lost, "gone"});
  viewer.ask(1, Look{});
  const auto gone = viewer.hear();
  REQUIRE(gone);
  CHECK(std::get<protocol::Gone>(*gone).host == 1);
}

TEST_CASE("a viewer that sends invalid messages is disconnected and cannot give orders to agents") {
  World world;
  std::string kill;
  REQUIRE(protocol::encode(protocol::Kill{}, kill));
  const std::vector<std::string> all{"GET / HTTP/1.0\r\n\r\n", std::string(70000, '\xff'), kill,
                                     std::string(5, '\0')};
  for (const auto& words : all) {
    Viewer viewer(world);
    viewer.say_bytes(words);
    CHECK(viewer.hung_up());
  }
  {
    Viewer viewer(world);
    viewer.greet();
    viewer.ask(0, protocol::Kill{});
    CHECK(viewer.hung_up());
  }
  {
    Viewer viewer(world);
    viewer.greet();
    viewer.ask(2, Look{});  // There are two.
    CHECK(viewer.hung_up());
  }
  CHECK(world.calls(0).empty());
  CHECK(world.calls(1).empty());
}

TEST_CASE("a viewer that reads nothing delays no other viewer, and its own messages wait") {
  World world;
  Viewer slow(world);
  Viewer quick(world);
  slow.greet();
  quick.greet();
  const std::vector<timeline::LiveRow> rows(1000, {.tensor = std::string(kMostTensorText, 'x')});
  std::size_t asked = 0;
  for (int i = 0; i < 40; ++i) {
    slow.ask(0, Look{});
    if (world.calls(0).size() == asked) break;  // Its answers have no room: it is not read.
    asked = world.calls(0).size();
    world.events(0).on_answer(0, Viewed{.problem = {}, .rows = rows});
  }
  CHECK(asked < 40);
  quick.ask(1, Look{});
  world.events(1).on_answer(0, Viewed{});
  quick.hear_answer<Viewed>(1);
  std::size_t heard = 0;  // It gets all it asked for, once it takes it.
  for (int i = 0; i < 1000 && heard < asked; ++i) {
    if (slow.hear()) ++heard;
  }
  CHECK(heard >= asked);
}

TEST_CASE("the monitor's socket is gone with the monitor") {
  const auto name = fmt::format("{}{}/{}/unit", kMonitorPrefix, geteuid(), getpid());
  const auto listed = [&name] {
    std::array<char, 4096> block{};
    std::string text;
    const UniqueFd file(open("/proc/net/unix", O_RDONLY | O_CLOEXEC));
    for (ssize_t got = 0; (got = read(file.value(), block.data(), block.size())) > 0;)
      text.append(block.data(), static_cast<std::size_t>(got));
    return text.find(name) != std::string::npos;
  };
  {
    World world;
    CHECK(listed());
  }
  CHECK_FALSE(listed());
}

TEST_CASE("a viewer that wants to change a job that is not elastic hears why it cannot") {
  World world;
  Viewer viewer(world);
  viewer.greet();
  CHECK_FALSE(viewer.roster.elastic);
  viewer.say(Resize{.kind = ResizeKind::shrink, .host = "a"});
  const auto answer = std::get<Resized>(viewer.hear().value());
  CHECK_FALSE(answer.accepted);
  CHECK_THAT(answer.text, Catch::Contains("--min-np"));
  viewer.say(AskMembers{});
  CHECK(std::get<protocol::Roster>(viewer.hear().value()).agents.size() == 2);
  CHECK_FALSE(viewer.hear());
  viewer.say(Resize{.kind = ResizeKind::shrink, .host = "-x"});
  CHECK(viewer.hung_up());
}
