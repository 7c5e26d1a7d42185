// SPDX-License-Identifier: Apache-2.0
// More names than slots: names that are not in use lose their slots, the same on all ranks.
#include <algorithm>
#include <atomic>
#include <malloc.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/race_point.hpp"
#include "tests/sim/sessions.hpp"
#include "tests/sim/sim_job.hpp"

using horo::Errc;
using horo::runtime::BoardParams;
using horo::runtime::DType;
using horo::runtime::GroupName;
using horo::runtime::Kind;
using horo::runtime::kWorld;
using horo::runtime::Operation;
using horo::runtime::Session;
using horo::runtime::SetSubmission;
using horo::runtime::Signature;
using horo::sim::Buffer;
using horo::sim::run_sessions;
using horo::sim::SimJob;
using horo::sim::tight_params;
using horo::sim::vector_of;
using horo::sim::wait_for;

namespace {

constexpr std::uint64_t kMostSteps = 2'000'000;

BoardParams few_names() {
  auto params = tight_params();
  params.capacity = 16;
  return params;
}

Signature floats(std::int64_t count) {
  return vector_of(Kind::allreduce, DType::f32, count);
}

/// The value that rank `rank` contributes to the i-th tensor; sums are exact.
float value_of(int rank, std::uint64_t i) {
  return static_cast<float>((static_cast<std::uint64_t>(rank) + 1) * (i % 1000 + 1));
}

float sum_of(int ranks, std::uint64_t i) {
  float sum = 0;
  for (int r = 0; r < ranks; ++r) sum += value_of(r, i);
  return sum;
}

struct Drawn {
  std::string name;
  std::string group;
  std::uint32_t group_size = 0;
  std::int64_t count = 1;
  std::uint64_t number = 0;
};

/// The tensors of one round: names from a large pool, each once, some of them in a group.
std::vector<Drawn> draw(std::mt19937_64& random) {
  std::vector<Drawn> drawn;
  const std::int64_t counts[] = {1, 5, 200, 1500, 5000};
  const auto add = [&](std::string group, std::uint32_t size) {
    for (;;) {
      const auto number = random() % 300;
      const auto name = "n" + std::to_string(number) + std::string(number % 7 * 20, '-');
      if (std::any_of(drawn.begin(), drawn.end(), [&](auto& d) { return d.name == name; }))
        continue;
      drawn.push_back({name, std::move(group), size, counts[random() % 5], number});
      return;
    }
  };
  for (auto n = random() % 5; n > 0; --n) add("", 0);
  if (random() % 2 == 0) {
    const auto size = static_cast<std::uint32_t>(2 + random() % 3);
    const auto group = "g" + std::to_string(random() % 50);
    for (std::uint32_t i = 0; i < size; ++i) add(group, size);
  }
  return drawn;
}

}  // namespace

TEST_CASE("with far more names than slots, groups and joins, sums equal the reference") {
  constexpr int kRanks = 3;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    SimJob job(kRanks, seed, few_names());
    for (int round = 0; round < 40; ++round) {
      const auto drawn = draw(job.random());
      const bool joins = job.random()() % 4 == 0;
      std::vector<std::pair<Buffer*, std::uint64_t>> buffers;
      for (int r = 0; r < kRanks; ++r) {
        auto mine = drawn;
        std::shuffle(mine.begin(), mine.end(), job.random());
        for (const auto& d : mine) {
          auto& buffer = job.add(r, d.name, floats(d.count), d.number % 2 == 0);
          auto* at = reinterpret_cast<float*>(buffer.data());
          std::fill(at, at + d.count, value_of(r, d.number));
          buffer.group = d.group;
          buffer.group_size = d.group_size;
          buffers.emplace_back(&buffer, d.number);
        }
        if (!joins) continue;
        Signature join;
        join.kind = Kind::join;
        join.elements = 0;
        job.add(r, "horo.join", join, false);
      }
      REQUIRE(job.run(kMostSteps));
      for (const auto& [buffer, number] : buffers) {
        REQUIRE(buffer->operation != nullptr);
        CAPTURE(round, buffer->name, buffer->operation->message());
        REQUIRE(buffer->operation->status() == Errc::ok);
        const auto* at = reinterpret_cast<const float*>(buffer->data());
        const auto sum = sum_of(kRanks, number);
        CHECK(std::all_of(at, at + buffer->signature.elements, [&](float v) { return v == sum; }));
      }
    }
    CHECK(job.board(0).region().body().tensor_count == 16);
  }
}

