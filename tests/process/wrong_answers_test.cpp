// SPDX-License-Identifier: Apache-2.0
// The agent of a host sends wrong messages: every field of every message takes values that are too
// small, too large, missing, repeated or hostile, at every stage of a job. The launcher ends the
// job with a report each time, and the report names the host when the launcher has refused a
// message.
#include <array>
#include <fcntl.h>
#include <limits>
#include <set>
#include <sys/socket.h>
#include <type_traits>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"
#include "launcher/job/job_driver.hpp"
#include "launcher/job/job_report.hpp"
#include "launcher/output/job_output.hpp"
#include "launcher/protocol/descriptor_stream.hpp"
#include "launcher/run/rank_addresses.hpp"
#include "launcher/starters/link/agent_link.hpp"

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;
using protocol::Message;

namespace {

/// Changes the field number `target` of a message, counting those in lists and inner values, to its
/// value number `variant`.
class Mutation {
 public:
  Mutation(int target, int variant) : target_(target), variant_(variant) {}

  template <typename T, typename Form>
  void operator()(std::string_view /*name*/, T& value, const Form& /*form*/) {
    change(value);
  }

  bool reached() const { return seen_ > target_; }

  bool changed() const { return changed_; }

 private:
  bool is_due() { return seen_++ == target_; }

  template <typename T>
  T number() {
    using Limits = std::numeric_limits<T>;
    const std::array<T, 7> values{T(0),          T(1),          T(2),         T(-1),
                                  Limits::max(), Limits::min(), T(0x7fffffff)};
    if (variant_ >= static_cast<int>(values.size())) return T(0);
    changed_ = true;
    return values[static_cast<std::size_t>(variant_)];
  }

  template <typename T>
  void change(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!is_due() || variant_ > 0) return;
      changed_ = true;
      value = !value;
    } else if constexpr (std::is_enum_v<T>) {
      if (is_due()) value = static_cast<T>(number<std::underlying_type_t<T>>());
    } else if constexpr (std::is_integral_v<T>) {
      if (is_due()) value = number<T>();
    } else if constexpr (std::is_floating_point_v<T>) {
      if (is_due()) value = static_cast<T>(number<int>());
    } else if constexpr (std::is_same_v<T, Duration>) {
      if (is_due()) value = Duration(number<std::int64_t>());
    } else if constexpr (requires {
                           value.value();
                           value.index();
                         }) {
      if (is_due()) value = T(number<decltype(value.value())>());
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
      change_text(value);
    } else if constexpr (requires { value.resize(0); }) {
      change_list(value);
    } else {
      FieldsOf<T>::visit(*this, value);
    }
  }

  template <typename T>
  void change_text(T& value) {
    static const std::string kLong(100'000, 'x');
    const std::array<std::string_view, 5> values{"", "\x1b]0;owned\x07", "no number", kLong,
                                                 "\n\n"};
    if (!is_due() || variant_ >= static_cast<int>(values.size())) return;
    changed_ = true;
    value = T(values[static_cast<std::size_t>(variant_)]);
  }

  template <typename T>
  void change_list(T& value) {
    constexpr std::array<std::size_t, 5> kSizes{0, 1, 2, 4, 5000};
    if (is_due() && variant_ < static_cast<int>(kSizes.size())) {
      changed_ = true;
      value.resize(kSizes[static_cast<std::size_t>(variant_)]);
      // The last element is also there twice.
      if (value.size() == 4) value[2] = value[3] = value[0];
      return;
    }
    for (auto& element : value) change(element);
  }

  const int target_;
  const int variant_;
  int seen_ = 0;
  bool changed_ = false;
};

constexpr std::size_t kRanks = 2;

/// The messages of a well-behaved agent of two ranks, in order.
std::vector<Message> right_answers() {
  std::vector<Message> all{protocol::Hello::ours(),
                           protocol::ControlGroupMade{.control_group = {.path = "g", .reason = {}}},
                           protocol::Assigned{Epoch{1}},
                           protocol::Prepared{{4001, 4002, 4003}, "127.0.0.1", "lo"}};
  for (const int rank : {0, 1}) all.emplace_back(protocol::Started{Rank{rank}, 7});
  for (const int rank : {0, 1}) all.emplace_back(protocol::Output{Rank{rank}, Stream::out, "up\n"});
  for (const int rank : {0, 1})
    all.emplace_back(protocol::Exited{{.rank = Rank{rank}, .wait_status = 3 << 8}});
  all.emplace_back(protocol::Recorded{{.ranks = 2, .directory = "/tmp/t", .problem = {}}});
  all.emplace_back(protocol::Finished{0});
  return all;
}

