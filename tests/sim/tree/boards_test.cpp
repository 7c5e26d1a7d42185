// SPDX-License-Identifier: Apache-2.0
// Several hosts in one process with their real boards, engines and leaders, moved one step at a
// time in an order drawn from a seed; frames take their time. HORO_SIM_SEED repeats a run.
#include "trainees.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <random>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/tree/agreement/board_log.hpp"
#include "runtime/tree/leader/leader.hpp"
#include "timeline/record/ticks.hpp"

using namespace horo;           // NOLINT(google-build-using-namespace): a test of it
using namespace horo::runtime;  // NOLINT(google-build-using-namespace): a test of it
using horo::sim::vector_of;

namespace {

std::uint64_t base_seed() {
  const char* text = std::getenv("HORO_SIM_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

/// Moves nothing; a bucket is done one progress after it was started.
class IdleBackend final : public Backend {
 public:
  BackendCaps caps() const override { return {.name = "idle"}; }

  Status start(Bucket /*bucket*/) override {
    ++started_;
    return {};
  }

  bool progress() override {
    if (completed_ == started_) return false;
    ++completed_;
    return true;
  }

  std::uint64_t completed() const override { return completed_; }

  std::uint64_t started() const override { return started_; }

  horo::runtime::CopyTimes copied() const override { return {}; }

  Status health() const override { return {}; }

  void abort() override { completed_ = started_; }

 private:
  std::uint64_t started_ = 0;
  std::uint64_t completed_ = 0;
};

struct TestRank {
  std::unique_ptr<HostMemory> memory;
  OperationTable operations;
  std::unique_ptr<Board> board;
  std::unique_ptr<Engine> engine;
  std::vector<std::function<void(TestRank&)>> agenda;  ///< The last first.
  std::vector<Operation*> submitted;
  bool leaving = false;
};

class Job;

struct TestHost final : public tree::Outbox {
  TestHost(Job& owner, int host) : job(owner), number(host) {}

  void send(std::size_t link, std::string payload) override;

  Job& job;
  int number;
  UniqueFd fd;
  std::vector<std::unique_ptr<TestRank>> ranks;
  std::unique_ptr<tree::BoardState> state;
  std::unique_ptr<tree::BoardLog> log;
  std::unique_ptr<tree::Leader> leader;
  std::vector<std::deque<std::string>> inbox;  ///< By link.
};

class Job {
 public:
  Job(int hosts, int ranks_per_host, int radix, std::uint64_t seed, std::uint32_t capacity = 64)
      : random(seed), capacity_(capacity) {
    for (int h = 0; h < hosts; ++h) {
      tree::HostRanks host{.name = fmt::format("node{}", h), .ranks = {}};
      for (int r = 0; r < ranks_per_host; ++r) host.ranks.emplace_back(h * ranks_per_host + r);
      names.push_back(std::move(host));
    }
    for (int h = 0; h < hosts; ++h) add_host(h, ranks_per_host, radix);
    for (auto& host : all) {
      for (const auto& child : host->leader->place().children) {
        auto& below = *all[static_cast<std::size_t>(child.first)];
        REQUIRE(host->leader->greet(as_bytes(below.leader->hello()), now));
        REQUIRE(below.leader->greet(as_bytes(host->leader->hello()), now));
      }
      host->leader->add_set(SetId{}, tree::RankRanges::of(0, size()), host->log.get(), now);
    }
  }

  int size() const { return static_cast<int>(names.size() * names[0].ranks.size()); }

  std::vector<Rank> everybody() const {
    std::vector<Rank> ranks;
    for (int r = 0; r < size(); ++r) ranks.emplace_back(r);
    return ranks;
  }

  TestRank& rank(int r) {
    const auto per = names[0].ranks.size();
    return *all[static_cast<std::size_t>(r) / per]->ranks[static_cast<std::size_t>(r) % per];
  }

  void step() {
    auto& host = *all[random() % all.size()];
    if (random() % 3 == 0) {
      auto link = random() % host.inbox.size();
      if (host.inbox[link].empty()) return;
      const auto payload = std::move(host.inbox[link].front());
      host.inbox[link].pop_front();
      host.leader->on_frame(link, as_bytes(payload), now);
      REQUIRE(host.leader->fault() == "");
      return;
    }
    auto& rank = *host.ranks[random() % host.ranks.size()];
    if (!rank.agenda.empty() && random() % 4 == 0) {
      const auto next = std::move(rank.agenda.back());
      rank.agenda.pop_back();
      next(rank);
      return;
    }
    if (rank.leaving) rank.engine->withdraw();
    rank.engine->progress();
  }

  bool run() {
    for (int i = 0; i < 2'000'000; ++i) {
      if (i % 64 == 0 && done()) return true;
      step();
    }
    return done();
  }

  bool done() {
    for (int r = 0; r < size(); ++r) {
      if (!rank(r).agenda.empty()) return false;
      for (const auto* operation : rank(r).submitted) {
        if (!operation->done()) return false;
      }
    }
    return true;
  }

  std::mt19937_64 random;
  std::vector<tree::HostRanks> names;
  std::vector<std::unique_ptr<TestHost>> all;
  TimePoint now{};

 private:
  void add_host(int h, int ranks, int radix) {
    auto host = std::make_unique<TestHost>(*this, h);
    BoardParams params;
    params.capacity = capacity_;
    params.chunk_bytes = 4096;
    params.ring_slots = 2;
    params.arena_bytes = 1 << 20;
    host->fd = UniqueFd(*make_board({.local_size = ranks, .nonce = 1}));
    for (int r = 0; r < ranks; ++r) {
      auto rank = std::make_unique<TestRank>();
      rank->memory =
          *HostMemory::attach(host->fd.value(), LocalRank{r}, Rank{h * ranks + r}, params);
      rank->memory->slot(rank->memory->me()).state.store(RankState::attached);
      rank->memory->waker().say_awake();
      Members members;
      for (int m = 0; m < ranks; ++m) members.emplace_back(m);
      rank->board = *Board::attach(*rank->memory, 0, std::move(members), BoardSpan::several_hosts);
      SpanningSet set{.ranks = everybody(), .look = {}, .path_reason = {}};
      if (r == 0) set.look = [this, leads = host.get()] { leads->leader->on_news(now); };
      rank->engine = std::make_unique<Engine>(*rank->board, rank->operations,
                                              std::make_unique<IdleBackend>(), std::move(set));
      host->ranks.push_back(std::move(rank));
    }
    auto& first = *host->ranks[0];
    host->state = std::make_unique<tree::BoardState>(*first.memory);
    host->log = std::make_unique<tree::BoardLog>(*first.board);
    tree::CutRules rules{.fusion_threshold = random() % 2 == 0 ? 0U : 1U << 20U,
                         .depth = 1 + random() % 2,
                         .most_words = first.board->leader_port()->most_words(),
                         .most_tensors = first.board->leader_port()->most_tensors(),
                         .most_names = capacity_};
    host->leader = std::make_unique<tree::Leader>(
        tree::LeaderParams{.host = h, .radix = radix, .rules = rules}, names, *host->state, *host);
    host->inbox.resize(host->leader->place().children.size() + 1);
    all.push_back(std::move(host));
  }

  const std::uint32_t capacity_;
};

void TestHost::send(std::size_t link, std::string payload) {
  const auto& place = leader->place();
  const int to = link == tree::Leader::kParent ? place.parent : place.children[link - 1].first;
  auto& other = *job.all[static_cast<std::size_t>(to)];
  // The link's number on the other side.
  std::size_t back = tree::Leader::kParent;
  if (link == tree::Leader::kParent) {
    const auto& siblings = other.leader->place().children;
    const auto mine = std::find_if(siblings.begin(), siblings.end(),
                                   [this](const Branch& b) { return b.first == number; });
    back = static_cast<std::size_t>(mine - siblings.begin()) + 1;
  }
  other.inbox[back].push_back(std::move(payload));
}

/// Puts a submission on a rank's agenda; in place, if there is memory for it.
void plan(TestRank& rank, const std::string& name, const Signature& signature,
          const std::string& group = {}, std::uint32_t group_size = 0, float* memory = nullptr) {
  rank.agenda.push_back([name, signature, group, group_size, memory](TestRank& r) {
    static std::vector<std::byte> anything(1 << 16);
    void* const buffer = memory != nullptr ? static_cast<void*>(memory) : anything.data();
    const auto id = r.engine->claims().declare(name, signature, {group, group_size});
    if (!id) {
      CHECK(id.error().code == Errc::shut_down);
      return;
    }
    auto* const operation = *r.operations.take();
    const Submission given{.in = buffer, .out = buffer};
    const auto claimed = r.engine->claims().claim(*id, given, *operation);
    REQUIRE(claimed);
    r.engine->claims().submit(*claimed, given, *operation,
                              timeline::ticks_now(timeline::counts_by_processor()));
    r.submitted.push_back(operation);
  });
}

Signature join_signature() {
  Signature signature;
  signature.kind = Kind::join;
  return signature;
}

}  // namespace

TEST_CASE("boards of several hosts agree on one log") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 60; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    std::mt19937_64 random(seed + i);
    Job job(1 + static_cast<int>(random() % 5), 1 + static_cast<int>(random() % 3), 2, seed + i);
    for (int round = 0; round < 3; ++round) {
      std::vector<int> odd;  // By tensor: the rank that disagrees, or -1.
      for (int t = 0; t < 12; ++t) {
        odd.push_back(job.size() > 1 && random() % 4 == 0
                          ? static_cast<int>(random() % static_cast<unsigned>(job.size()))
                          : -1);
      }
      std::vector<std::vector<int>> orders;
      for (int r = 0; r < job.size(); ++r) {
        std::vector<int> order(12);
        for (int t = 0; t < 12; ++t) order[static_cast<std::size_t>(t)] = t;
        std::shuffle(order.begin(), order.end(), random);
        for (auto at = order.rbegin(); at != order.rend(); ++at) {
          auto signature = vector_of(Kind::allreduce, 100 + *at + round / 2);
          if (odd[static_cast<std::size_t>(*at)] == r) signature.dtype = DType::f64;
          plan(job.rank(r), fmt::format("t{}", *at), signature);
        }
        orders.push_back(std::move(order));
      }
      REQUIRE(job.run());
      for (int r = 0; r < job.size(); ++r) {
        auto& rank = job.rank(r);
        for (std::size_t n = 0; n < rank.submitted.size(); ++n) {
          const auto t = static_cast<std::size_t>(orders[static_cast<std::size_t>(r)][n]);
          CHECK(rank.submitted[n]->status() == (odd[t] < 0 ? Errc::ok : Errc::mismatch));
          rank.operations.put(*rank.submitted[n]);
        }
        rank.submitted.clear();
      }
    }
    for (auto& host : job.all) CHECK_FALSE(host->state->loss());
  }
}

