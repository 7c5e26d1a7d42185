// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/protocol.hpp"

#include <limits>
#include <random>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace horo::launcher::protocol;

namespace {

AgentSpec sample_spec() {
  AgentSpec spec;
  spec.host = "node1";
  spec.command = {"python3", "train.py", "--lr=0.1", ""};
  spec.directory = "/srv/train";
  spec.common = std::make_shared<const Environment>(Environment{{"PATH", "/usr/bin"}});
  spec.environment = {{"EMPTY", ""}};
  for (int i = 0; i < 3; ++i) {
    WorkerIdentity identity;
    identity.rank = Rank{4 + i};
    identity.size = 8;
    identity.local_rank = LocalRank{i};
    identity.local_size = 3;
    identity.hostname = "node1";
    identity.rendezvous = "10.0.0.1:1234";
    identity.worker_addresses = {"a:1", "b:2"};
    spec.ranks.push_back(identity);
  }
  spec.own_variables = {"HOME", "USER"};
  spec.stdin_policy = StdinPolicy::rank0;
  spec.bind_to = BindTo::numa;
  spec.gpus = GpuMode::automatic;
  spec.failure_grace = std::chrono::seconds(2);
  spec.grace = std::chrono::milliseconds(1500);
  spec.epoch = Epoch{7};
  for (std::size_t i = 0; i < spec.secret.size(); ++i)
    spec.secret[i] = static_cast<std::uint8_t>(i * 7);
  spec.timeline_directory = "/srv/logs";
  spec.output_window = 262144;
  return spec;
}

/// Two of an elastic job.
std::vector<WorkerIdentity> sample_workers() {
  std::vector<WorkerIdentity> workers;
  for (const int number : {17, 12}) {
    WorkerIdentity identity;
    identity.rank = Rank{3};
    identity.size = 4;
    identity.worker = number;
    identity.board_slot = number - 10;
    identity.joins = number == 12;
    identity.local_rank = LocalRank{1};
    identity.local_size = 2;
    identity.job_id = "41f0";
    identity.rendezvous = "10.0.0.1:1234";
    workers.push_back(identity);
  }
  return workers;
}

timeline::LiveRow sample_row() {
  return {.rank = 4,
          .pid = 4711,
          .state = timeline::LiveState::waits,
          .tensor = "layer4.2.conv3.weight",
          .tensors = 13,
          .for_ns = 2'100'000'000,
          .missing = {5, 7},
          .operations_per_s = 120.5,
          .bytes_per_s = 1.2e9,
          .waiting = 0.71,
          .lag_ns = 1,
          .stalls = 2,
          .lost = 3};
}

timeline::LiveGpu sample_gpu() {
  return {.host = {},
          .index = 3,
          .name = "H100",
          .uuid = "GPU-6fd0",
          .busy = 42,
          .used = 20,
          .memory = 80,
          .celsius = 61,
          .slices = 2,
          .links = {{"GPU 1", 2}},
          .ranks = {4, 5},
          .problem = "it is lost"};
}

Viewed sample_view() {
  return {.problem = "",
          .rows = {sample_row(), {.rank = 1}},
          .gpus = {sample_gpu()},
          .gpu_problem = "the driver has not answered for 3.0 s"};
}

std::vector<Message> orders_and_reports() {
  return {Hello::ours(),
          Start{sample_spec()},
          Signal{10},
          Stop{{.rank = Rank{3}, .cause = LossCause::signalled, .detail = 9}, "node2"},
          Kill{},
          FeedStdin{"some input"},
          CloseStdin{},
          OutputTaken{Rank{3}, 70000},
          Started{Rank{5}, 4711},
          SpawnFailed{Rank{6}, {Errc::not_found, "program 'x' not found"}},
          Output{Rank{5}, Stream::err, "a line\nand a half"},
          Exited{{.rank = Rank{5},
                  .wait_status = 139,
                  .core_dumped = true,
                  .oom_killed = false,
                  .attached = true,
                  .undetached = true,
                  .heard = Rank{2},
                  .lived = std::chrono::nanoseconds(123456789012),
                  .gpu_faults = "GPU 1 (GPU-a) reported Xid 79 (it has fallen off the bus)"}},
          StdinRoom{},
          Finished{0},
          Failed{{Errc::unavailable, "no descriptors"}},
          ControlGroupMade{{.path = "/sys/fs/cgroup/horo-1", .reason = ""}},
          Prepare{3, "10.0.0.254", std::chrono::seconds(5), true, Epoch{2}},
          Heartbeat{},
          Prepared{{10001, 10002, 10003}, "10.0.0.1", "eth0"},
          Reach{.host = 7,
                .name = "node7",
                .program = {"ssh", "node7"},
                .target = "10.0.0.7",
                .known_as = "node7",
                .port = 2222,
                .user = "somebody",
                .identities = {"~/.ssh/id_ed25519"},
                .known_hosts = {"~/.ssh/known_hosts"},
                .global_known_hosts = "/etc/ssh/ssh_known_hosts",
                .accept_unknown = true,
                .command_line = "exec horo-agent",
                .heartbeat = std::chrono::seconds(5),
                .connect_timeout = std::chrono::seconds(10)},
          Carry{7, "\x05"},
          Leave{7, true},
          Reached{7, "10.0.0.7"},
          Gone{7, {Errc::permission_denied, "it refuses user 'somebody'"}},
          Step{7, "connecting to 10.0.0.7:22"},
          Recorded{{.ranks = 3, .directory = "/tmp/horo-timeline-0/job", .problem = ""}},
          EndAsked{15},
          Look{},
          Fetch{.asker = 3, .offset = 65536},
          sample_view(),
          Piece{.asker = 3, .offset = 65536, .size = 70000, .problem = "", .bytes = "a part"},
          Roster{.job = "41f0", .elastic = true, .agents = {{"node1", {0, 1}}, {"node2", {2}}}},
          Dismiss{},
          Release{},
          Assigned{Epoch{2}},
          Noted{"something has been replaced"}};
}

elastic::CallAnswer sample_answer() {
  return {.worker = 17,
          .attempt = 2,
          .answer = {.generation = 6, .rank = 1, .size = 3, .survivors = 2, .notice = 4}};
}

std::vector<Message> one_of_each() {
  auto all = orders_and_reports();
  all.emplace_back(Spawn{sample_workers()});
  all.emplace_back(EndWorker{Rank{17}});
  all.emplace_back(PostNotice{{.sequence = 5, .flags = 3}});
  all.emplace_back(Close{});
  all.emplace_back(Resize{.kind = ResizeKind::grow, .host = "node3", .slots = 4, .dry_run = true});
  all.emplace_back(Resized{.accepted = true, .text = "host node3 is used with 4 slots"});
  all.emplace_back(AskMembers{});
  all.emplace_back(Members{{.generation = 3,
                            .ranks = 3,
                            .min_np = 2,
                            .max_np = 4,
                            .spares = 1,
                            .wanted_spares = 1,
                            .starting = 2,
                            .state = "running",
                            .hosts = {{.name = "node1",
                                       .slots = 2,
                                       .ranks = 1,
                                       .processes = 2,
                                       .use = timeline::LiveHostUse::put_aside,
                                       .why = "worker 1 on host node1: exit code 3",
                                       .for_ns = 1000}}}});
  all.emplace_back(Called{{{.worker = 17, .attempt = 2, .generation = 5}, {.worker = 12}}});
  all.emplace_back(Answered{
      {sample_answer(),
       {.worker = 12,
        .answer = {.kind = elastic::MembershipKind::refused, .reason = "the job is ending"}}}});
  all.emplace_back(EndMeeting{5});
  return all;
}

std::string frame_of(const Message& message) {
  std::string frame;
  REQUIRE(encode(message, frame));
  return frame;
}

std::string payload_of(const Message& message) {
  return frame_of(message).substr(4);
}

}  // namespace

