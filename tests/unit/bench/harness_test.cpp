// SPDX-License-Identifier: Apache-2.0
#include "bench/harness.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <catch2/catch.hpp>

namespace horo::bench {
namespace {

/// A contender of one rank. Its steps do not change the tensors, unless it is told to make an
/// error.
class Alone final : public Contender {
 public:
  int rank() const override { return 0; }

  int ranks() const override { return 1; }

  Status prepare(const Workload& workload) override {
    tensors_.clear();
    for (const std::size_t count : workload.counts) tensors_.emplace_back(count, -1.0F);
    return {};
  }

  std::span<float> tensor(std::size_t index) override { return tensors_[index]; }

  Status step() override {
    ++steps;
    if (spoil) tensors_.back().back() += 1.0F;
    if (steps == fails_at) return fail(Errc::peer_lost, "rank 1 has ended");
    return {};
  }

  std::optional<std::uint64_t> entries() const override { return 3 * steps; }

  std::uint64_t steps = 0;
  std::uint64_t fails_at = 0;
  bool spoil = false;

 private:
  std::vector<std::vector<float>> tensors_;
};

class Folder {
 public:
  Folder() {
    std::string path = std::filesystem::temp_directory_path() / "horo_harness_XXXXXX";
    REQUIRE(mkdtemp(path.data()) != nullptr);
    path_ = path;
  }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  ~Folder() { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name) const { return path_ / name; }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

  std::string read(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::filesystem::path path_;
};

Options options(const Folder& folder) {
  return {.cases = folder.write("cases", "sizes 5\ntiny 2 3\n"),
          .out = folder.file("out"),
          .seconds = 1e-6};
}

TEST_CASE("a measured case becomes a row with the time of a step") {
  const Folder folder;
  Alone contender;
  REQUIRE(run_cases(contender, options(folder)));
  const std::string rows = folder.read("out");
  CHECK(rows.find(R"({"case": "sizes", "bytes": 20, )") == 0);
  CHECK(rows.find(R"({"case": "tiny", "bytes": 20, )") != std::string::npos);
  CHECK(rows.find(R"("entries_per_step": 3.00)") != std::string::npos);
}

TEST_CASE("a wrong sum ends the measurement, and the error says where it is") {
  const Folder folder;
  Alone contender;
  contender.spoil = true;
  const Status result = run_cases(contender, options(folder));
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::protocol);
  CHECK(result.error().message == "case sizes: element 4 of tensor 0 is 5 on rank 0, the sum is 4");
  CHECK(folder.read("out").empty());
}

TEST_CASE("a failure of the contender in any step ends the measurement") {
  const Folder folder;
  Alone untouched;
  REQUIRE(run_cases(untouched, options(folder)));
  for (std::uint64_t step = 1; step <= 5; ++step) {
    Alone contender;
    contender.fails_at = step;
    const Status result = run_cases(contender, options(folder));
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "rank 1 has ended");
  }
}

TEST_CASE("an invalid case file is refused with the line") {
  const Folder folder;
  for (const std::string bad :
       {"sizes\n", "sizes 0\n", "sizes x\n", "sizes -1\n", "sizes 4 5x\n", "\n"}) {
    const auto read = read_workloads(folder.write("cases", fmt::format("good 1\n{}", bad)));
    INFO(bad);
    REQUIRE_FALSE(read);
    CHECK(read.error().message ==
          fmt::format("'{}' line 2: the line must have a name and element counts from 1 up",
                      folder.file("cases")));
  }
  CHECK(read_workloads(folder.file("none")).error().code == Errc::not_found);
}

TEST_CASE("invalid options are refused by name") {
  for (const auto& [key, value] : {std::pair{"--seconds", "0"},
                                   {"--seconds", "x"},
                                   {"--ranks", "0"},
                                   {"--ranks", "2x"},
                                   {"--memory", "mine"},
                                   {"--idle", "-1"}}) {
    std::vector<std::string> words{"bench", key, value};
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    const auto parsed = parse_options(3, argv.data());
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().message == fmt::format("{} '{}' is not valid", key, value));
  }
}

}  // namespace
}  // namespace horo::bench