namespace {

/// A sum that comes again and is alone in its entry, so that the agreement does it.
void sum_few(Job& job) {
  const auto n = static_cast<std::size_t>(job.size());
  std::vector<std::array<float, 3>> few(n, {1, 2, 3});
  for (std::size_t r = 0; r < n; ++r)
    plan(job.rank(static_cast<int>(r)), "few", vector_of(Kind::allreduce, 3), {}, 0, few[r].data());
  REQUIRE(job.run());
  const auto size = static_cast<float>(n);
  for (const auto& sums : few) CHECK(sums == std::array<float, 3>{size, 2 * size, 3 * size});
}

}  // namespace

TEST_CASE("the agreement alone does small sums that come again") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 30; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    std::mt19937_64 random(seed + i);
    Job job(1 + static_cast<int>(random() % 4), 1 + static_cast<int>(random() % 3), 2, seed + i);
    const auto n = static_cast<std::size_t>(job.size());
    // The backend moves nothing, so what it has run is left as it was.
    constexpr std::size_t kMany = 700;
    for (int round = 0; round < 3; ++round) {
      std::vector<std::array<float, 3>> few(n);
      std::vector<std::vector<float>> many(n, std::vector<float>(kMany, 1));
      for (std::size_t r = 0; r < n; ++r) {
        const auto own = static_cast<float>(r);
        few[r] = {own, 1, 2 * own};
        auto& rank = job.rank(static_cast<int>(r));
        plan(rank, "few", vector_of(Kind::allreduce, 3), {}, 0, few[r].data());
        plan(rank, "many", vector_of(Kind::allreduce, kMany), {}, 0, many[r].data());
        if (random() % 2 == 0) std::swap(rank.agenda[0], rank.agenda[1]);
      }
      REQUIRE(job.run());
      const auto sum = static_cast<float>(n * (n - 1) / 2);
      const std::array<float, 3> all{sum, static_cast<float>(n), 2 * sum};
      for (std::size_t r = 0; r < n; ++r) {
        const auto own = static_cast<float>(r);
        // In one entry with the large one it takes the large one's way.
        if (round == 0 || few[r] != all) CHECK(few[r] == std::array<float, 3>{own, 1, 2 * own});
        CHECK((few[r] == all) == (few[0] == all));
        CHECK(many[r] == std::vector<float>(kMany, 1));
      }
      sum_few(job);
    }
  }
}

