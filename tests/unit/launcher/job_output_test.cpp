// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/job_output.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;
using namespace std::chrono_literals;

namespace {

struct Channel {
  int read = -1;
  int write = -1;

  static Channel pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    return {ends[0], ends[1]};
  }

  static Channel socket() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return {ends[0], ends[1]};
  }

  /// The current content.
  std::string take() const {
    std::string text;
    std::array<char, 65536> block{};
    const int flags = fcntl(read, F_GETFL);
    fcntl(read, F_SETFL, flags | O_NONBLOCK);
    for (ssize_t n = 0; (n = ::read(read, block.data(), block.size())) > 0;) {
      text.append(block.data(), static_cast<std::size_t>(n));
    }
    return text;
  }
};

/// Runs the loop until `output` has written everything, reading `from` meanwhile.
std::string drain(Loop& loop, JobOutput& output, const Channel& from) {
  std::string text;
  bool done = false;
  output.when_drained([&] { done = true; });
  for (int turn = 0; turn < 10'000 && !done; ++turn) {
    text += from.take();
    const auto timer = loop.after(1ms, [&] { loop.stop(); });
    loop.run();
  }
  REQUIRE(done);
  return text + from.take();
}

std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct TemporaryDirectory {
  std::string path = "/tmp/horo_output_XXXXXX";

  TemporaryDirectory() { REQUIRE(mkdtemp(path.data()) != nullptr); }

  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("lines of several ranks stay complete, tagged and on their own stream") {
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  const auto err = Channel::pipe();
  JobOutput output(
      *loop,
      {.tag = TagFormat::parse("[{rank}] ").value(), .out_fd = out.write, .err_fd = err.write},
      {{LocalRank{0}, "a"}, {LocalRank{1}, "a"}}, std::nullopt);
  output.take(Rank{0}, Stream::out, "hel");
  output.take(Rank{1}, Stream::out, "one\ntwo\n");
  output.take(Rank{0}, Stream::out, "lo\nrest");
  output.take(Rank{1}, Stream::err, "oops\n");
  output.finish(Rank{0});
  CHECK(out.take() == "[1] one\n[1] two\n[0] hello\n[0] rest");
  CHECK(err.take() == "[1] oops\n");
  CHECK(output.last_lines(Rank{1}) == std::vector<std::string>{"one", "two", "oops"});
}

TEST_CASE("the launcher's own text begins a new row when both streams are one pipe") {
  auto loop = Loop::make().value();
  const auto both = Channel::pipe();
  JobOutput output(*loop,
                   {.tag = TagFormat::parse("[{rank}] ").value(),
                    .out_fd = both.write,
                    .err_fd = dup(both.write)},
                   {{LocalRank{0}, "a"}}, std::nullopt);
  output.take(Rank{0}, Stream::out, "no end");
  output.finish(Rank{0});
  output.say("horo: rank 0 failed\n");
  CHECK(both.take() == "[0] no end\nhoro: rank 0 failed\n");
}

TEST_CASE("bytes count as taken when a slow reader has them, and nothing is lost") {
  auto loop = Loop::make().value();
  const auto channel = GENERATE(0, 1) == 0 ? Channel::pipe() : Channel::socket();
  JobOutput output(*loop, {.out_fd = channel.write, .err_fd = channel.write}, {{LocalRank{0}, "a"}},
                   std::nullopt);
  std::size_t taken = 0;
  output.on_taken([&](Rank, std::size_t bytes) { taken += bytes; });
  std::string sent;
  const std::size_t window = output_window(1);
  for (int i = 0; sent.size() < taken + 4 * window; ++i) {
    REQUIRE(i < 100'000);
    const auto line = fmt::format("line {} {}\n", i, std::string(200, 'x'));
    output.take(Rank{0}, Stream::out, line);
    sent += line;
  }
  // Delivered bytes are reported in steps, and never more than were delivered.
  CHECK(taken <= sent.size() - 3 * window);
  const auto got = drain(*loop, output, channel);
  CHECK(got == sent);
  CHECK(taken <= sent.size());
  CHECK(sent.size() - taken <= window / 4);
  CHECK((fcntl(channel.write, F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("a reader that is gone is reported once and does not end the job by itself") {
  auto loop = Loop::make().value();
  const auto channel = Channel::pipe();
  close(channel.read);
  signal(SIGPIPE, SIG_IGN);
  JobOutput output(*loop, {.out_fd = channel.write, .err_fd = channel.write}, {{LocalRank{0}, "a"}},
                   std::nullopt);
  int closed = 0;
  output.on_closed([&] { ++closed; });
  for (int i = 0; i < 3; ++i) output.take(Rank{0}, Stream::out, "text\n");
  bool done = false;
  output.when_drained([&] {
    done = true;
    loop->stop();
  });
  loop->run();
  CHECK(done);
  CHECK(closed == 1);
}

TEST_CASE("plain output goes to the files of each rank and to the screen") {
  TemporaryDirectory directory;
  const auto target = directory.path + "/deep/er";
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  auto files = LogFiles::create(target, 11);
  REQUIRE(files);
  std::vector<RankLabel> ranks(11);
  JobOutput output(
      *loop,
      {.tag = TagFormat::parse("[{rank}] ").value(), .out_fd = out.write, .err_fd = out.write},
      ranks, std::move(files).value());
  output.take(Rank{3}, Stream::out, "to out\n");
  output.take(Rank{10}, Stream::err, "to err, no end");
  output.finish(Rank{10});
  CHECK(slurp(target + "/rank.03/stdout") == "to out\n");
  CHECK(slurp(target + "/rank.10/stderr") == "to err, no end");
  CHECK(std::filesystem::exists(target + "/rank.00/stderr"));
  CHECK(out.take() == "[3] to out\n[10] to err, no end");
}

TEST_CASE("a rank that is added later has a tag and files of its own") {
  TemporaryDirectory directory;
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  JobOutput output(*loop,
                   {.tag = TagFormat::parse("[{rank} {host}] ").value(),
                    .out_fd = out.write,
                    .err_fd = out.write},
                   {}, LogFiles::create(directory.path, 2).value());
  for (const auto* host : {"a", "b", "c"}) output.add_rank({LocalRank{0}, host});
  output.take(Rank{1}, Stream::out, "first\n");
  output.take(Rank{2}, Stream::out, "later\n");
  output.take(Rank{3}, Stream::out, "unknown\n");
  CHECK(out.take() == "[1 b] first\n[2 c] later\n");
  CHECK(slurp(directory.path + "/rank.1/stdout") == "first\n");
  CHECK(slurp(directory.path + "/rank.2/stdout") == "later\n");
  CHECK(output.last_lines(Rank{2}) == std::vector<std::string>{"later"});
}

TEST_CASE("a thousand ranks that come and go leave no descriptors, and late bytes reach the file") {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  TemporaryDirectory directory;
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  JobOutput output(*loop, {.out_fd = out.write, .err_fd = out.write}, {},
                   LogFiles::create(directory.path, 0).value());
  const auto before = descriptors();
  for (int rank = 0; rank < 1000; ++rank) {
    output.add_rank({LocalRank{0}, "a"});
    output.take(Rank{rank}, Stream::out, fmt::format("text of {}\n", rank));
    out.take();
    output.finish(Rank{rank});
  }
  CHECK(descriptors() == before);
  output.take(Rank{7}, Stream::out, "late\n");
  CHECK(slurp(directory.path + "/rank.7/stdout") == "text of 7\nlate\n");
  CHECK(slurp(directory.path + "/rank.999/stdout") == "text of 999\n");
}

TEST_CASE("timestamps stand in front of the tag, on the screen and in the files") {
  TemporaryDirectory directory;
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  const bool horovod = GENERATE(false, true);
  JobOutput output(*loop,
                   {.tag = TagFormat::parse("[{rank}]<{stream}>:").value(),
                    .timestamps = true,
                    .time_style = horovod ? TimeStyle::asctime : TimeStyle::iso,
                    .tagged_files = horovod,
                    .out_fd = out.write,
                    .err_fd = out.write},
                   {{LocalRank{0}, "a"}}, LogFiles::create(directory.path, 1).value());
  output.take(Rank{0}, Stream::out, "text\n");
  const auto screen = out.take();
  const auto file = slurp(directory.path + "/rank.0/stdout");
  if (horovod) {
    const std::regex form(R"(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\[0\]<stdout>:text\n)");
    CHECK(std::regex_match(screen, form));
    CHECK(std::regex_match(file, form));
  } else {
    CHECK(std::regex_match(
        screen, std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \[0\]<stdout>:text\n)")));
    CHECK(std::regex_match(file, std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} text\n)")));
  }
}

TEST_CASE("the error for an output directory that cannot be created names it") {
  const auto logs = LogFiles::create("/dev/null/logs", 2);
  REQUIRE(!logs);
  CHECK_THAT(logs.error().message, Catch::Contains("'/dev/null/logs'"));
}

TEST_CASE("a full disk is reported once, and every write is tried again") {
  TemporaryDirectory directory;
  auto logs = LogFiles::create(directory.path, 1).value();
  int told = 0;
  logs.on_error([&](const Error& error) {
    ++told;
    CHECK_THAT(error.message, Catch::Contains("rank.0/stdout"));
  });

  struct rlimit limit {};

  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  signal(SIGXFSZ, SIG_IGN);

  const struct rlimit small {
    10, limit.rlim_max
  };

  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  for (int i = 0; i < 5; ++i) logs.write(Rank{0}, Stream::out, "12345678");
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK(told == 1);
  logs.write(Rank{0}, Stream::out, "\nmore");
  CHECK(slurp(directory.path + "/rank.0/stdout") == "1234567812\nmore");
}

TEST_CASE("ranks whose files cannot stay open still get their output") {
  TemporaryDirectory directory;

  struct rlimit limit {};

  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);

  const struct rlimit small {
    64, limit.rlim_max
  };

  REQUIRE(setrlimit(RLIMIT_NOFILE, &small) == 0);
  {
    auto logs = LogFiles::create(directory.path, 100);
    REQUIRE(logs);
    for (int i = 0; i < 2; ++i) logs->write(Rank{99}, Stream::err, "text\n");
  }
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(slurp(directory.path + "/rank.99/stderr") == "text\ntext\n");
}

TEST_CASE("rank numbers in folder names are padded to the width of the last one") {
  CHECK(rank_digits(1) == 1);
  CHECK(rank_digits(10) == 1);
  CHECK(rank_digits(11) == 2);
  CHECK(rank_digits(100) == 2);
  CHECK(rank_digits(101) == 3);
}

TEST_CASE("equal lines of several ranks are joined, and lines of a rank stay in order") {
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  JobOutput output(*loop,
                   {.tag = TagFormat::parse("[{rank}] ").value(),
                    .fold = true,
                    .out_fd = out.write,
                    .err_fd = out.write},
                   std::vector<RankLabel>(4), std::nullopt);
  for (int rank = 3; rank >= 0; --rank) output.take(Rank{rank}, Stream::out, "same\n");
  CHECK(out.take() == "[0-3] same\n");
  for (const int rank : {0, 2}) output.take(Rank{rank}, Stream::out, "some\nmine\n");
  CHECK(out.take().empty());
  output.say("horo: words\n");
  CHECK(out.take() == "[0,2] some\n[0,2] mine\nhoro: words\n");
  output.take(Rank{1}, Stream::err, "last");
  output.finish(Rank{1});
  CHECK(drain(*loop, output, out) == "[1] last");
}

TEST_CASE("a joined row is written by itself when its time is over") {
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  JobOutput output(*loop, {.fold = true, .out_fd = out.write, .err_fd = out.write},
                   std::vector<RankLabel>(4), std::nullopt);
  output.take(Rank{1}, Stream::out, "alone\n");
  std::string text;
  for (int turn = 0; turn < 10'000 && text.empty(); ++turn) {
    const auto timer = loop->after(1ms, [&] { loop->stop(); });
    loop->run();
    text = out.take();
  }
  CHECK(text == "alone\n");
}

TEST_CASE("ranks that the screen does not show still have files and last lines") {
  TemporaryDirectory directory;
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  JobOutput output(*loop, {.shown = {false, true}, .out_fd = out.write, .err_fd = out.write},
                   std::vector<RankLabel>(2), LogFiles::create(directory.path, 2).value());
  std::size_t taken = 0;
  output.on_taken([&](Rank, std::size_t bytes) { taken += bytes; });
  const std::string line(output_window(2) - 1, 'x');
  output.take(Rank{0}, Stream::out, line + "\n");
  output.take(Rank{1}, Stream::out, "shown\n");
  CHECK(out.take() == "shown\n");
  CHECK(slurp(directory.path + "/rank.0/stdout") == line + "\n");
  CHECK(output.last_lines(Rank{0}).size() == 1);
  CHECK(taken == output_window(2));
}

TEST_CASE("text that replaces a redrawn line erases the rest of it") {
  LineMixer mixer;
  mixer.erase_redrawn();
  std::string text;
  mixer.add(text, 0, "[0] ", {.body = "long bar", .end = "\r"});
  mixer.add(text, 2, "[1] ", {.body = "bar", .end = "\r"});
  mixer.end_row(text);
  CHECK(text == "[0] long bar\r\x1b[K[1] bar\r\x1b[K");
}

TEST_CASE("an incomplete line of a single rank is shown soon and continues in its row") {
  auto loop = Loop::make().value();
  const auto out = Channel::pipe();
  JobOutput output(
      *loop,
      {.tag = TagFormat::parse("[{rank}] ").value(), .out_fd = out.write, .err_fd = out.write},
      std::vector<RankLabel>(1), std::nullopt);
  output.take(Rank{0}, Stream::out, "name? ");
  std::string text;
  for (int turn = 0; turn < 10'000 && text.empty(); ++turn) {
    const auto timer = loop->after(1ms, [&] { loop->stop(); });
    loop->run();
    text = out.take();
  }
  output.take(Rank{0}, Stream::out, "you\nnext\n");
  CHECK(text + out.take() == "[0] name? you\n[0] next\n");
}