TEST_CASE("every message is the same after encoding and decoding") {
  const auto messages = one_of_each();
  REQUIRE(messages.size() == std::variant_size_v<Message>);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    REQUIRE(messages[i].index() == i);
    const auto payload = payload_of(messages[i]);
    const auto decoded = decode(payload);
    INFO("message " << i);
    REQUIRE(decoded);
    CHECK(decoded->index() == i);
    CHECK(payload_of(*decoded) == payload);  // Equal bytes mean equal messages.
  }
}

TEST_CASE("a frame's type is known before it is decoded, and a frame can be relayed unchanged") {
  CHECK(is<Heartbeat>(payload_of(Heartbeat{})));
  CHECK(is<Hello>(payload_of(Hello::ours())));
  CHECK_FALSE(is<Prepare>(payload_of(Heartbeat{})));
  CHECK_FALSE(is<Heartbeat>(""));
  std::string stream;
  append_frame(payload_of(Kill{}), stream);
  CHECK(stream == frame_of(Kill{}));
  CHECK_FALSE(decode(payload_of(Carry{7, ""})));
  CHECK_FALSE(decode(payload_of(Reach{.port = 65536})));
}

TEST_CASE("a decoded start has everything that the ranks need") {
  const auto payload = payload_of(Start{sample_spec()});
  const auto decoded = decode(payload);
  REQUIRE(decoded);
  const auto& spec = std::get<Start>(*decoded).spec;
  const auto sent = sample_spec();
  CHECK(spec.command == sent.command);
  CHECK(spec.environment == Environment{{"PATH", "/usr/bin"}, {"EMPTY", ""}});
  CHECK(spec.secret == sent.secret);
  CHECK(spec.own_variables == sent.own_variables);
  CHECK(spec.grace == sent.grace);
  CHECK(spec.timeline_directory == sent.timeline_directory);
  CHECK(spec.output_window == sent.output_window);
  CHECK(spec.epoch == Epoch{7});
  REQUIRE(spec.ranks.size() == 3);
  CHECK(spec.ranks[2].rank == Rank{6});
  CHECK(spec.ranks[2].worker_addresses == sent.ranks[2].worker_addresses);
}