TEST_CASE("ranks of several hosts join, and go on together") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 60; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    std::mt19937_64 random(seed + i);
    Job job(2 + static_cast<int>(random() % 3), 1 + static_cast<int>(random() % 3), 2, seed + i);
    for (int r = 0; r < job.size(); ++r) {
      auto& rank = job.rank(r);
      plan(rank, "join", join_signature());
      for (auto t = static_cast<int>(random() % 8); t-- > 0;)
        plan(rank, fmt::format("t{}", t), vector_of(Kind::allreduce, 1 + t));
    }
    REQUIRE(job.run());
    for (int r = 0; r < job.size(); ++r) plan(job.rank(r), "after", vector_of(Kind::allreduce, 5));
    REQUIRE(job.run());
    for (int r = 0; r < job.size(); ++r) {
      for (const auto* operation : job.rank(r).submitted) CHECK(operation->status() == Errc::ok);
    }
  }
}

TEST_CASE("idle names are evicted when far more names are used than fit") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 30; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    std::mt19937_64 random(seed + i);
    Job job(1 + static_cast<int>(random() % 4), 1 + static_cast<int>(random() % 3), 2, seed + i,
            16);
    for (int round = 0; round < 30; ++round) {
      // Names of a pool of 60, each with a size that may be another one each time.
      std::vector<int> names(60);
      for (int n = 0; n < 60; ++n) names[static_cast<std::size_t>(n)] = n;
      std::shuffle(names.begin(), names.end(), random);
      const auto several = random() % 7;
      names.resize(several);
      const auto grouped = random() % 3 == 0 && several > 1 ? static_cast<std::uint32_t>(2) : 0;
      const auto count = static_cast<std::int64_t>(1 + random() % 3);
      const auto odd = job.size() > 1 && random() % 4 == 0 && several > 0 && grouped == 0
                           ? static_cast<int>(random() % static_cast<unsigned>(job.size()))
                           : -1;
      // A joined rank takes part in tensors that the others still submit, so their order is the
      // same.
      const bool joins = odd < 0 && random() % 3 == 0;
      std::vector<std::vector<int>> orders;
      for (int r = 0; r < job.size(); ++r) {
        auto mine = names;
        const auto has = joins && grouped == 0 ? random() % (several + 1) : several;
        mine.resize(has);
        std::shuffle(mine.begin(), mine.end(), random);
        if (joins) plan(job.rank(r), "join", join_signature());
        for (auto at = mine.rbegin(); at != mine.rend(); ++at) {
          auto signature = vector_of(Kind::allreduce, count);
          if (r == odd && *at == names[0]) signature.dtype = DType::f64;
          const bool in_group = grouped != 0 && (*at == names[0] || *at == names[1]);
          plan(job.rank(r), fmt::format("n{}", *at), signature,
               in_group ? fmt::format("g{}", round) : "", in_group ? grouped : 0);
        }
        orders.push_back(std::move(mine));
      }
      REQUIRE(job.run());
      for (int r = 0; r < job.size(); ++r) {
        auto& rank = job.rank(r);
        const auto& mine = orders[static_cast<std::size_t>(r)];
        REQUIRE(rank.submitted.size() == mine.size() + (joins ? 1 : 0));
        for (std::size_t n = 0; n < rank.submitted.size(); ++n) {
          const bool differs = odd >= 0 && n < mine.size() && mine[n] == names[0];
          INFO(rank.submitted[n]->message());
          CHECK(rank.submitted[n]->status() == (differs ? Errc::mismatch : Errc::ok));
          rank.operations.put(*rank.submitted[n]);
        }
        rank.submitted.clear();
      }
    }
    for (auto& host : job.all) {
      CHECK_FALSE(host->state->loss());
      CHECK(host->ranks[0]->board->region().body().tensor_count == 16);
    }
  }
}