TEST_CASE("new names take no more memory than the first ones did") {
  SimJob job(2, 1, few_names());
  std::uint64_t early = 0;
  for (int i = 0; i < 3000; ++i) {
    for (int r = 0; r < 2; ++r)
      job.add(r, "allreduce.noname." + std::to_string(i), floats(3), false);
    REQUIRE(job.run(kMostSteps));
    for (int r = 0; r < 2; ++r) {
      REQUIRE(job.buffers(r).back()->operation->status() == Errc::ok);
      job.buffers(r).back()->own = {};
    }
    if (i == 100) early = job.board(0).region().body().heap_used;
  }
  CHECK(job.board(0).region().body().heap_used == early);
}

TEST_CASE("names fit however much memory small tensors take") {
  constexpr std::uint32_t kNames = 64;
  SimJob job(2, 1, tight_params());
  auto& claims = job.engine(0).claims();
  // A tensor that grows leaves its places behind: these take all memory for payloads.
  for (std::uint32_t i = 0; i + 4 < kNames; ++i) {
    for (std::int64_t count = 1; count <= 1024; count *= 2)
      REQUIRE(claims.declare("small" + std::to_string(i), floats(count)));
  }
  for (int i = 0; i < 4; ++i) CHECK(claims.declare("late" + std::to_string(i), floats(1)));
}

TEST_CASE("one payload takes less memory on a host with many ranks") {
  using horo::runtime::BoardLayout;
  auto params = tight_params();
  std::uint64_t before = 4096;
  for (const std::uint32_t ranks : {2U, 16U, 64U, 192U, 256U}) {
    params.local_size = ranks;
    const auto bytes = BoardLayout::of(params).inline_bytes;
    CHECK(bytes <= before);
    CHECK(2 * ranks * bytes <= 128U << 10U);
    CHECK(bytes >= 256);
    before = bytes;
  }
}

TEST_CASE("a name that is used often keeps its slot longer than names that are used once") {
  SimJob job(1, 1, few_names());
  const auto handle = *job.engine(0).claims().declare("often", floats(1));
  for (int i = 0; i < 200; ++i) {
    job.add(0, "often", floats(1), false);
    for (int k = 0; k < 4; ++k) job.add(0, "once" + std::to_string(4 * i + k), floats(1), false);
    REQUIRE(job.run(kMostSteps));
  }
  CHECK(job.board(0).directory().is_current(handle));
}

TEST_CASE("a name keeps its slot for an entry that comes while the slot is being taken away") {
  SimJob job(1, 1, few_names());
  auto& directory = job.board(0).directory();
  std::vector<horo::runtime::TensorHandle> handles;
  for (int i = 0; i < 16; ++i) {
    handles.push_back(*directory.declare("n" + std::to_string(i), floats(1)));
    directory.unpin(handles.back().id);
  }
  // Meanwhile ranks that pin and unpin the tensors run an entry with them, which a rank that has
  // joined, and pins nothing, has not reached.
  static const horo::runtime::SetRegion* region = nullptr;
  region = &job.board(0).region();
  horo::race_point_hook = [] {
    for (std::uint32_t i = 0; i < 16; ++i)
      region->tensor(horo::TensorId{i}).last_entry = region->body().tail + 1;
  };
  const auto late = directory.declare("late", floats(1));
  horo::race_point_hook = nullptr;
  REQUIRE_FALSE(late);
  CHECK(late.error().code == Errc::resource_exhausted);
  for (const auto& handle : handles) CHECK(directory.is_current(handle));
}

TEST_CASE("when all names are in use one more is refused, and an outdated handle is not_found") {
  const int fd = run_sessions(
      1,
      [](Session& session, int) {
        float value = 1;
        const auto first = *session.declare(kWorld, "first", floats(1));
        for (int i = 0; i < 60; ++i) {
          const auto id = *session.declare(kWorld, "x" + std::to_string(i), floats(1));
          auto& operation = **session.submit(kWorld, id, {.in = &value, .out = &value});
          CHECK(wait_for(session, operation));
          session.operations().put(operation);
        }
        const auto late = session.submit(kWorld, first, {.in = &value, .out = &value});
        REQUIRE_FALSE(late);
        CHECK(late.error().code == Errc::not_found);
        CHECK(late.error().message.find("HORO_CACHE_CAPACITY") != std::string::npos);
      },
      few_names());
  close(fd);
}

