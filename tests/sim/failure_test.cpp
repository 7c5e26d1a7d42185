// SPDX-License-Identifier: Apache-2.0
// A rank dies, leaves, or overwrites the board, at every step of a job.
#include <algorithm>
#include <cstring>
#include <functional>

#include <catch2/catch.hpp>

#include "base/race_point.hpp"
#include "tests/sim/sim_job.hpp"

using horo::Errc;
using horo::LocalRank;
using horo::RankState;
using horo::runtime::DType;
using horo::runtime::Kind;
using horo::runtime::ReduceOp;
using horo::sim::SimJob;
using horo::sim::tight_params;
using horo::sim::vector_of;

namespace {

constexpr std::uint64_t kMostSteps = 1'000'000;
constexpr int kRanks = 3;

/// One tensor for each path of the data (in the marks, through the rings, in place), and one of
/// each other kind.
void add_mixed(SimJob& job) {
  for (int r = 0; r < kRanks; ++r) {
    job.add(r, "small", vector_of(Kind::allreduce, DType::f32, 16), false);
    job.add(r, "staged", vector_of(Kind::allreduce, DType::f32, 9000), false);
    job.add(r, "direct", vector_of(Kind::allreduce, DType::f32, 9000), true);
    job.add(r, "gathered", vector_of(Kind::allgather, DType::i32, 4000L * (r + 1)), false);
    auto from_root = vector_of(Kind::broadcast, DType::i32, 6000);
    from_root.root = 1;
    job.add(r, "sent", from_root, true);
    job.add(r, "scattered", vector_of(Kind::reducescatter, DType::f32, 9000),
            {.in = job.allocate(r, 36000, false)});
    job.add(r, "exchanged", vector_of(Kind::alltoall, DType::i32, 6000), r == 1);
    auto combined = vector_of(Kind::allreduce, DType::f32, 3000);
    combined.op = ReduceOp::adasum;
    job.add(r, "combined", combined, true);
  }
}

std::uint64_t steps_of_a_whole_job(std::uint64_t seed) {
  SimJob job(kRanks, seed, tight_params());
  add_mixed(job);
  REQUIRE(job.run(kMostSteps));
  return job.steps();
}

}  // namespace

TEST_CASE(
    "when a rank dies at any step, the others' operations end and no rank touches their buffers "
    "again") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto whole = steps_of_a_whole_job(seed);
    for (std::uint64_t at = 0; at < whole; at += 1 + seed % 2) {
      CAPTURE(seed, at);
      SimJob job(kRanks, seed, tight_params());
      for (int r = 0; r < kRanks && seed == 3; ++r) job.lend(r);
      add_mixed(job);
      const int victim = static_cast<int>(at % kRanks);
      for (std::uint64_t i = 0; i < at; ++i) job.step();
      job.kill(victim);
      // Once an operation has ended its buffer is the user's: fill it, and compare at the end.
      std::vector<horo::sim::Buffer*> filled;
      const auto fill_finished = [&] {
        for (int r = 0; r < kRanks; ++r) {
          if (r == victim) continue;
          for (auto& buffer : job.buffers(r)) {
            if (buffer->operation == nullptr || !buffer->operation->done()) continue;
            if (buffer->operation->status() == Errc::ok) continue;
            if (std::find(filled.begin(), filled.end(), buffer.get()) != filled.end()) continue;
            if (buffer->given) continue;  // Its result is freed with the operation.
            std::memset(buffer->data(), 0x5a, buffer->signature.bytes());
            filled.push_back(buffer.get());
          }
        }
      };
      bool ended = false;
      for (int slice = 0; slice < 2000 && !ended; ++slice) {
        ended = job.run(1);
        fill_finished();
      }
      REQUIRE(ended);
      job.run(200);
      for (int r = 0; r < kRanks; ++r) {
        if (r == victim) continue;
        for (auto& buffer : job.buffers(r)) {
          if (buffer->operation == nullptr) continue;
          const auto status = buffer->operation->status();
          REQUIRE((status == Errc::ok || status == Errc::peer_lost));
          if (status == Errc::peer_lost) {
            REQUIRE(buffer->operation->message().find("rank " + std::to_string(victim)) !=
                    std::string::npos);
          }
        }
      }
      for (auto* buffer : filled) {
        for (std::uint64_t i = 0; i < buffer->signature.bytes(); ++i)
          REQUIRE(buffer->data()[i] == std::byte{0x5a});
      }
    }
  }
}

