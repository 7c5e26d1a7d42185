// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/agent_link.hpp"

#include <array>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"
#include "launcher/protocol/descriptor_stream.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;
using protocol::Message;

namespace {

using Words = std::vector<std::string>;

/// A carrier to a test that plays the agent.
class TestCarrier final : public Carrier {
 public:
  TestCarrier(Loop& loop, UniqueFd ours, AgentPlace place, std::function<void(Error)>& gone)
      : loop_(loop), ours_(std::move(ours)), place_(place), gone_(gone) {}

  Status open(Handlers handlers) override {
    gone_ = std::move(handlers.on_gone);
    loop_.post([this, on_open = std::move(handlers.on_open)] {
      on_open({.descriptor = ours_.value(), .place = place_, .launcher_address = "127.0.0.1"});
    });
    return {};
  }

  void hang_up() override { shutdown(ours_.value(), SHUT_WR); }

  void give_up() override {
    if (const auto handler = std::exchange(gone_, nullptr)) handler({Errc::cancelled, "given up"});
  }

  CarrierStatus status() const override { return {}; }

 private:
  Loop& loop_;
  const UniqueFd ours_;
  const AgentPlace place_;
  std::function<void(Error)>& gone_;
};

/// One link with a scripted agent, and what both sides heard.
class World : public AgentEvents {
 public:
  enum class Program { agent, other };

  explicit World(AgentPlace place = AgentPlace::behind_agent, Program program = Program::agent)
      : World(place, program, spec(1)) {}

  World(AgentPlace place, Program program, const AgentSpec& first) {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    theirs_ = UniqueFd(ends[1]);
    stream_ = protocol::DescriptorStream::open(
                  *loop, ends[1], ends[1],
                  {.on_message =
                       [this](const Message& message) {
                         if (!std::holds_alternative<protocol::Heartbeat>(message))
                           orders.push_back(protocol::describe(message));
                       },
                   .on_end = [this](const Status&) { orders.emplace_back("end"); },
                   .on_room = {},
                   .skip_until_hello = false,
                   .on_frame = {}})
                  .value();
    agent = open_agent(*loop, first,
                       std::make_unique<TestCarrier>(*loop, UniqueFd(ends[0]), place, gone_),
                       EndLimits{.agent = 10s, .stream = Duration::zero()}, *this)
                .value();
    if (program == Program::other) return;
    say(protocol::Hello::ours());
    say(protocol::ControlGroupMade{.control_group = {.path = "group", .reason = {}}});
  }

  static AgentSpec spec(std::uint64_t epoch, Duration stay = 10s) {
    AgentSpec made{.host = "h", .command = {"train"}, .ranks = {{.rank = Rank{0}}}};
    made.epoch = Epoch{epoch};
    made.stay = stay;
    made.held = true;
    return made;
  }

  /// An assignment of worker 0, with room for another one.
  static AgentSpec elastic_spec() {
    auto made = spec(1, Duration::zero());
    made.elastic = true;
    made.slots = 2;
    return made;
  }

  void say(const Message& message) {
    REQUIRE(stream_->send(message));
    settle();
  }

