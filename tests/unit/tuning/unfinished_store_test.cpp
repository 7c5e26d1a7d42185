// SPDX-License-Identifier: Apache-2.0
// The file of searches that have not ended.
#include "runtime/tuning/memory/unfinished_store.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

using namespace horo::runtime::tuning;  // NOLINT(google-build-using-namespace): a test of it
using horo::Errc;
using horo::runtime::Tuning;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "horo-searches-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }

  ~Folder() { std::filesystem::remove_all(path); }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path;
};

const Tuning kOther{.fusion_threshold = 4 << 20, .cycle_ns = 1'500'000, .wake_delay_ns = 70'000};

UnfinishedSearch search_of(const std::string& topology) {
  return {.key = {.topology = topology, .tensors = "52 tensors, 3.1 MB, 1f2e"},
          .search = {.samples = {{.tuning = {}, .score = 1.25e9, .standard_error = 1e7},
                                 {.tuning = kOther, .score = 1.5e9, .standard_error = 0}},
                     .challenger = kOther,
                     .turns = {20.5, 20.75}},
          .time = 1'700'000'000};
}

}  // namespace

TEST_CASE("an unfinished search is found by its key, replaced, and forgotten") {
  const Folder folder;
  UnfinishedStore store(folder.path + "/deep");
  CHECK_FALSE(store.find(search_of("2 ranks").key).value());
  REQUIRE(store.forget(search_of("2 ranks").key));
  REQUIRE(store.remember(search_of("2 ranks")));
  REQUIRE(store.remember(search_of("4 ranks")));
  auto later = search_of("2 ranks");
  later.search.challenger.reset();
  later.search.turns.clear();
  REQUIRE(store.remember(later));
  CHECK(UnfinishedStore(folder.path + "/deep").find(later.key).value() == later);
  REQUIRE(store.forget(later.key));
  CHECK_FALSE(store.find(later.key).value());
  CHECK(store.find(search_of("4 ranks").key).value() == search_of("4 ranks"));
  CHECK(store.forget_all().value() == 1);
  CHECK(store.forget_all().value() == 0);
  CHECK_FALSE(store.find(search_of("4 ranks").key).value());
}

TEST_CASE("damaged searches are refused with the place of the damage") {
  const auto line = to_line(search_of("2 ranks"));
  CHECK(unfinished_from_line(line).value() == search_of("2 ranks"));
  const auto error_of = [&](const std::string& from, const std::string& to) {
    auto damaged = line;
    damaged.replace(damaged.find(from), from.size(), to);
    const auto search = unfinished_from_line(damaged);
    return search ? std::string("none") : search.error().message;
  };
  CHECK(error_of("1700000000", "soon") == "the time of a search is no number");
  CHECK(error_of("1500000000", "nan") == "the samples of a search are damaged");
  CHECK(error_of("1250000000", "-5") == "the samples of a search are damaged");
  CHECK(error_of(";20.75", "") == "the turns of a search are damaged");
  CHECK(error_of("20.5", "inf") == "the turns of a search are damaged");
  CHECK(error_of("\t1700000000", "") == "a search has 5 values instead of 6");
}

TEST_CASE("a damaged file of searches is put aside, and one of a later version is left alone") {
  const Folder folder;
  UnfinishedStore store(folder.path);
  const auto key = search_of("2 ranks").key;
  for (const auto* text :
       {"", "horo tuning results, version 1\nend 0\n",
        "horo tuning searches, version 1\na\tb\nend 1\n", "horo tuning searches, version 1\n"}) {
    CAPTURE(text);
    std::ofstream(store.path()) << text;
    CHECK_FALSE(store.find(key).value());
    CHECK_FALSE(std::filesystem::exists(store.path()));
  }
  std::ofstream(store.path()) << "horo tuning searches, version 2\n";
  CHECK(store.find(key).error().code == Errc::unsupported);
  CHECK(store.remember(search_of("2 ranks")).error().code == Errc::unsupported);
}

TEST_CASE("the oldest searches make room for new ones") {
  const Folder folder;
  UnfinishedStore store(folder.path);
  for (std::size_t i = 0; i <= UnfinishedStore::kMostSearches; ++i)
    REQUIRE(store.remember(search_of(std::to_string(i))));
  CHECK_FALSE(store.find(search_of("0").key).value());
  CHECK(store.find(search_of("1").key).value());
}