TEST_CASE("when a rank leaves, operations that can no longer complete end, and no others") {
  for (std::uint64_t seed = 1; seed <= 36; ++seed) {
    const int ranks = seed <= 30 ? kRanks : 36;  // The larger set counts marks in groups.
    CAPTURE(seed);
    SimJob job(ranks, seed, tight_params());
    for (int r = 0; r < ranks; ++r)
      job.add(r, "all", vector_of(Kind::allreduce, DType::f32, 3000), false);
    for (int r = 0; r < 2; ++r)
      job.add(r, "without 2", vector_of(Kind::allreduce, DType::f32, 3000), false);
    while (job.buffers(2)[0]->operation == nullptr) job.step();
    for (std::uint64_t i = 0; i < seed * 3; ++i) job.step();
    // The steps of Session::shutdown, one at a time.
    auto& leaving = job.engine(2);
    bool out = false;
    for (std::uint64_t i = 0; i < kMostSteps && !out; ++i) {
      out = leaving.withdraw();
      if (!out) job.step();
    }
    REQUIRE(out);
    while (leaving.active()) job.step();
    job.host(2).slot(job.host(2).me()).state.store(RankState::detached);
    job.host(2).body().gone.fetch_add(1);
    REQUIRE(job.run(kMostSteps));
    const auto left = job.buffers(2)[0]->operation->status();
    for (int r = 0; r < 2; ++r) {
      // The tensor was not submitted: its submission was refused for the same reason.
      const auto status_of = [&](const horo::sim::Buffer& b) {
        return b.operation != nullptr ? b.operation->status() : job.engine(r).health().error().code;
      };
      CHECK(status_of(*job.buffers(r)[0]) == left);  // All or none.
      CHECK(status_of(*job.buffers(r)[1]) == Errc::shut_down);
      CHECK(job.engine(r).health().error().message ==
            "rank 2 has left the job, and nothing can complete without it: its program ended or "
            "called shutdown. Give all ranks the same number of steps, or let those that have "
            "fewer call join()");
    }
  }
}

TEST_CASE("a tensor completes though a rank leaves while the last one submits it") {
  // Rank 0 gathers the marks of its group, to which rank 1 adds the last one meanwhile.
  constexpr int kMany = 37;
  static SimJob* running = nullptr;
  SimJob job(kMany, 1, tight_params());
  running = &job;
  for (int r = 0; r < kMany; ++r) {
    job.add(r, "all", vector_of(Kind::allreduce, DType::f32, 300), false);
    if (r != 1) job.submit_next_of(r);
  }
  horo::race_point_hook = [] {
    horo::race_point_hook = nullptr;
    running->submit_next_of(1);
  };
  CHECK_FALSE(job.engine(0).withdraw());
  REQUIRE(horo::race_point_hook == nullptr);
  REQUIRE(job.run(kMostSteps));
  for (int r = 0; r < kMany; ++r) CHECK(job.buffers(r)[0]->operation->status() == Errc::ok);
}

TEST_CASE("garbage on the board never crashes a rank") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    SimJob job(2, seed, tight_params());
    for (int r = 0; r < 2; ++r) {
      for (int i = 0; i < 4; ++i) {
        job.add(r, "t" + std::to_string(i), vector_of(Kind::allreduce, DType::f32, 5000),
                i % 2 == 0);
      }
    }
    for (std::uint64_t i = 0; i < seed % 60; ++i) job.step();
    // A random write into the log or its words.
    const auto& layout = job.board(0).region().layout();
    auto* target = job.board(0).region().base() + (seed % 2 == 0 ? layout.log : layout.words);
    for (int i = 0; i < 64; ++i)
      target[job.random()() % 2048] = static_cast<std::byte>(job.random()());
    job.run(20'000);
    SUCCEED();
  }
}

TEST_CASE("what a rank has read of a log entry stays as it is when another overwrites the board") {
  SimJob job(2, 1, tight_params());
  auto& board = job.board(0);
  for (int r = 0; r < 2; ++r) {
    const auto handle =
        *job.engine(r).claims().declare("x", vector_of(Kind::allreduce, DType::f32, 5000));
    job.board(r).marks().mark(handle.id, {});
  }
  REQUIRE(board.cutter()->cut(0));
  horo::runtime::EntryWords words;
  const auto entry = *board.log().read(0, words);
  REQUIRE(entry);
  REQUIRE(entry->ids.size() == 1);
  const auto id = entry->ids.front();
  std::fill_n(board.region().tables().words, board.region().layout().word_count, ~std::uint64_t{0});
  CHECK(entry->ids.front() == id);
  CHECK(board.log().read(0, words).error().code == Errc::protocol);
}

