// SPDX-License-Identifier: Apache-2.0
// More elements than 32 bits count, in little memory: the input is pages never written, the output
// one window mapped again and again.
#include <algorithm>
#include <span>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/unit/kernels/reference.hpp"

namespace {

constexpr std::size_t kWindow = std::size_t{2} << 20;
constexpr std::size_t kFolded = std::size_t{1} << 32;
constexpr std::size_t kRest = 4096;  ///< The bytes behind kFolded, which have memory of their own.
constexpr std::size_t kCount = kFolded + 37;  ///< Elements: all but some of the rest.

class Space {
 public:
  Space() {
    void* const begin = mmap(nullptr, kFolded + kRest, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(begin != MAP_FAILED);
    data_ = static_cast<std::uint8_t*>(begin);
    madvise(data_, kFolded, MADV_HUGEPAGE);  // fewer faults; a refusal costs only time
  }

  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;
  Space(Space&&) = delete;
  Space& operator=(Space&&) = delete;

  ~Space() { munmap(data_, kFolded + kRest); }

  /// Makes all but the rest the same memory.
  void fold() {
    const int fd = memfd_create("window", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE(ftruncate(fd, kWindow) == 0);
    for (std::size_t at = 0; at < kFolded; at += kWindow) {
      REQUIRE(mmap(data_ + at, kWindow, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) == data_ + at);
    }
    close(fd);
  }

  std::uint8_t* data() { return data_; }

  std::span<std::uint8_t> window() { return {data_, kWindow}; }

  std::span<std::uint8_t> rest() { return {data_ + kFolded, kRest}; }

 private:
  std::uint8_t* data_ = nullptr;
};

}  // namespace

TEST_CASE("more than 2^32 elements are reduced to the last one") {
  Space input;
  Space output;
  output.fold();
  std::ranges::fill(input.rest(), std::uint8_t{5});
  std::ranges::fill(output.window(), std::uint8_t{255});
  const void* const sources[] = {input.data(), input.data()};
  const horo::kernels::Reduction what{.dtype = horo::kernels::DType::u8,
                                      .op = horo::kernels::ReduceOp::sum};
  horo::kernels::reduce_kernel(what.dtype, what.op)(what, output.data(), sources, 2, kCount);
  CHECK(std::ranges::count(output.window(), 0) == static_cast<std::ptrdiff_t>(kWindow));
  CHECK(std::ranges::count(output.rest().first(kCount - kFolded), 10) == kCount - kFolded);
  CHECK(std::ranges::count(output.rest().subspan(kCount - kFolded), 0) ==
        kRest - (kCount - kFolded));
}
