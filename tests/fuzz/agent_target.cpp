// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <algorithm>
#include <cstdlib>

#include "launcher/protocol/protocol.hpp"

namespace horo::fuzz {

namespace {

using namespace launcher;  // NOLINT(google-build-using-namespace): the namespace under test
using namespace launcher::protocol;  // NOLINT(google-build-using-namespace): as above

/// The bytes of a decoded message must decode to the same message. They differ from the first bytes
/// only in text for people, which is cleaned.
std::string run_message(std::string_view bytes) {
  const auto message = decode(bytes);
  if (!message) return message.error().code == Errc::protocol ? "" : "the error is not protocol";
  if (describe(*message).empty()) return "a message has no description";
  std::string frame;
  if (!encode(*message, frame)) return "a decoded message cannot be encoded";
  const auto cleaned = std::string_view(frame).substr(4);
  const auto again = decode(cleaned);
  std::string second;
  if (!again || !encode(*again, second)) return "the bytes of a message are no message";
  return second == frame ? "" : "a decoded message encodes to other bytes";
}

/// The first byte is the size of the reads into which the stream is cut. There must never be more
/// messages than frames, and no message after an error.
std::string run_stream(std::string_view bytes) {
  if (bytes.empty()) return "";
  const auto cut = static_cast<std::size_t>(static_cast<unsigned char>(bytes.front())) + 1;
  bytes.remove_prefix(1);
  const auto frames_at_most = bytes.size() / kHeaderBytes;
  FrameSplitter reader;
  bool failed = false;
  std::size_t messages = 0;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(cut, bytes.size()))) {
    reader.feed(bytes.substr(0, cut));
    while (true) {
      const auto message = reader.next();
      if (message && *message) ++messages;
      if (failed && message) return "the reader returned a message after an error";
      if (!message) failed = true;
      if (!message || !*message) break;
    }
  }
  return messages > frames_at_most ? "more messages than frames" : "";
}

AgentSpec agent_spec() {
  AgentSpec spec;
  spec.host = "node1";
  spec.command = {"python3", "train.py"};
  spec.directory = "/srv/job";
  spec.environment = {{"PATH", "/bin"}, {"LANG", "C"}};
  spec.output_window = 262144;
  for (int i = 0; i < 2; ++i) {
    WorkerIdentity identity;
    identity.rank = Rank{i};
    identity.size = 2;
    identity.local_rank = LocalRank{i};
    identity.local_size = 2;
    identity.worker_addresses = {"node1:1", "node1:2"};
    spec.ranks.push_back(identity);
  }
  return spec;
}

AgentSpec elastic_spec() {
  auto spec = agent_spec();
  spec.elastic = true;
  spec.slots = 4;
  spec.ranks.pop_back();
  return spec;
}

RankExit rank_exit() {
  RankExit exit;
  exit.rank = Rank{1};
  exit.wait_status = 9;
  exit.attached = true;
  exit.undetached = true;
  return exit;
}

Viewed viewed() {
  return {.problem = "",
          .rows = {{.rank = 1, .pid = 7, .tensor = "t", .missing = {0}}},
          .gpus = {{.host = {}, .name = "n", .links = {{"GPU 1", 2}}, .ranks = {1}}},
          .gpu_problem = "p"};
}

std::vector<Message> messages() {
  return {
      Hello::ours(),
      Start{.spec = agent_spec()},
      Signal{.number = 10},
      Stop{.cause = {.rank = Rank{1}, .cause = LossCause::exited, .detail = 3}, .host = "node1"},
      Kill{},
      Dismiss{},
      Release{},
      Assigned{.epoch = Epoch{2}},
      Reach{.host = 7, .name = "n", .program = {"ssh", "n"}, .target = "n", .port = 22},
      Carry{.host = 7, .frame = "\x05"},
      Leave{.host = 7, .at_once = true},
      Reached{.host = 7, .address = "10.0.0.7"},
      Gone{.host = 7, .error = {Errc::not_found, "no such host"}},
      Step{.host = 7, .text = "looking up"},
      FeedStdin{.bytes = "input"},
      OutputTaken{.rank = Rank{1}, .bytes = 65536},
      CloseStdin{},
      Started{.rank = Rank{1}, .pid = 4711},
      SpawnFailed{.rank = Rank{1}, .error = {Errc::not_found, "no such program"}},
      Output{.rank = Rank{0}, .stream = Stream::err, .bytes = "a line\n"},
      Exited{.exit = rank_exit()},
      Finished{.survivors = 0},
      Failed{.error = {Errc::unavailable, "no descriptors"}},
      Recorded{.saved = {.ranks = 2, .directory = "/tmp/t", .problem = ""}},
      Look{},
      Fetch{.asker = 1, .offset = 65536},
      viewed(),
      Piece{.asker = 1, .offset = 0, .size = 6, .problem = "", .bytes = "pieces"},
      Roster{.job = "j", .agents = {{.host = "n", .ranks = {0, 1}}}},
      ControlGroupMade{.control_group = {.path = "", .reason = "no hierarchy"}},
      Noted{.text = "something has been replaced"},
  };
}

/// Only elastic jobs have them.
std::vector<Message> elastic_messages() {
  return {
      Start{.spec = elastic_spec()},
      Spawn{.workers = agent_spec().ranks},
      EndWorker{.worker = Rank{4}},
      PostNotice{.notice = {.sequence = 3, .flags = 2}},
      Close{},
      Called{.calls = {{.worker = 4, .attempt = 2, .generation = 1}}},
      Answered{.answers = {{.worker = 4, .attempt = 2, .answer = {.generation = 2, .size = 2}}}},
      EndMeeting{.generation = 2},
  };
}

/// Between the launcher and programs that look at a job or change it.
std::vector<Message> viewer_messages() {
  return {
      Resize{.kind = ResizeKind::shrink, .host = "n"},
      Resized{.accepted = false, .text = "no"},
      AskMembers{},
      Members{{.generation = 1, .state = "running", .hosts = {{.name = "n"}}}},
  };
}

std::vector<std::string> frames() {
  std::vector<std::string> out;
  auto all = messages();
  for (auto& message : elastic_messages()) all.push_back(std::move(message));
  for (auto& message : viewer_messages()) all.push_back(std::move(message));
  for (const auto& message : all) {
    out.emplace_back();
    if (!encode(message, out.back())) std::abort();
  }
  return out;
}

std::vector<std::string> payloads() {
  auto out = frames();
  for (auto& frame : out) frame.erase(0, 4);
  return out;
}

std::vector<std::string> streams() {
  auto out = frames();
  std::string all;
  for (auto& frame : out) {
    all += frame;
    frame.insert(0, 1, '\x03');
  }
  out.push_back('\x10' + all);
  return out;
}

}  // namespace

std::vector<Target> agent_targets() {
  return {
      {.name = "agent-message",
       .run = run_message,
       .seeds = payloads(),
       .words = {},
       .rounds = 50000},
      {.name = "agent-stream", .run = run_stream, .seeds = streams(), .words = {}, .rounds = 20000},
  };
}

}  // namespace horo::fuzz
