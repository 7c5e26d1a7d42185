// SPDX-License-Identifier: Apache-2.0
// More than 2^31 elements, on little memory: the buffers are one block mapped over and over.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/sim/sim_job.hpp"

using horo::Errc;
using horo::runtime::BoardParams;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::ReduceOp;
using horo::sim::SimJob;
using horo::sim::vector_of;

namespace {

constexpr std::uint64_t kBlock = 2 << 20;
constexpr std::uint64_t kElements = (std::uint64_t{1} << 31U) + 4 * kBlock;
constexpr std::uint64_t kMostSteps = 2'000'000;

/// Addresses for `bytes`, a multiple of a block, that all share one block of memory.
class Repeated {
 public:
  explicit Repeated(std::uint64_t bytes) : bytes_(bytes) {
    const int fd = memfd_create("repeated", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE(ftruncate(fd, kBlock) == 0);
    void* all = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(all != MAP_FAILED);
    begin_ = static_cast<std::byte*>(all);
    for (std::uint64_t at = 0; at < bytes; at += kBlock) {
      REQUIRE(mmap(begin_ + at, kBlock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
              MAP_FAILED);
    }
    close(fd);
  }

  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  ~Repeated() { munmap(begin_, bytes_); }

  std::byte* data() { return begin_; }

 private:
  std::byte* begin_ = nullptr;
  std::uint64_t bytes_;
};

BoardParams large_params() {
  BoardParams params;
  params.capacity = 64;
  params.arena_bytes = 64 << 20;
  params.tuning.fusion_threshold = 1 << 20;
  return params;
}

}  // namespace

TEST_CASE("more than 2^31 elements are reduced, scattered and exchanged to the last one") {
  SimJob job(2, 1, large_params());
  Repeated input(kElements);
  for (std::uint64_t i = 0; i < kBlock; ++i) input.data()[i] = static_cast<std::byte>(i % 251);
  std::vector<std::unique_ptr<Repeated>> outputs;
  const auto add = [&](int rank, const char* name, Kind kind, ReduceOp op, std::uint64_t room,
                       const std::vector<std::int64_t>& splits) {
    outputs.push_back(std::make_unique<Repeated>((room + kBlock - 1) / kBlock * kBlock));
    auto signature = vector_of(kind, DType::u8, static_cast<std::int64_t>(kElements));
    signature.op = op;
    job.add(rank, name, signature,
            {.in = input.data(), .out = outputs.back()->data(), .room = room}, splits);
  };
  // All but a little goes from rank 0 to rank 1, and the other way round: beyond 2^31 - 1 rows.
  const auto most = static_cast<std::int64_t>(kElements - kBlock);
  for (int r = 0; r < 2; ++r) {
    add(r, "all", Kind::allreduce, ReduceOp::sum, kElements, {});
    add(r, "mine", Kind::reducescatter, ReduceOp::max, kElements / 2, {});
    add(r, "sent", Kind::alltoall, ReduceOp::sum, kElements,
        r == 0 ? std::vector<std::int64_t>{static_cast<std::int64_t>(kBlock), most}
               : std::vector<std::int64_t>{most, static_cast<std::int64_t>(kBlock)});
  }
  REQUIRE(job.run(kMostSteps));
  for (int r = 0; r < 2; ++r) {
    const auto& buffers = job.buffers(r);
    for (const auto& buffer : buffers) REQUIRE(buffer->operation->status() == Errc::ok);
    const auto at = [&](std::size_t op, std::uint64_t i) {
      return std::to_integer<unsigned>(static_cast<const std::byte*>(buffers[op]->given->out)[i]);
    };
    bool equal = true;
    for (std::uint64_t i = 0; i < kBlock; ++i) {
      const auto value = static_cast<unsigned>(i % 251);
      equal = equal && at(0, kElements - kBlock + i) == (2 * value) % 256 && at(1, i) == value &&
              at(2, kElements - kBlock + i) == value;
    }
    CHECK(equal);
    CHECK(buffers[2]->operation->result_bytes == kElements);
    CHECK(job.engine(r).counters().bytes.load() == 3 * kElements);
  }
}