/// One message of every kind that a launcher may get.
std::vector<Message> all_kinds() {
  auto all = right_answers();
  all.emplace_back(protocol::Heartbeat{});
  all.emplace_back(protocol::StdinRoom{});
  all.emplace_back(protocol::SpawnFailed{Rank{1}, {Errc::not_found, "no such program"}});
  all.emplace_back(protocol::Failed{{Errc::unavailable, "no descriptors"}});
  all.emplace_back(protocol::EndAsked{15});
  all.emplace_back(protocol::Reached{.host = 1, .address = "127.0.0.1"});
  all.emplace_back(protocol::Gone{.host = 1, .error = {Errc::unavailable, "gone"}});
  all.emplace_back(protocol::Step{.host = 1, .text = "connecting"});
  all.emplace_back(protocol::Carry{.host = 1, .frame = "\x0b"});
  timeline::LiveRow row;
  row.rank = 1;
  row.missing = {0};
  all.emplace_back(Viewed{.problem = {}, .rows = {row}});
  all.emplace_back(Piece{.problem = {}, .bytes = "bytes"});
  all.emplace_back(protocol::Signal{15});
  return all;
}

class ScriptedCarrier final : public Carrier {
 public:
  ScriptedCarrier(Loop& loop, UniqueFd ours, std::function<void(Error)>& gone)
      : loop_(loop), ours_(std::move(ours)), gone_(gone) {}