TEST_CASE("a decoded start of an elastic job has its slots, and may be without workers") {
  auto sent = sample_spec();
  sent.elastic = true;
  sent.slots = 6;
  sent.ranks = sample_workers();
  auto payload = payload_of(Start{sent});
  auto decoded = decode(payload);
  REQUIRE(decoded);
  const auto& spec = std::get<Start>(*decoded).spec;
  CHECK(spec.elastic);
  CHECK(spec.slots == 6);
  REQUIRE(spec.ranks.size() == 2);
  CHECK(spec.ranks[0].worker == 17);
  sent.ranks.clear();
  CHECK(decode(payload_of(Start{sent})));
  sent.elastic = false;
  CHECK_FALSE(decode(payload_of(Start{sent})));
}

TEST_CASE("a decoded spawn has the identity of each worker") {
  const auto payload = payload_of(Spawn{sample_workers()});
  const auto decoded = decode(payload);
  REQUIRE(decoded);
  const auto& workers = std::get<Spawn>(*decoded).workers;
  REQUIRE(workers.size() == 2);
  CHECK(workers[1].worker == 12);
  CHECK(workers[1].rank == Rank{3});
  CHECK(workers[1].board_slot == 2);
  CHECK(workers[1].joins);
  CHECK_FALSE(workers[0].joins);
  CHECK(workers[1].local_size == 2);
  CHECK(workers[1].job_id == "41f0");
  CHECK(workers[1].rendezvous == "10.0.0.1:1234");
}

TEST_CASE("invalid orders of an elastic job are refused") {
  for (const std::uint32_t slots : {0U, kMaxLocalRanks + 1U}) {
    auto spec = sample_spec();
    spec.elastic = true;
    spec.slots = slots;
    CHECK_FALSE(decode(payload_of(Start{spec})));
  }
  CHECK_FALSE(decode(payload_of(Spawn{})));
  for (const int number : {-1, kMostRanks}) {
    auto workers = sample_workers();
    workers[1].rank = Rank{number};
    CHECK_FALSE(decode(payload_of(Spawn{workers})));
  }
  for (const int number : {-2, kMostRanks}) {
    auto workers = sample_workers();
    workers[0].worker = number;
    CHECK_FALSE(decode(payload_of(Spawn{workers})));
  }
  for (const int slot : {-2, kMaxLocalRanks}) {
    auto workers = sample_workers();
    workers[0].board_slot = slot;
    CHECK_FALSE(decode(payload_of(Spawn{workers})));
  }
  for (const int local : {-1, kMaxLocalRanks}) {
    auto workers = sample_workers();
    workers[0].local_rank = LocalRank{local};
    CHECK_FALSE(decode(payload_of(Spawn{workers})));
  }
  auto workers = sample_workers();
  workers[0].local_size = kMaxLocalRanks + 1;
  CHECK_FALSE(decode(payload_of(Spawn{workers})));
  auto fixed = sample_spec();
  fixed.ranks[1].worker = 5;
  CHECK_FALSE(decode(payload_of(Start{fixed})));
  const std::vector<WorkerIdentity> many(kMaxLocalRanks + 1);
  CHECK_FALSE(decode(payload_of(Spawn{many})));
  CHECK_FALSE(decode(payload_of(PostNotice{{.sequence = 0, .flags = 1}})));
  CHECK_FALSE(decode(payload_of(PostNotice{{.sequence = std::uint64_t{1} << 56U, .flags = 1}})));
  CHECK_FALSE(decode(payload_of(PostNotice{{.sequence = 1, .flags = 4}})));
}