TEST_CASE("operations that a rank on another host left end with shut_down") {
  const auto seed = base_seed();
  WARN("HORO_SIM_SEED=" << seed);
  for (std::uint64_t i = 0; i < 60; ++i) {
    INFO("HORO_SIM_SEED=" << seed + i);
    std::mt19937_64 random(seed + i);
    Job job(3, 2, 1, seed + i);
    const auto leaver = static_cast<int>(random() % 6);
    for (int r = 0; r < 6; ++r) {
      auto& rank = job.rank(r);
      if (r == leaver) {
        rank.agenda.push_back([](TestRank& self) { self.leaving = true; });
      } else {
        plan(rank, "never", vector_of(Kind::allreduce, 9));
      }
      plan(rank, "both", vector_of(Kind::allreduce, 3));
    }
    REQUIRE(job.run());
    for (int r = 0; r < 6; ++r) {
      if (r == leaver) continue;
      if (job.rank(r).submitted.size() < 2) continue;  // It heard of it before it submitted.
      const auto* never = job.rank(r).submitted.at(1);
      CHECK(never->status() == Errc::shut_down);
      CHECK(never->message() ==
            fmt::format("rank {} has left the job, and nothing can complete without it: its "
                        "program ended or called shutdown. Give all ranks the same number of "
                        "steps, or let those that have fewer call join()",
                        leaver));
    }
  }
}
