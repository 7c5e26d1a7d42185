// SPDX-License-Identifier: Apache-2.0
// The software NCCL moves what NCCL moves, between threads and between processes.
#include <numeric>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/software_device/nccl/loaded_nccl.hpp"
#include "tests/software_device/nccl/nccl_element.hpp"

using horo::software_nccl::decode;
using horo::software_nccl::encode;
using horo::software_nccl::SmallFloat;
using horo::tests::NcclId;
using horo::tests::NcclRank;
using horo::tests::run_ranks;
using horo::tests::SoftwareDevice;
using horo::tests::SoftwareNccl;

namespace {

constexpr int kRanks = 3;
constexpr int kInt32 = 2;
constexpr int kFloat = 7;
constexpr int kSum = 0;

/// More than one piece.
constexpr std::size_t kMany = 150'000;

struct Numbers {
  /// Element `i` of rank `r`.
  static int of(int r, std::size_t i) {
    return static_cast<int>((static_cast<std::size_t>(r) * 7 + i * 5 + i / 3) % 3);
  }

  static int expected(int op, std::size_t i) {
    int value = of(0, i);
    for (int r = 1; r < kRanks; ++r) {
      const int other = of(r, i);
      value = op == 1   ? value * other
              : op == 2 ? std::max(value, other)
              : op == 3 ? std::min(value, other)
                        : value + other;
    }
    return value;
  }
};

/// All-reduces `count` elements with every operation but the average.
template <typename T, typename To>
void check_type(const SoftwareDevice& software, const SoftwareNccl& nccl, int type,
                std::size_t count, To to) {
  CAPTURE(type, count);
  std::array<std::array<std::vector<T>, 4>, kRanks> results;
  run_ranks(software, nccl, kRanks, [&](NcclRank& rank) {
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(to(Numbers::of(rank.rank, i)));
    const auto* in = rank.put(values);
    for (int op = 0; op < 4; ++op) {
      auto* out = static_cast<T*>(rank.allocate(count * sizeof(T)));
      HORO_CHECK(nccl.all_reduce(in, out, count, type, op, rank.comm, rank.stream) == 0);
      results.at(static_cast<std::size_t>(rank.rank)).at(static_cast<std::size_t>(op)) =
          rank.fetch(out, count);
    }
  });
  for (const auto& result : results) {
    for (int op = 0; op < 4; ++op) {
      std::vector<T> expected;
      for (std::size_t i = 0; i < count; ++i) expected.push_back(to(Numbers::expected(op, i)));
      CHECK(result.at(static_cast<std::size_t>(op)) == expected);
    }
  }
}

auto small(SmallFloat type) {
  return [type](int value) { return static_cast<std::uint16_t>(encode(value, type)); };
}

auto smaller(SmallFloat type) {
  return [type](int value) { return static_cast<std::uint8_t>(encode(value, type)); };
}

}  // namespace

TEST_CASE("small floats keep every value, and round to the nearest even one") {
  using namespace horo::software_nccl;
  for (const auto type : {kHalf, kBfloat16, kFloat8e4m3, kFloat8e5m2}) {
    const auto all = 1U << static_cast<unsigned>(1 + type.exponent_bits + type.mantissa_bits);
    for (std::uint32_t bits = 0; bits < all; ++bits) {
      const double value = decode(bits, type);
      if (value == value) REQUIRE(encode(value, type) == bits);
    }
  }
  CHECK(decode(encode(2049, kHalf), kHalf) == 2048);
  CHECK(decode(encode(2051, kHalf), kHalf) == 2052);
  CHECK(encode(65520, kHalf) == 0x7c00);
  CHECK(decode(encode(1000, kFloat8e4m3), kFloat8e4m3) == 448);
}

TEST_CASE("an all-reduce of every type and operation has the reference's result") {
  const SoftwareDevice software("devices=3");
  const SoftwareNccl nccl;
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}}) {
    check_type<std::int8_t>(software, nccl, 0, count, [](int v) { return std::int8_t(v); });
    check_type<std::uint8_t>(software, nccl, 1, count, [](int v) { return std::uint8_t(v); });
    check_type<std::int32_t>(software, nccl, 2, count, [](int v) { return v; });
    check_type<std::uint32_t>(software, nccl, 3, count, [](int v) { return std::uint32_t(v); });
    check_type<std::int64_t>(software, nccl, 4, count, [](int v) { return std::int64_t(v); });
    check_type<std::uint64_t>(software, nccl, 5, count, [](int v) { return std::uint64_t(v); });
    check_type<std::uint16_t>(software, nccl, 6, count, small(horo::software_nccl::kHalf));
    check_type<float>(software, nccl, 7, count, [](int v) { return float(v); });
    check_type<double>(software, nccl, 8, count, [](int v) { return double(v); });
    check_type<std::uint16_t>(software, nccl, 9, count, small(horo::software_nccl::kBfloat16));
    check_type<std::uint8_t>(software, nccl, 10, count, smaller(horo::software_nccl::kFloat8e4m3));
    check_type<std::uint8_t>(software, nccl, 11, count, smaller(horo::software_nccl::kFloat8e5m2));
  }
  check_type<float>(software, nccl, 7, kMany, [](int v) { return float(v); });
  CHECK(software.findings().empty());
  CHECK(nccl.findings().empty());
}

