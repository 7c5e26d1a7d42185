// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/host_memory.hpp"

#include <future>
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it

namespace {

/// Limits the size of files while it lives, as `ulimit -S -f` does.
class FileLimit {
 public:
  explicit FileLimit(std::uint64_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }

  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

Result<std::unique_ptr<HostMemory>> attach_first(const BoardParams& params) {
  const UniqueFd board(*make_board({.local_size = 2, .nonce = 7}));
  return HostMemory::attach(board.value(), LocalRank{0}, Rank{0}, params);
}

}  // namespace

TEST_CASE("a limit of file sizes below the board's is an error that names a sufficient one") {
  const BoardParams params{.local_size = 2};
  const auto needed = HostLayout::of(params).total;
  const auto kib = (needed + 1023) / 1024;
  {
    const FileLimit limit(needed - 1);
    const auto memory = attach_first(params);
    REQUIRE_FALSE(memory);
    CHECK(memory.error().code == Errc::resource_exhausted);
    CHECK_THAT(memory.error().message,
               Catch::Contains(fmt::format("files may have {} bytes here", needed - 1)) &&
                   Catch::Contains(fmt::format("needs {},", needed)) &&
                   Catch::EndsWith(fmt::format("raise ulimit -f to {} or unlimited", kib)));
  }
  const FileLimit limit(kib * 1024);
  CHECK(attach_first(params));
}

TEST_CASE("a rank whose peer could not lay out the board fails only once that peer has ended") {
  const BoardParams params{.local_size = 2};
  const UniqueFd board(*make_board({.local_size = 2, .nonce = 7}));
  {
    const FileLimit limit(1 << 20);
    REQUIRE_FALSE(HostMemory::attach(board.value(), LocalRank{0}, Rank{0}, params));
  }
  auto other = std::async(std::launch::async, [&] {
    return HostMemory::attach(board.value(), LocalRank{1}, Rank{1}, params);
  });
  CHECK(other.wait_for(std::chrono::milliseconds(200)) == std::future_status::timeout);
  const auto header = map_board_header(board.value());
  REQUIRE(header);
  poison_board(*header, {.rank = Rank{0}, .cause = LossCause::exited, .detail = 17}, "here");
  const auto memory = other.get();
  REQUIRE_FALSE(memory);
  CHECK_THAT(memory.error().message, Catch::Contains("its message has the reason"));
  unmap_board_header(*header);
}