TEST_CASE("calls and answers of workers that cannot be are refused") {
  CHECK_FALSE(decode(payload_of(Called{})));
  CHECK_FALSE(decode(payload_of(Called{{{.worker = 1, .attempt = 0}}})));
  CHECK_FALSE(decode(payload_of(Called{{{.worker = elastic::kMostWorker + 1}}})));
  CHECK_FALSE(decode(
      payload_of(Called{std::vector<elastic::MembershipCall>(std::size_t{kMaxLocalRanks} + 1)})));
  CHECK_FALSE(decode(payload_of(Answered{})));
  auto answer = sample_answer();
  answer.answer.rank = 3;
  CHECK_FALSE(decode(payload_of(Answered{{answer}})));
  CHECK_FALSE(decode(payload_of(EndMeeting{0})));
  CHECK_FALSE(decode(payload_of(EndMeeting{elastic::kMostGeneration + 1})));
}

TEST_CASE("the bytes are those of docs/design/agent-protocol.md") {
  CHECK(frame_of(Started{Rank{5}, 0x01020304}) ==
        std::string("\x09\0\0\0\x40\x05\0\0\0\x04\x03\x02\x01", 13));
  CHECK(frame_of(Output{Rank{1}, Stream::out, "hi"}) ==
        std::string("\x08\0\0\0\x42\x01\0\0\0\x01hi", 12));
  CHECK(frame_of(Kill{}) == std::string("\x01\0\0\0\x05", 5));
  CHECK(frame_of(EndWorker{Rank{9}}) == std::string("\x05\0\0\0\x14\x09\0\0\0", 9));
  CHECK(frame_of(PostNotice{{.sequence = 7, .flags = 2}}) ==
        std::string("\x0d\0\0\0\x15\x07\0\0\0\0\0\0\0\x02\0\0\0", 17));
  CHECK(frame_of(Close{}) == std::string("\x01\0\0\0\x16", 5));
  CHECK(frame_of(Called{{{.worker = 3, .attempt = 2, .generation = 5}}}) ==
        std::string("\x15\0\0\0\x53\x01\0\0\0\x03\0\0\0\x02\0\0\0\x05\0\0\0\0\0\0\0", 25));
}

TEST_CASE("a reader cuts frames out of pieces of any size") {
  std::string stream;
  for (const auto& message : one_of_each()) REQUIRE(encode(message, stream));
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{3}, std::size_t{100}, stream.size()}) {
    FrameSplitter reader;
    std::size_t seen = 0;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      for (;;) {
        auto message = reader.next();
        REQUIRE(message);
        if (!message->has_value()) break;
        CHECK((*message)->index() == seen);
        ++seen;
      }
    }
    CHECK(seen == std::variant_size_v<Message>);
  }
}

TEST_CASE("a message is described with its fields, and without secrets and values of variables") {
  CHECK(describe(Signal{10}) == "signal number=10");
  const auto text = describe(Start{sample_spec()});
  CHECK_THAT(text, Catch::Contains("start host='node1' command=['python3', 'train.py'"));
  CHECK_THAT(text, Catch::Contains("environment=(hidden)") && Catch::Contains("secret=(hidden)"));
  CHECK_THAT(text, !Catch::Contains("/usr/bin"));
  for (const auto& message : one_of_each()) CHECK_FALSE(describe(message).empty());
}

