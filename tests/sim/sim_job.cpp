// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_job.hpp"

#include <algorithm>
#include <unistd.h>

#include "base/clock.hpp"

namespace horo::sim {

using runtime::BoardParams;
using runtime::Signature;

SimJob::SimJob(int ranks, std::uint64_t seed, const BoardParams& params) : random_(seed) {
  fd_ = *make_board({.local_size = ranks, .nonce = seed});
  for (int r = 0; r < ranks; ++r) {
    auto rank = std::make_unique<SimRank>();
    rank->host = *runtime::HostMemory::attach(fd_, LocalRank{r}, Rank{r}, params);
    rank->host->slot(rank->host->me()).state.store(RankState::attached);
    // Every rank is driven by this thread: no wake-ups are needed.
    rank->host->waker().say_awake();
    rank->arena = std::make_unique<runtime::Arena>(rank->host);
    rank->sets = std::make_unique<runtime::ProcessSets>(
        *rank->host, rank->operations, SteadyClock::instance(), std::chrono::milliseconds(1200));
    ranks_.push_back(std::move(rank));
  }
  std::vector<int> everybody;
  for (int r = 0; r < ranks; ++r) everybody.push_back(r);
  add_set(everybody);
}

SetId SimJob::add_set(const std::vector<int>& ranks) {
  std::vector<Rank> members;
  for (const int r : ranks) members.emplace_back(r);
  SetId id;
  for (auto& rank : ranks_) id = *rank->sets->add(members);
  return id;
}

SimJob::~SimJob() {
  close(fd_);
}

Buffer& SimJob::add(int rank, const std::string& name, const Signature& signature, bool shared,
                    SetId set) {
  auto& r = *ranks_[static_cast<std::size_t>(rank)];
  auto buffer = std::make_unique<Buffer>();
  buffer->signature = signature;
  buffer->name = name;
  buffer->set = set;
  const auto bytes = signature.bytes();
  if (shared) {
    buffer->shared = static_cast<std::byte*>(*r.arena->allocate(bytes));
  } else {
    buffer->own.resize(std::max<std::size_t>(bytes, 1));
  }
  r.buffers.push_back(std::move(buffer));
  return *r.buffers.back();
}

Buffer& SimJob::add(int rank, const std::string& name, const Signature& signature,
                    const runtime::Submission& given, std::vector<std::int64_t> splits) {
  auto buffer = std::make_unique<Buffer>();
  buffer->signature = signature;
  buffer->name = name;
  buffer->splits = std::move(splits);
  buffer->given = given;
  buffer->given->splits = buffer->splits;
  auto& buffers = ranks_[static_cast<std::size_t>(rank)]->buffers;
  buffers.push_back(std::move(buffer));
  return *buffers.back();
}

std::byte* SimJob::allocate(int rank, std::uint64_t bytes, bool shared) {
  auto& r = *ranks_[static_cast<std::size_t>(rank)];
  if (shared) return static_cast<std::byte*>(*r.arena->allocate(bytes));
  r.memory.push_back(std::make_unique<std::byte[]>(std::max<std::uint64_t>(bytes, 1)));
  return r.memory.back().get();
}

bool SimJob::submit_next(SimRank& rank) {
  if (rank.submitted == rank.buffers.size() || rank.sets->loss().lost()) return false;
  auto& buffer = *rank.buffers[rank.submitted++];
  auto& engine = *rank.sets->find(buffer.set)->engine;
  const auto id =
      engine.claims().declare(buffer.name, buffer.signature, {buffer.group, buffer.group_size});
  if (!id) return false;
  buffer.operation = *rank.operations.take();
  const auto given =
      buffer.given.value_or(runtime::Submission{.in = buffer.data(), .out = buffer.data()});
  if (const auto claimed = engine.claims().claim(*id, given, *buffer.operation)) {
    engine.claims().submit(*claimed, given, *buffer.operation, 0);
  } else {
    buffer.operation = nullptr;
  }
  return true;
}

void SimJob::submit_all() {
  for (auto& rank : ranks_) {
    while (submit_next(*rank)) {
    }
  }
}

void SimJob::step() {
  ++steps_;
  auto& rank = *ranks_[random_() % ranks_.size()];
  if (!rank.alive || rank.paused) return;
  if (random_() % 4 == 0 && submit_next(rank)) return;
  rank.sets->progress();
}

bool SimJob::all_done() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) {
    if (!rank->alive) return true;
    if (rank->submitted != rank->buffers.size() && !rank->sets->loss().lost()) return false;
    return std::all_of(rank->buffers.begin(), rank->buffers.end(), [](const auto& buffer) {
      return buffer->operation == nullptr || buffer->operation->done();
    });
  });
}

bool SimJob::run(std::uint64_t most) {
  for (std::uint64_t i = 0; i < most; ++i) {
    if (i % 16 == 0 && all_done()) return true;
    step();
  }
  return all_done();
}

void SimJob::kill(int rank) {
  auto& r = *ranks_[static_cast<std::size_t>(rank)];
  r.alive = false;
  auto& header = *r.host->board();
  header.slot(LocalRank{rank}).state.store(RankState::dead);
  poison_board(r.host->board(), {.rank = Rank{rank}, .cause = LossCause::signalled, .detail = 9},
               "sim");
}

Signature vector_of(runtime::Kind kind, runtime::DType dtype, std::int64_t count) {
  Signature s;
  s.kind = kind;
  s.dtype = dtype;
  const auto status = runtime::set_shape(s, {&count, 1});
  HORO_CHECK(status.has_value());
  return s;
}

BoardParams tight_params() {
  BoardParams params;
  params.capacity = 64;
  params.ring_slots = 2;
  params.chunk_bytes = 4096;
  params.arena_bytes = 64 << 20;
  params.tuning.fusion_threshold = 64 << 10;
  return params;
}

}  // namespace horo::sim