  /// A program that is no agent writes this.
  void print(std::string_view text) {
    REQUIRE(write(theirs_.value(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    settle();
  }

  /// Runs the loop until all that was sent has been heard.
  void settle() {
    for (int turn = 0; turn < 20; ++turn) {
      const auto stop = loop->after(Duration::zero(), [this] { loop->stop(); });
      loop->run();
    }
  }

  /// The agent takes an assignment and its only rank runs.
  void take(std::uint64_t epoch) {
    say(protocol::Assigned{Epoch{epoch}});
    say(protocol::Prepared{{1, 2}, "10.0.0.1", "eth0"});
    agent->begin(spec(epoch));
    say(protocol::Started{Rank{0}, 7});
  }

  void finish() {
    say(protocol::Exited{{.rank = Rank{0}}});
    say(protocol::Finished{0});
  }

  /// The agent's processes end.
  void die() {
    stream_.reset();
    theirs_.reset();
    if (const auto handler = std::exchange(gone_, nullptr)) handler({Errc::unavailable, "killed"});
    settle();
  }

  /// The agent's processes end, and another process still holds their stream.
  void die_but_for_the_stream() {
    if (const auto handler = std::exchange(gone_, nullptr)) handler({Errc::unavailable, "killed"});
    settle();
  }

  void on_ready(const HostFacts&) override { events.emplace_back("ready"); }

  void on_note(std::string_view text) override { events.push_back(fmt::format("note {}", text)); }

  void on_control_group(const ControlGroupInfo& info) override {
    events.push_back("group " + info.path);
  }

  void on_started(Rank, int) override { events.emplace_back("started"); }

  void on_spawn_failed(Rank, const Error&) override { events.emplace_back("spawn failed"); }

  void on_output(Rank, Stream, std::string_view bytes) override {
    events.push_back("output " + std::string(bytes));
  }

  void on_exit(const RankExit&) override { events.emplace_back("exit"); }

  void on_called(const std::vector<elastic::MembershipCall>& calls) override {
    for (const auto& call : calls) events.push_back(fmt::format("called by {}", call.worker));
  }

  void on_stdin_room() override { events.emplace_back("room"); }

  void on_end_asked(int) override { events.emplace_back("end asked"); }

  void on_timeline(const SavedTimeline&) override { events.emplace_back("timeline"); }

  void on_answer(std::size_t, const Answer&) override { events.emplace_back("answer"); }

  void on_waiting(int survivors) override {
    events.push_back(survivors == 0 ? "waiting" : fmt::format("waiting with {} left", survivors));
  }

  void on_finished(int survivors) override {
    events.push_back(fmt::format("finished {}", survivors));
  }

  void on_lost(const Error& error) override { events.push_back("lost " + error.message); }

  Words heard() { return std::exchange(events, {}); }

  std::unique_ptr<Loop> loop = Loop::make().value();
  std::unique_ptr<Agent> agent;
  Words orders;  ///< The agent got these.
  Words events;

 private:
  UniqueFd theirs_;
  std::unique_ptr<protocol::DescriptorStream> stream_;
  std::function<void(Error)> gone_;
};

}  // namespace

TEST_CASE("an agent whose ranks have ended waits, and takes a further assignment") {
  World world;
  world.take(1);
  world.finish();
  CHECK(world.heard() == Words{"group group", "ready", "started", "exit", "waiting"});
  REQUIRE(world.agent->assign(World::spec(2)));
  world.settle();
  CHECK_THAT(world.orders.back(), Catch::StartsWith("prepare") && Catch::Contains("epoch=2"));
  world.take(2);
  CHECK(world.heard() == Words{"group group", "ready", "started"});
  world.finish();
  CHECK(world.heard() == Words{"exit", "waiting"});
}

TEST_CASE("messages of an earlier assignment are dropped") {
  World world;
  world.take(1);
  world.finish();
  world.heard();
  REQUIRE(world.agent->assign(World::spec(2)));
  world.say(protocol::Started{Rank{0}, 7});
  world.say(protocol::Output{Rank{0}, Stream::out, "late"});
  world.say(protocol::Exited{{.rank = Rank{0}, .wait_status = 9}});
  world.say(protocol::StdinRoom{});
  world.say(protocol::Prepared{{1, 2}, "10.0.0.1", "eth0"});
  world.say(Viewed{});
  world.say(protocol::Assigned{Epoch{1}});
  world.say(protocol::Finished{0});
  CHECK(world.heard().empty());
  world.take(2);
  CHECK(world.heard() == Words{"group group", "ready", "started"});
}

TEST_CASE("an agent that waits gets no orders for ranks that are gone") {
  World world;
  world.take(1);
  world.finish();
  const auto before = world.orders;
  world.agent->stop({.rank = Rank{0}, .cause = LossCause::exited, .detail = 1}, "h");
  world.agent->kill();
  CHECK_FALSE(world.agent->ask(0, Look{}));
  world.settle();
  CHECK(world.orders == before);
}

TEST_CASE("a stream that stays open after the agent's end is closed at the limit") {
  World world;
  world.take(1);
  world.finish();
  world.heard();
  SECTION("after the ranks' end") {
    world.agent->release();
    world.die_but_for_the_stream();
    CHECK(world.heard() == Words{"finished 0"});
  }
  SECTION("while the agent waits") {
    world.die_but_for_the_stream();
    CHECK(world.heard() == Words{"lost killed"});
  }
}

TEST_CASE("an agent that was released ends as one that has finished") {
  World world;
  world.take(1);
  world.finish();
  world.heard();
  world.agent->release();
  world.settle();
  CHECK(world.orders.back() == "release");
  CHECK_FALSE(world.agent->assign(World::spec(2)));
  world.die();
  CHECK(world.heard() == Words{"finished 0"});
}

TEST_CASE("an agent that dies while it waits is lost, and takes no assignment") {
  World world;
  world.take(1);
  world.finish();
  world.heard();
  world.die();
  CHECK(world.heard() == Words{"lost killed"});
  CHECK_FALSE(world.agent->assign(World::spec(2)));
}

TEST_CASE("a program in place of the agent ends: the error has its last lines, made safe to show") {
  World world(AgentPlace::other_host, World::Program::other);
  world.print("This account is\n\033]0;owned\007not available.\n");
  world.die();
  CHECK(world.heard() == Words{"lost killed: This account is; not available."});
}

TEST_CASE("what a login shell prints before the agent's hello is not in a later error") {
  World world(AgentPlace::other_host, World::Program::other);
  world.print("Welcome!\n");
  world.say(protocol::Hello::ours());
  world.die();
  CHECK(world.heard() == Words{"lost killed"});
}

TEST_CASE("an agent that waits and gives a reason for its end is lost for that reason") {
  World world;
  world.take(1);
  world.finish();
  world.heard();
  world.say(protocol::Failed{{Errc::timed_out, "no further ranks"}});
  world.die();
  CHECK(world.heard() == Words{"lost agent on host 'h': no further ranks"});
}

TEST_CASE("an agent that dies before it has taken its assignment is lost without a control group") {
  World world;
  world.take(1);
  world.finish();
  world.heard();
  REQUIRE(world.agent->assign(World::spec(2)));
  world.die();
  CHECK(world.heard() == Words{"lost killed"});
}

TEST_CASE("an agent with survivors waits, and tells how many there are") {
  World world;
  world.take(1);
  world.say(protocol::Exited{{.rank = Rank{0}}});
  world.heard();
  world.say(protocol::Finished{2});
  CHECK(world.heard() == Words{"waiting with 2 left"});
  world.agent->release();
  world.settle();
  CHECK_THAT(world.orders.back(), Catch::StartsWith("release"));
}

namespace {

std::vector<WorkerIdentity> workers(std::initializer_list<int> numbers) {
  std::vector<WorkerIdentity> made;
  for (const int number : numbers) made.push_back({.rank = Rank{number}});
  return made;
}

/// An agent of an elastic job on any host: on this one, on another one, or behind another agent.
struct ElasticWorld : World {
  explicit ElasticWorld(AgentPlace place = AgentPlace::behind_agent)
      : World(place, Program::agent, elastic_spec()) {}

  void take_elastic() {
    say(protocol::Assigned{Epoch{1}});
    say(protocol::Prepared{{1, 2}, "10.0.0.1", "eth0"});
    agent->begin(elastic_spec());
    say(protocol::Started{Rank{0}, 7});
    heard();
  }
};

}  // namespace

TEST_CASE("orders of an elastic job reach an agent on any host") {
  for (const auto place :
       {AgentPlace::this_machine, AgentPlace::other_host, AgentPlace::behind_agent}) {
    ElasticWorld world(place);
    world.take_elastic();
    world.agent->spawn(workers({4}));
    world.agent->end_worker(Rank{0});
    world.agent->notice(3, 1);
    world.agent->close();
    world.settle();
    REQUIRE(world.orders.size() >= 5);
    const Words last(world.orders.end() - 4, world.orders.end());
    CHECK_THAT(last[0], Catch::StartsWith("spawn workers=[") && Catch::Contains("rank=4"));
    CHECK(last[1] == "end worker worker=0");
    CHECK(last[2] == "notice sequence=3 flags=1");
    CHECK(last[3] == "close");
  }
}

TEST_CASE("orders of an elastic job that come before its begin follow the start, in order") {
  ElasticWorld world;
  world.agent->spawn(workers({4}));
  world.agent->notice(3, 1);
  world.agent->end_worker(Rank{4});
  world.agent->close();
  world.settle();
  CHECK_THAT(world.orders.back(), Catch::StartsWith("prepare"));
  world.take_elastic();
  world.settle();
  const Words last(world.orders.end() - 5, world.orders.end());
  CHECK_THAT(last[0], Catch::StartsWith("start"));
  CHECK_THAT(last[1], Catch::StartsWith("spawn"));
  CHECK_THAT(last[2], Catch::StartsWith("notice"));
  CHECK_THAT(last[3], Catch::StartsWith("end worker"));
  CHECK(last[4] == "close");
}

TEST_CASE("an agent may report workers that were spawned, or that came with its begin") {
  ElasticWorld world;
  world.agent->spawn(workers({4}));
  world.say(protocol::Assigned{Epoch{1}});
  world.say(protocol::Prepared{{1, 2}, "10.0.0.1", "eth0"});
  auto spec = World::elastic_spec();
  spec.ranks = workers({2});
  world.agent->begin(spec);
  world.heard();
  world.say(protocol::Started{Rank{4}, 7});
  world.say(protocol::Started{Rank{2}, 8});
  world.say(protocol::Output{Rank{4}, Stream::out, "hi"});
  CHECK(world.heard() == Words{"started", "started", "output hi"});
  world.say(protocol::Started{Rank{5}, 9});
  world.die();
  CHECK_THAT(world.heard().back(), Catch::Contains("'started' for rank 5, which is not its own"));
}

TEST_CASE("an agent may not report a worker that has ended") {
  ElasticWorld world;
  world.take_elastic();
  world.agent->spawn(workers({1}));
  SECTION("after its exit") {
    world.say(protocol::Exited{{.rank = Rank{0}}});
    CHECK(world.heard() == Words{"exit"});
    world.say(protocol::Output{Rank{0}, Stream::out, "late"});
  }
  SECTION("after its start failed") {
    world.say(protocol::SpawnFailed{Rank{1}, {Errc::not_found, "no such program"}});
    CHECK(world.heard() == Words{"spawn failed"});
    world.say(protocol::Started{Rank{1}, 9});
  }
  world.die();
  CHECK_THAT(world.heard().back(), Catch::Contains("which is not its own"));
}

TEST_CASE("rows of an elastic job have any ranks, but not more than there are slots") {
  ElasticWorld world;
  world.take_elastic();
  world.say(Viewed{.problem = {}, .rows = {{.rank = 40}, {.rank = 7}}});
  CHECK(world.heard() == Words{"answer"});
  world.say(Viewed{.problem = {}, .rows = {{.rank = 1}, {.rank = 2}, {.rank = 3}}});
  world.die();
  CHECK_THAT(world.heard().back(), Catch::Contains("it sent 3 rows for 2 slots"));
}

TEST_CASE("a closed agent that has finished ends as one that was told to") {
  ElasticWorld world;
  world.take_elastic();
  world.agent->close();
  world.say(protocol::Exited{{.rank = Rank{0}}});
  world.say(protocol::Finished{0});
  const auto before = world.orders;
  world.die();
  CHECK(world.heard() == Words{"exit", "finished 0"});
  world.agent->spawn(workers({1}));
  world.agent->notice(9, 1);
  world.settle();
  CHECK(world.orders == before);
}

TEST_CASE("an agent may pass on calls of its own workers, and answers reach it") {
  ElasticWorld world;
  world.take_elastic();
  world.agent->spawn(workers({4}));
  world.say(protocol::Started{Rank{4}, 7});
  world.heard();
  world.say(protocol::Called{{{.worker = 0}, {.worker = 4}}});
  CHECK(world.heard() == Words{"called by 0", "called by 4"});
  world.agent->answer({{.worker = 4, .answer = {.generation = 1}}});
  world.agent->end_meeting(1);
  world.settle();
  REQUIRE(world.orders.size() >= 2);
  CHECK_THAT(world.orders[world.orders.size() - 2], Catch::StartsWith("answered"));
  CHECK(world.orders.back() == "end meeting generation=1");
}

TEST_CASE("an agent that passes on the call of a worker of another host is not believed") {
  ElasticWorld world;
  world.take_elastic();
  world.say(protocol::Called{{{.worker = 0}, {.worker = 5}}});
  world.die();
  const auto heard = world.heard();
  REQUIRE(heard.size() == 1);
  CHECK_THAT(heard.back(), Catch::Contains("'called' for rank 5, which is not its own"));
}

TEST_CASE("an agent of a job that is not elastic passes no calls on") {
  World world;
  world.take(1);
  world.heard();
  world.say(protocol::Called{{{.worker = 0}}});
  world.die();
  CHECK_THAT(world.heard().back(), Catch::Contains("'called', but the job is not elastic"));
}
