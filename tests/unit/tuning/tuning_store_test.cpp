// SPDX-License-Identifier: Apache-2.0
// The file of results: what comes back, damaged and foreign files, two writers.
#include "runtime/tuning/memory/tuning_store.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"

using namespace horo::runtime::tuning;  // NOLINT(google-build-using-namespace): a test of it
using horo::Errc;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "horo-store-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }

  ~Folder() { std::filesystem::remove_all(path); }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// Removes the files whose names contain `part`, and returns how many these were.
  std::size_t remove(const std::string& part) const {
    std::vector<std::filesystem::path> found;
    for (const auto& one : std::filesystem::directory_iterator(path)) {
      if (one.path().filename().string().find(part) != std::string::npos)
        found.push_back(one.path());
    }
    for (const auto& one : found) std::filesystem::remove(one);
    return found.size();
  }

  std::string path;
};

StoredResult result_of(const std::string& topology, double gain = 0.125) {
  return {.key = {.topology = topology, .tensors = "52 tensors, 3.1 MB, 1f2e"},
          .tuning = {.fusion_threshold = 4 << 20,
                     .cycle_ns = 1'500'000,
                     .wake_delay_ns = 70'000,
                     .small_message = 1 << 20},
          .beats_default = true,
          .gain = gain,
          .gain_error = 0.01,
          .default_score = 1.25e9,
          .samples = 28,
          .time = 1'700'000'000};
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a stored result is found by its key, and a later one replaces it") {
  const Folder folder;
  TuningStore store(folder.path + "/deep/horo");
  CHECK(store.list()->empty());
  REQUIRE(store.remember(result_of("2 ranks")));
  REQUIRE(store.remember(result_of("4 ranks")));
  REQUIRE(store.remember(result_of("2 ranks", 0.5)));
  const auto found = TuningStore(folder.path + "/deep/horo").find(result_of("2 ranks").key);
  REQUIRE(found.value());
  CHECK(**found == result_of("2 ranks", 0.5));
  CHECK(store.list()->size() == 2);
  CHECK_FALSE(store.find({.topology = "2 ranks", .tensors = "others"}).value());
}

TEST_CASE("results are forgotten one by one or all at once") {
  const Folder folder;
  TuningStore store(folder.path);
  for (const auto* name : {"a", "b", "c"}) REQUIRE(store.remember(result_of(name)));
  CHECK(store.forget([](const StoredResult& one) { return one.key.topology == "b"; }).value() == 1);
  CHECK(store.list()->size() == 2);
  CHECK(store.forget([](const StoredResult&) { return true; }).value() == 2);
  CHECK(store.list()->empty());
}

TEST_CASE("a damaged file is put aside, and the store works on") {
  const Folder folder;
  TuningStore store(folder.path);
  REQUIRE(store.remember(result_of("2 ranks")));
  REQUIRE(store.remember(result_of("4 ranks")));
  const auto whole = read(store.path());
  const std::vector<std::string> damaged{"",
                                         "no such file\n",
                                         "horo tuning results, version one\nend 0\n",
                                         whole + "more\n",
                                         whole.substr(0, whole.size() / 2),
                                         whole.substr(0, whole.rfind("end"))};
  for (const auto& text : damaged) {
    CAPTURE(text);
    write(store.path(), text);
    CHECK(store.list()->empty());
    CHECK_FALSE(std::filesystem::exists(store.path()));
    CHECK(folder.remove(".damaged-") == 1);
    REQUIRE(store.remember(result_of("8 ranks")));
    CHECK(store.list()->size() == 1);
  }
}

TEST_CASE("a file of a later version is neither read nor changed") {
  const Folder folder;
  TuningStore store(folder.path);
  const std::string later = "horo tuning results, version 3\nsomething else\n";
  write(store.path(), later);
  CHECK(store.list().error().code == Errc::unsupported);
  CHECK(store.remember(result_of("2 ranks")).error().code == Errc::unsupported);
  CHECK(store.list().error().message.find(store.path()) != std::string::npos);
  CHECK(read(store.path()) == later);
}

TEST_CASE("a store whose lock another process keeps is given up after two seconds") {
  const Folder folder;
  TuningStore store(folder.path);
  REQUIRE(store.remember(result_of("2 ranks")));
  const horo::UniqueFd held(open((store.path() + ".lock").c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(flock(held.value(), LOCK_EX) == 0);
  const auto refused = store.remember(result_of("4 ranks"));
  CHECK(refused.error().code == Errc::timed_out);
  CHECK(refused.error().message.find(".lock") != std::string::npos);
  CHECK(store.list()->size() == 1);  // Reading needs no lock.
}

TEST_CASE("two processes that store at once lose nothing") {
  const Folder folder;
  constexpr int kEach = 20;
  for (int child = 0; child < 2; ++child) {
    if (fork() != 0) continue;
    TuningStore store(folder.path);
    for (int i = 0; i < kEach; ++i) {
      const auto result = result_of("job " + std::to_string(child) + "." + std::to_string(i));
      auto stored = store.remember(result);
      while (!stored && stored.error().code == Errc::timed_out) stored = store.remember(result);
      if (!stored) _exit(1);
    }
    _exit(0);
  }
  for (int child = 0; child < 2; ++child) {
    int status = 0;
    REQUIRE(wait(&status) > 0);
    CHECK(status == 0);
  }
  CHECK(TuningStore(folder.path).list()->size() == 2 * kEach);
  CHECK(folder.remove("damaged") == 0);
}

TEST_CASE("the oldest results make room for new ones") {
  const Folder folder;
  TuningStore store(folder.path);
  std::string text = "horo tuning results, version 1\n";
  for (std::size_t i = 0; i < TuningStore::kMostResults; ++i)
    text += to_line(result_of(std::to_string(i))) + "\n";
  write(store.path(), text + "end " + std::to_string(TuningStore::kMostResults) + "\n");
  REQUIRE(store.remember(result_of("newest")));
  const auto results = store.list();
  REQUIRE(results->size() == TuningStore::kMostResults);
  CHECK(results->front().key.topology == "1");
  CHECK(results->back().key.topology == "newest");
}

TEST_CASE("only the user can read the results") {
  const Folder folder;
  TuningStore store(folder.path);
  REQUIRE(store.remember(result_of("2 ranks")));

  struct stat facts {};

  REQUIRE(stat(store.path().c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777U) == 0600);
}

TEST_CASE("texts with tabs and line ends cannot break the file") {
  const Folder folder;
  TuningStore store(folder.path);
  REQUIRE(store.remember(result_of("a\tb\nend 1")));
  CHECK(store.list()->front().key.topology == "a b end 1");
}

TEST_CASE("damaged lines are refused with the place of the damage") {
  const auto line = to_line(result_of("2 ranks"));
  CHECK(from_line(line).value() == result_of("2 ranks"));
  auto of_version_1 = result_of("2 ranks");
  of_version_1.tuning.small_message = horo::runtime::kUsualSmallMessage;
  CHECK(from_line(line.substr(0, line.rfind('\t'))).value() == of_version_1);
  CHECK(from_line("a\tb").error().message == "a result has 2 values instead of 12");
  auto worse = line;
  worse.replace(worse.find("0.125"), 5, "nan  ");
  CHECK(from_line(worse).error().message == "value 7 of a result is no number");
}

TEST_CASE("the exported document names every value and its unit") {
  const auto text = to_json(std::vector{result_of("2 \"ranks\"")});
  for (const auto* part :
       {"\"version\": 1", R"("topology": "2 \"ranks\"")", "\"fusion_threshold_bytes\": 4194304",
        "\"cycle_time_ns\": 1500000", "\"wake_delay_ns\": 70000",
        "\"small_message_bytes\": 1048576", "\"beats_default\": true", "\"gain\": 0.125",
        "\"default_bytes_per_second\": 1250000000"}) {
    CAPTURE(part, text);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("the state folder follows XDG_STATE_HOME, and then HOME") {
  const auto folder = [](std::map<std::string, std::string> variables) {
    return state_folder([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK(folder({{"XDG_STATE_HOME", "/s"}, {"HOME", "/h"}}).value() == "/s/horo");
  CHECK(folder({{"XDG_STATE_HOME", "s"}, {"HOME", "/h"}}).value() == "/h/.local/state/horo");
  CHECK(folder({{"HOME", "/h"}}).value() == "/h/.local/state/horo");
  CHECK(folder({}).error().message.find("autotune.memory") != std::string::npos);
}