TEST_CASE("an id is no tensor because the board claims to have many") {
  SimJob job(2, 1, tight_params());
  auto& board = job.board(0);
  for (int r = 0; r < 2; ++r) {
    const auto handle =
        *job.engine(r).claims().declare("x", vector_of(Kind::allreduce, DType::f32, 5000));
    job.board(r).marks().mark(handle.id, {});
  }
  REQUIRE(board.cutter()->cut(0));
  board.region().body().tensor_count = ~std::uint32_t{0};
  for (const std::uint64_t id : {std::uint64_t{64}, std::uint64_t{1} << 31U}) {
    board.region().tables().words[0] = id;
    horo::runtime::EntryWords words;
    CHECK(board.log().read(0, words).error().code == Errc::protocol);
  }
}

TEST_CASE("a log entry whose fields make no sense is refused, whichever field it is") {
  SimJob job(2, 1, tight_params());
  auto& board = job.board(0);
  for (int r = 0; r < 2; ++r) {
    const auto handle =
        *job.engine(r).claims().declare("x", vector_of(Kind::allreduce, DType::f32, 5000));
    job.board(r).marks().mark(handle.id, {});
  }
  REQUIRE(board.cutter()->cut(0));
  auto& slot = board.region().tables().log[0];
  const auto whole = slot;
  const auto room = board.region().layout().word_count;
  const std::vector<std::function<void(horo::runtime::LogSlot&)>> spoilers{
      [](auto& s) { s.kind = static_cast<horo::runtime::EntryKind>(99); },
      [](auto& s) { s.kind = static_cast<horo::runtime::EntryKind>(0); },
      [](auto& s) { s.kind = horo::runtime::EntryKind::join; },
      [](auto& s) { s.path = static_cast<horo::runtime::DataPath>(99); },
      [](auto& s) { s.partial = true; },
      [](auto& s) { s.count = 0; },
      [](auto& s) { s.count = ~std::uint32_t{0}; },
      [](auto& s) { s.words = ~std::uint32_t{0}; },
      [](auto& s) { s.first_word = ~std::uint64_t{0}; },
      [room](auto& s) { s.first_word = room; },
      [](auto& s) { s.sequence = 7; }};
  for (std::size_t i = 0; i < spoilers.size(); ++i) {
    CAPTURE(i);
    slot = whole;
    spoilers[i](slot);
    horo::runtime::EntryWords words;
    const auto read = board.log().read(0, words);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == Errc::protocol);
  }
  slot = whole;
  horo::runtime::EntryWords words;
  CHECK(board.log().read(0, words));
}

TEST_CASE("a rank goes by its own signature when another overwrites the one on the board") {
  SimJob job(2, 1, tight_params());
  const auto signature = vector_of(Kind::allreduce, DType::f32, 5000);
  const auto handle = *job.engine(0).claims().declare("x", signature);
  const auto& region = job.board(0).region();
  const auto number = job.board(0).directory().signatures().number(handle.id, 0);
  REQUIRE(number != 0);
  auto& shared = region.tables().signatures[number - 1];
  shared.kind = static_cast<Kind>(99);
  shared.dtype = static_cast<DType>(99);
  shared.elements = ~std::uint64_t{0};
  CHECK(job.engine(0).claims().signature(handle.id) == signature);
}

TEST_CASE("the number of pending tensors is bounded by the capacity, and so are their ids") {
  SimJob job(2, 1, tight_params());
  auto& region = job.board(0).region();
  for (int r = 0; r < 2; ++r) job.add(r, "x", vector_of(Kind::allreduce, DType::f32, 5000), false);
  for (std::uint32_t i = 0; i < region.params().capacity; ++i)
    region.tables().pending[i].id = 0xfffffff0U + i;
  region.body().pending_count = 0xffffffffU;
  job.run(20'000);
  CHECK(region.body().pending_count.load() <= region.params().capacity);
}

TEST_CASE("a buffer that is not in its rank's arena is refused") {
  SimJob job(2, 1, tight_params());
  const horo::LocalRank peer{1};
  auto& host = job.host(0);
  const auto arena = job.host(1).my_arena();
  CHECK(host.peer_memory(peer, arena, 64) != nullptr);
  CHECK(host.peer_memory(peer, arena + host.params().arena_bytes - 63, 64) == nullptr);
  CHECK(host.peer_memory(peer, 0, 64) == nullptr);
  CHECK(host.peer_memory(peer, ~std::uint64_t{0}, 64) == nullptr);
  CHECK(host.peer_memory(peer, arena, ~std::uint64_t{0}) == nullptr);
}