TEST_CASE("a refused message names the message and the field") {
  CHECK(decode(payload_of(Signal{65})).error().message ==
        "a message is invalid: signal: has a number that is not a signal");
  CHECK(decode(payload_of(Started{}).substr(0, 7)).error().message ==
        "a message is invalid: started: pid: ends too early");
}

TEST_CASE("a frame that is cut short, or goes on too long, is refused") {
  for (const auto& message : one_of_each()) {
    const auto payload = payload_of(message);
    const bool open_ended =
        std::holds_alternative<Output>(message) || std::holds_alternative<FeedStdin>(message) ||
        std::holds_alternative<Carry>(message) || std::holds_alternative<Piece>(message);
    if (open_ended) continue;
    for (std::size_t size = 0; size < payload.size(); ++size)
      CHECK_FALSE(decode(payload.substr(0, size)));
    CHECK_FALSE(decode(payload + "x"));
  }
}

TEST_CASE("sizes, types, choices and counts out of their range are refused") {
  const auto refused = [](std::string_view bytes) {
    FrameSplitter reader;
    reader.feed(bytes);
    const auto message = reader.next();
    return !message && message.error().code == Errc::protocol;
  };
  CHECK(refused(std::string_view("\0\0\0\0\x05", 5)));
  CHECK(refused("SSH-2.0-OpenSSH"));  // A size of 1.3 GB.
  CHECK_FALSE(decode("\x33"));
  CHECK_FALSE(decode(""));
  auto exited = payload_of(Exited{});
  exited[9] = 2;  // The position of a flag.
  CHECK_FALSE(decode(exited));
  CHECK_FALSE(decode(payload_of(Exited{{.attached = false, .undetached = true}})));
  CHECK_FALSE(decode(payload_of(Exited{{.rank = Rank{1}, .heard = Rank{1}}})));
  CHECK_FALSE(decode(payload_of(Exited{{.heard = Rank{-2}}})));
  auto output = payload_of(Output{Rank{0}, Stream::err, "x"});
  output[5] = 3;
  CHECK_FALSE(decode(output));
  CHECK_FALSE(decode(payload_of(Signal{65})));
  CHECK_FALSE(decode(payload_of(Signal{0})));
  CHECK_FALSE(decode(payload_of(Output{Rank{0}, Stream::out, std::string(kMaxChunk + 1, 'x')})));
  for (const int rank : {-2, 0xffffff, 0x7fffffff}) {
    CHECK_FALSE(decode(payload_of(Stop{.cause = {.rank = Rank{rank}}, .host = "h"})));
  }
  auto spec = sample_spec();
  spec.ranks[1].rank = Rank{8};
  CHECK_FALSE(decode(payload_of(Start{spec})));
  spec = sample_spec();
  spec.command.clear();
  CHECK_FALSE(decode(payload_of(Start{spec})));
  spec = sample_spec();
  spec.environment[0].second = std::string("a\0b", 3);
  CHECK_FALSE(decode(payload_of(Start{spec})));
}

TEST_CASE("a list cannot claim more entries than its bytes could hold") {
  auto payload = payload_of(Start{sample_spec()});
  const auto count_at = 1 + 4 + 5;  // Type, host's size, host; then the command's count.
  for (int i = 0; i < 4; ++i) payload[static_cast<std::size_t>(count_at + i)] = '\xff';
  const auto decoded = decode(payload);
  REQUIRE_FALSE(decoded);
  CHECK_THAT(decoded.error().message, Catch::Contains("4294967295 entries"));
}

TEST_CASE("a decoded row of a rank has all its fields, and its bytes are few") {
  const auto payload = payload_of(Viewed{.problem = {}, .rows = {sample_row()}});
  const auto decoded = decode(payload);
  REQUIRE(decoded);
  REQUIRE(std::get<Viewed>(*decoded).rows.size() == 1);
  const auto& row = std::get<Viewed>(*decoded).rows.front();
  CHECK(row.rank == 4);
  CHECK(row.pid == 4711);
  CHECK(row.state == timeline::LiveState::waits);
  CHECK(row.tensor == "layer4.2.conv3.weight");
  CHECK(row.tensors == 13);
  CHECK(row.missing == std::vector<int>{5, 7});
  CHECK(row.operations_per_s == 120.5);
  CHECK(row.waiting == 0.71);
  CHECK(row.stalls == 2);
  CHECK(row.lost == 3);
  auto longest = sample_row();
  longest.tensor.assign(kMostTensorText, 'x');
  longest.missing.assign(kMostMissing, 9);
  CHECK(payload_of(Viewed{.problem = {}, .rows = std::vector(100, longest)}).size() < 100 * 200);
}