TEST_CASE("the collectives with a root and with parts move what NVIDIA documents") {
  const SoftwareDevice software("devices=3");
  const SoftwareNccl nccl;
  std::array<std::array<std::vector<int>, 5>, kRanks> got;
  run_ranks(software, nccl, kRanks, [&](NcclRank& rank) {
    std::vector<int> values(kMany);
    std::iota(values.begin(), values.end(), rank.rank * 1000);
    auto& own = got.at(static_cast<std::size_t>(rank.rank));
    const auto part = kMany / kRanks;
    auto* out = static_cast<int*>(rank.allocate(kMany * kRanks * sizeof(int)));
    auto* in = rank.put(values);
    HORO_CHECK(nccl.broadcast(in, out, kMany, kInt32, 1, rank.comm, rank.stream) == 0);
    own[0] = rank.fetch(out, kMany);
    HORO_CHECK(nccl.all_gather(in, out, kMany, kInt32, rank.comm, rank.stream) == 0);
    own[1] = rank.fetch(out, kMany * kRanks);
    HORO_CHECK(nccl.reduce(in, out, kMany, kInt32, kSum, 2, rank.comm, rank.stream) == 0);
    own[2] = rank.fetch(out, kMany);
    HORO_CHECK(nccl.all_reduce(in, out, kMany, kInt32, 4, rank.comm, rank.stream) == 0);
    own[3] = rank.fetch(out, kMany);
    // In place.
    auto* mine = in + static_cast<std::size_t>(rank.rank) * part;
    HORO_CHECK(nccl.reduce_scatter(in, mine, part, kInt32, kSum, rank.comm, rank.stream) == 0);
    own[4] = rank.fetch(mine, part);
  });
  for (std::size_t r = 0; r < kRanks; ++r) {
    const auto& own = got.at(r);
    for (const std::size_t i : {std::size_t{0}, std::size_t{77}, kMany / kRanks - 1}) {
      const int at = static_cast<int>(i);
      CAPTURE(r, i);
      CHECK(own[0][i] == 1000 + at);
      CHECK(own[1][2 * kMany + i] == 2000 + at);
      if (r == 2) CHECK(own[2][i] == 3000 + 3 * at);
      CHECK(own[3][i] == 1000 + at);
      CHECK(own[4][i] == 3000 + 3 * (at + static_cast<int>(r * (kMany / kRanks))));
    }
  }
  CHECK(software.findings().empty());
  CHECK(nccl.findings().empty());
}

TEST_CASE("messages of a group cross without a deadlock, also those to the rank itself") {
  const SoftwareDevice software("devices=3 delay=50");
  const SoftwareNccl nccl;
  std::array<std::vector<int>, kRanks> got;
  run_ranks(software, nccl, kRanks, [&](NcclRank& rank) {
    std::vector<int> values;
    for (int to = 0; to < kRanks; ++to) values.insert(values.end(), kMany, rank.rank * 10 + to);
    const auto* in = rank.put(values);
    auto* out = static_cast<int*>(rank.allocate(values.size() * sizeof(int)));
    HORO_CHECK(nccl.group_start() == 0);
    for (std::size_t peer = 0; peer < kRanks; ++peer) {
      const int to = static_cast<int>(peer);
      HORO_CHECK(nccl.send(in + peer * kMany, kMany, kInt32, to, rank.comm, rank.stream) == 0);
      HORO_CHECK(nccl.receive(out + peer * kMany, kMany, kInt32, to, rank.comm, rank.stream) == 0);
    }
    HORO_CHECK(nccl.group_end() == 0);
    got.at(static_cast<std::size_t>(rank.rank)) = rank.fetch(out, values.size());
  });
  for (std::size_t r = 0; r < kRanks; ++r) {
    for (std::size_t from = 0; from < kRanks; ++from) {
      CHECK(got.at(r).at(from * kMany) == static_cast<int>(from * 10 + r));
      CHECK(got.at(r).at((from + 1) * kMany - 1) == static_cast<int>(from * 10 + r));
    }
  }
  CHECK(software.findings().empty());
  CHECK(nccl.findings().empty());
}

TEST_CASE("launches run in the order of their stream, behind late work and before later work") {
  const SoftwareDevice software("devices=3");
  const SoftwareNccl nccl;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    software.plan("devices=3 delay=200 seed=" + std::to_string(seed));
    std::array<float, kRanks> got{};
    run_ranks(software, nccl, kRanks, [&](NcclRank& rank) {
      auto* memory = rank.put(std::vector<float>{1});
      for (int round = 0; round < 4; ++round)
        HORO_CHECK(nccl.all_reduce(memory, memory, 1, kFloat, kSum, rank.comm, rank.stream) == 0);
      got.at(static_cast<std::size_t>(rank.rank)) = rank.fetch(memory, 1).front();
    });
    CHECK(got == std::array<float, kRanks>{81, 81, 81});
    CHECK(software.findings().empty());
  }
}

TEST_CASE("ranks may be processes that know nothing but the unique id") {
  NcclId id;
  const std::string name = "horo-nccl-test-" + std::to_string(getpid());
  std::copy(name.begin(), name.end(), id.bytes.begin());
  std::array<pid_t, kRanks> children{};
  for (int r = 0; r < kRanks; ++r) {
    auto& child = children.at(static_cast<std::size_t>(r));
    child = fork();
    if (child != 0) continue;
    // Every process has its own library and its own devices.
    const SoftwareDevice own("devices=3");
    const SoftwareNccl nccl;
    NcclRank rank(own, r, r);
    bool right = nccl.init(&rank.comm, kRanks, id, r) == 0;
    auto* memory = rank.put(std::vector<float>(kMany, static_cast<float>(r + 1)));
    right =
        right && nccl.all_reduce(memory, memory, kMany, kFloat, kSum, rank.comm, rank.stream) == 0;
    right = right && rank.fetch(memory, kMany) == std::vector<float>(kMany, 6);
    right = right && own.findings().empty() && nccl.findings().empty();
    _exit(right ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(access(("/dev/shm/" + name).c_str(), F_OK) != 0);
}