  Status open(Handlers handlers) override {
    gone_ = std::move(handlers.on_gone);
    loop_.post([this, on_open = std::move(handlers.on_open)] {
      on_open({.descriptor = ours_.value(),
               .place = AgentPlace::behind_agent,
               .launcher_address = "127.0.0.1"});
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
  std::function<void(Error)>& gone_;
};

/// A job on one host, whose agent the test plays.
class World final : public Starter {
 public:
  World() {
    output_.emplace(*loop_, OutputOptions{.out_fd = screen_.value(), .err_fd = screen_.value()},
                    std::vector<RankLabel>(kRanks), std::nullopt);
    const auto placement =
        place(discovery::HostSet({{"bad-host", kRanks}}), {.np = kRanks}).value();
    GenerationSpec spec{.placement = placement,
                        .complete = [this](auto& agents, const auto& facts) -> Status {
                          HORO_TRY(server_, publish_addresses(*loop_, agents, facts));
                          return {};
                        },
                        .starter = std::shared_ptr<Starter>(std::shared_ptr<void>(), this),
                        .output = &*output_};
    AgentSpec agent{.host = "bad-host", .command = {"train"}};
    for (const int rank : {0, 1}) {
      auto& identity = agent.ranks.emplace_back();
      identity.rank = Rank{rank};
      identity.local_rank = LocalRank{rank};
      identity.size = identity.local_size = kRanks;
      identity.worker_addresses = WorkerAddresses({"", ""});
    }
    agent.held = true;
    spec.agents.push_back(std::move(agent));
    job_.emplace(*loop_, JobSpec{.start_timeout = 100s}, std::move(spec),
                 JobHandlers{.on_ended = [] {}, .on_finished = [this] { finished_ = true; }});
    job_->start();
    settle();
  }

  std::string_view name() const override { return "scripted"; }

  Status probe() const override { return {}; }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    std::array<int, 2> ends{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    theirs_ = UniqueFd(ends[1]);
    stream_ = protocol::DescriptorStream::open(*loop_, ends[1], ends[1],
                                               {.on_message = [](const Message&) {},
                                                .on_end = [](const Status&) {},
                                                .on_room = {},
                                                .skip_until_hello = false,
                                                .on_frame = {}})
                  .value();
    return open_agent(*loop_, spec,
                      std::make_unique<ScriptedCarrier>(*loop_, UniqueFd(ends[0]), gone_),
                      EndLimits{.agent = 10s}, events);
  }

  void say(const Message& message) {
    static_cast<void>(stream_->send(message));
    settle();
  }

  /// The agent's processes end.
  void die() {
    stream_.reset();
    theirs_.reset();
    if (const auto handler = std::exchange(gone_, nullptr)) handler({Errc::unavailable, "killed"});
    for (int i = 0; i < 100 && !finished_; ++i) settle();
  }

  bool finished() const { return finished_; }

  std::string report() const {
    ReportInput input{.state = job_->state(), .job_id = "j", .program = "train"};
    input.timeline = job_->timeline();
    const auto& first = job_->state().generation.first_failure;
    if (first && first->rank) input.last_lines = output_->last_lines(*first->rank);
    CHECK(json_report(input).back() == '\n');
    return end_report(input);
  }

  int exit_code() const { return exit_code_of(job_->state()); }

 private:
  void settle() {
    for (int turn = 0; turn < 6; ++turn) {
      const auto stop = loop_->after(Duration::zero(), [this] { loop_->stop(); });
      loop_->run();
    }
  }

  std::unique_ptr<Loop> loop_ = Loop::make().value();
  UniqueFd screen_{open("/dev/null", O_WRONLY | O_CLOEXEC)};
  std::optional<JobOutput> output_;
  std::unique_ptr<kv::Server> server_;
  UniqueFd theirs_;
  std::unique_ptr<protocol::DescriptorStream> stream_;
  std::function<void(Error)> gone_;
  bool finished_ = false;
  std::optional<JobDriver> job_;
};

/// The wrong message in front of the right message number `stage`, and the rest of the right ones.
void try_wrong(const Message& wrong, std::size_t stage) {
  World world;
  const auto right = right_answers();
  for (std::size_t i = 0; i < stage; ++i) world.say(right[i]);
  world.say(wrong);
  for (std::size_t i = stage; i < right.size(); ++i) world.say(right[i]);
  world.die();
  INFO("in front of message " << stage << ": " << protocol::describe(wrong).substr(0, 300));
  REQUIRE(world.finished());
  CHECK(world.exit_code() != 0);
  CHECK_FALSE(world.report().empty());
}

/// All changes of one field of `message`. False: it has no field with that number.
bool for_each_change(const Message& message, int target,
                     const std::function<void(const Message&)>& task) {
  bool reached = false;
  for (int variant = 0; variant < 7; ++variant) {
    Message changed = message;
    Mutation mutation(target, variant);
    std::visit(
        [&]<typename M>(M& m) {
          if constexpr (is_for<M>(Receiver::launcher)) FieldsOf<M>::visit(mutation, m);
        },
        changed);
    reached = mutation.reached();
    if (mutation.changed()) task(changed);
  }
  return reached;
}

void expect_refused(const Message& wrong, std::size_t stage, const std::string& words) {
  World world;
  const auto right = right_answers();
  for (std::size_t i = 0; i < stage; ++i) world.say(right[i]);
  world.say(wrong);
  world.die();
  REQUIRE(world.finished());
  CHECK_THAT(world.report(), Catch::Contains("bad-host") && Catch::Contains(words));
}

}  // namespace

TEST_CASE(
    "the agent of these tests ends its job with its ranks' exit code when it tells the truth") {
  World world;
  for (const auto& message : right_answers()) world.say(message);
  world.die();
  REQUIRE(world.finished());
  CHECK(world.exit_code() == 3);
  CHECK_THAT(world.report(), Catch::Contains("rank 0 on bad-host failed first: exit code 3"));
}

TEST_CASE("whatever a host answers, its job ends with a report") {
  const auto kinds = all_kinds();
  int tried = 0;
  for (const auto& message : kinds) {
    for (std::size_t stage = 1; stage <= right_answers().size(); ++stage) try_wrong(message, stage);
    for (int target = 0; for_each_change(message, target,
                                         [&](const Message& wrong) {
                                           ++tried;
                                           // Before the answer that has the host's facts, and while
                                           // ranks run.
                                           for (const std::size_t stage : {3, 6})
                                             try_wrong(wrong, stage);
                                         });
         ++target) {
    }
  }
  CHECK(tried > 300);
}

TEST_CASE("an answer that does not fit the question is refused, and the report names the host") {
  constexpr std::size_t kFacts = 3;
  constexpr std::size_t kRunning = 6;
  const auto facts = [](std::vector<int> ports, std::string address = "127.0.0.1",
                        std::string interface = "lo") {
    return protocol::Prepared{std::move(ports), std::move(address), std::move(interface)};
  };
  expect_refused(facts({}), kFacts, "with 0 ports, but was asked for 3");
  expect_refused(facts({4001}), kFacts, "with 1 ports");
  expect_refused(facts({4001, 4002}), kFacts, "with 2 ports");
  expect_refused(facts({4001, 4002, 4003, 4004}), kFacts, "with 4 ports");
  expect_refused(facts({4001, 4002, 4001}), kFacts, "with port 4001 twice");
  expect_refused(facts({4001, 4002, 70000}), kFacts, "not a port");
  expect_refused(facts({4001, 4002, 4003}, ""), kFacts, "not an address");
  expect_refused(facts({4001, 4002, 4003}, "bad-host"), kFacts, "not an address");
  expect_refused(facts({4001, 4002, 4003}, "127.0.0.1", "../../etc"), kFacts, "not an interface");
  expect_refused(protocol::Started{Rank{2}, 7}, kRunning, "not its own");
  expect_refused(protocol::Output{Rank{-1}, Stream::out, "x"}, kRunning, "not its own");
  expect_refused(protocol::Exited{{.rank = Rank{1 << 20}}}, kRunning, "not its own");
  expect_refused(protocol::Exited{{.rank = Rank{0}, .wait_status = 0x137f}}, kRunning,
                 "not the end of a process");
  expect_refused(protocol::Exited{{.rank = Rank{0}, .wait_status = 1 << 20}}, kRunning,
                 "not the end of a process");
  expect_refused(protocol::SpawnFailed{Rank{7}, {Errc::io, "x"}}, kRunning, "not its own");
  expect_refused(protocol::Finished{-1}, kRunning, "impossible number");
  expect_refused(protocol::Recorded{{.ranks = -4}}, kRunning, "impossible number");
  expect_refused(protocol::Carry{.host = 9, .frame = "\x0b"}, kRunning, "does not relay");
}