TEST_CASE("invalid rows, pieces and figures are refused") {
  const auto refused = [](const timeline::LiveRow& row) {
    return !decode(payload_of(Viewed{.problem = {}, .rows = {row}}));
  };
  CHECK_FALSE(refused(sample_row()));
  for (const double value : {-1.0, -0.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    auto row = sample_row();
    row.waiting = value;
    CHECK(refused(row));
  }
  auto row = sample_row();
  row.for_ns = -1;
  CHECK(refused(row));
  row = sample_row();
  row.rank = -1;
  CHECK(refused(row));
  row = sample_row();
  row.tensor.assign(kMostTensorText + 1, 'x');
  CHECK(refused(row));
  row = sample_row();
  row.missing.assign(kMostMissing + 1, 1);
  CHECK(refused(row));
  const std::vector<timeline::LiveRow> many(kMaxLocalRanks + 1);
  CHECK_FALSE(decode(payload_of(Viewed{.problem = {}, .rows = many})));
  const std::string much(kPieceBytes + 1, 'x');
  CHECK_FALSE(decode(payload_of(Piece{.problem = {}, .bytes = much})));
}

TEST_CASE("a decoded GPU has all its fields, and one with values out of range is refused") {
  const auto decoded =
      decode(payload_of(Viewed{.problem = {}, .rows = {}, .gpus = {sample_gpu()}}));
  REQUIRE(decoded);
  REQUIRE(std::get<Viewed>(*decoded).gpus.size() == 1);
  const auto& gpu = std::get<Viewed>(*decoded).gpus.front();
  CHECK(gpu.index == 3);
  CHECK(gpu.name == "H100");
  CHECK(gpu.uuid == "GPU-6fd0");
  CHECK(gpu.busy == 42);
  CHECK(gpu.used == 20);
  CHECK(gpu.memory == 80);
  CHECK(gpu.celsius == 61);
  CHECK(gpu.slices == 2);
  REQUIRE(gpu.links.size() == 1);
  CHECK(gpu.links[0].peer == "GPU 1");
  CHECK(gpu.links[0].links == 2);
  CHECK(gpu.ranks == std::vector<int>{4, 5});
  CHECK(gpu.problem == "it is lost");
  const auto refused = [](const auto& change) {
    Viewed view{.problem = {}, .rows = {}, .gpus = {sample_gpu()}};
    change(view);
    return !decode(payload_of(view));
  };
  CHECK(refused([](Viewed& view) { view.gpus[0].index = -1; }));
  CHECK(refused([](Viewed& view) { view.gpus[0].busy = -2; }));
  CHECK(refused([](Viewed& view) { view.gpus[0].ranks = {-1}; }));
  CHECK(refused([](Viewed& view) { view.gpus[0].name.assign(kMostGpuText + 1, 'x'); }));
  CHECK(refused([](Viewed& view) { view.gpus[0].links.resize(kMostGpuLinks + 1); }));
  CHECK(refused([](Viewed& view) { view.gpus.resize(kMostGpus + 1, sample_gpu()); }));
}

TEST_CASE("a randomly damaged message is refused or is another valid message") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto messages = one_of_each();
  std::size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    auto payload = payload_of(messages[random() % messages.size()]);
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      const auto at = random() % payload.size();
      switch (random() % 3) {
        case 0:
          payload[at] = static_cast<char>(random());
          break;
        case 1:
          payload.erase(at, random() % 5);
          break;
        default:
          payload.insert(at, random() % 5, static_cast<char>(random()));
          break;
      }
      if (payload.empty()) payload.push_back('\0');
    }
    const auto decoded = decode(payload);
    if (!decoded) {
      ++refused;
      CHECK(decoded.error().code == Errc::protocol);
    } else {
      // Text for people is cleaned once.
      const auto cleaned = payload_of(*decoded);
      const auto again = decode(cleaned);
      REQUIRE(again);
      CHECK(payload_of(*again) == cleaned);
    }
  }
  CHECK(refused > 0);
}