TEST_CASE("threads of several ranks declare new names at the same time") {
  constexpr int kRanks = 2;
  constexpr int kThreads = 3;
  constexpr int kRounds = 150;
  std::atomic<int> wrong{0};
  const int fd = run_sessions(
      kRanks,
      [&](Session& session, int rank) {
        std::vector<std::thread> callers;
        for (int t = 0; t < kThreads; ++t) {
          callers.emplace_back([&, t] {
            for (std::uint64_t i = 0; i < kRounds; ++i) {
              const std::int64_t count = i % 3 == 0 ? 2000 : 2;
              const auto name = i % 5 == 0 ? "kept" + std::to_string(t)
                                           : std::to_string(t) + "." + std::to_string(i);
              const auto signature = floats(i % 5 == 0 ? 7 : count);
              std::vector<float> values(2000, value_of(rank, i));
              const auto submit = [&]() -> horo::Result<Operation*> {
                HORO_TRY(const auto id, session.declare(kWorld, name, signature));
                return session.submit(kWorld, id, {.in = values.data(), .out = values.data()});
              };
              auto operation = submit();
              // A thread that was delayed in between may find that others took its slot.
              while (!operation && operation.error().code == Errc::not_found) operation = submit();
              if (!operation || !wait_for(session, **operation) ||
                  (*operation)->status() != Errc::ok || values[1] != sum_of(kRanks, i)) {
                ++wrong;
                return;
              }
              session.operations().put(**operation);
            }
          });
        }
        for (auto& caller : callers) caller.join();
      },
      few_names());
  CHECK(wrong == 0);
  close(fd);
}

TEST_CASE("10,000 declared tensors take no more memory than the design document says") {
  constexpr int kTensors = 10'000;
  const auto ranks = GENERATE(2, 8);
  auto params = tight_params();
  params.capacity = 16384;
  SimJob job(ranks, 1, params);

  struct stat board {};

  const auto shared = [&] {
    REQUIRE(fstat(job.descriptor(), &board) == 0);
    return static_cast<std::uint64_t>(board.st_blocks) * 512;
  };
  const auto board_before = shared();
  const auto heap_before = mallinfo2().uordblks;
  // The weights of 2,500 blocks like a ResNet's, of a few dozen shapes.
  for (int i = 0; i < kTensors; ++i) {
    const auto name = fmt::format("DistributedOptimizer.allreduce.module.layer{}.{}.conv{}.weight",
                                  i / 1000, i / 4, i % 4);
    Signature s;
    const std::int64_t shape[] = {64 << i / 2 % 5, 64 << i % 4, 1 + i % 2 * 2, 1 + i % 2 * 2};
    REQUIRE(set_shape(s, shape));
    for (int r = 0; r < ranks; ++r) REQUIRE(job.engine(r).claims().declare(name, s));
  }
  const auto n = static_cast<std::uint64_t>(ranks);
  const auto board_share = (shared() - board_before) / n;
  const auto own = (mallinfo2().uordblks - heap_before) / n;
  WARN(ranks << " ranks, each, for 10,000 tensors: " << board_share / 1024 << " KiB of the board, "
             << own / 1024
             << " KiB of its own; the host, in all: " << n * (board_share + own) / 1024 << " KiB");
  if (ranks == 8) CHECK(board_share + own <= 1U << 20U);
  CHECK(board_share + own <= 3U << 19U);
}

TEST_CASE("signatures that no tensor has any more are replaced by others") {
  SimJob job(2, 1, few_names());
  for (int i = 0; i < 1000; ++i) {
    std::vector<Buffer*> buffers;
    for (int r = 0; r < 2; ++r) {
      buffers.push_back(&job.add(r, "kept", floats(2 + i), false));
      buffers.push_back(&job.add(r, "fresh." + std::to_string(i), floats(2000 + i), false));
    }
    REQUIRE(job.run(kMostSteps));
    for (auto* buffer : buffers) {
      REQUIRE(buffer->operation->status() == Errc::ok);
      buffer->own = {};
    }
  }
  // Two or three for each of the 16 names, and as many again.
  CHECK(job.board(0).region().body().signature_count <= 100);
}
