// SPDX-License-Identifier: Apache-2.0
// Joining, leaving, declaring and submitting; who drives progress is in session_progress.cpp,
// process sets are in session_sets.cpp.
#include "runtime/session.hpp"

#include <algorithm>
#include <bit>
#include <pthread.h>
#include <unistd.h>

#include "base/log.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime {

namespace {

constexpr Duration kStandstill = std::chrono::seconds(1);  ///< No wake-up is as late as this.

/// Ranks of one host share its memory, whatever else was asked for.
void warn_of_wishes(CpuOperations wanted, const HostMemory& host) {
  if (host.me() != LocalRank{0} || host.local_size() == 1) return;
  if (wanted != CpuOperations::gloo && wanted != CpuOperations::mpi) return;
  log::warn("runtime",
            "HORO_CPU_OPERATIONS={}: all ranks are on this host, so shm moves their tensors",
            wanted == CpuOperations::gloo ? "gloo" : "mpi");
}

// The longest a waiter spins before it sleeps. With a core for every rank a peer is on its way and
// comes within microseconds; with more ranks than cores it may be waiting for this very core.
constexpr Duration kSpinOnOwnCore = std::chrono::microseconds(50);
constexpr Duration kSpinOnSharedCore = std::chrono::microseconds(3);

// A session's own thread that wakes where every core computes takes one from its rank, and the
// caches with it; nothing is done any sooner. Long enough to leave most steps of a training alone.
constexpr Duration kWakeDelayOnSharedCore = std::chrono::milliseconds(200);

}  // namespace

Result<std::unique_ptr<Session>> Session::join(bootstrap::Meeting meeting,
                                               const SessionOptions& options) {
  const auto& me = meeting.identity;
  HORO_TRY(auto host,
           HostMemory::attach(meeting.board.value(), me.local_rank, me.rank, options.board));
  meeting.board.reset();
  if (host->local_size() != me.local_size) {
    return fail(Errc::protocol, "the board is for {} ranks, HORO_LOCAL_SIZE says {}",
                host->local_size(), me.local_size);
  }
  std::vector<Rank> everybody;
  for (int r = 0; r < me.size; ++r) everybody.emplace_back(r);
  std::unique_ptr<Session> session(new Session(std::move(meeting), options, std::move(host)));
  if (session->meeting_.hosts.size() <= 1) {
    warn_of_wishes(options.hosts.operations, *session->host_);
    HORO_TRY_STATUS(session->sets_.add(std::move(everybody)));
    HORO_TRY_STATUS(session->meet(options.start_timeout));
  } else {
    HORO_TRY_STATUS(session->meet(options.start_timeout));
    HORO_TRY(session->hosts_, Hosts::meet(session->meeting_, *session->host_, options.hosts));
    session->sets_.connect(*session->hosts_);
    session->hosts_->examine_by(session->stalls_);
    if (session->hosts_->leads()) session->stalls_.lead(session->hosts_->own_name());
    HORO_TRY_STATUS(session->sets_.add(std::move(everybody)));
  }
  session->sets_.on_loss([raw = session.get()](Rank lost) {
    raw->host_->my_slot().heard.store(static_cast<std::uint32_t>(lost.value()) + 1,
                                      std::memory_order_seq_cst);
    if (raw->meeting_.vigil) raw->meeting_.vigil->tell(lost);
  });
  session->settle_crowding();
  session->background_ = start_quiet_thread([raw = session.get()] { raw->run_background(); });
  return session;
}

Session::Session(bootstrap::Meeting meeting, const SessionOptions& options,
                 std::unique_ptr<HostMemory> host)
    : meeting_(std::move(meeting)),
      host_(std::move(host)),
      own_spin_(options.spin < Duration::zero()),
      spin_(own_spin_ ? kSpinOnSharedCore : options.spin),
      own_wake_delay_(options.wake_delay_set),
      wake_delay_(timeline::ticks_in(Duration(host_->params().wake_delay_ns))),
      arena_(std::make_shared<Arena>(host_)),
      sets_(*host_, operations_, SteadyClock::instance()),
      stalls_(*host_, sets_, options.stalls),
      spread_(*host_) {
  publish_cores(*host_);
}

void Session::settle_crowding() {
  const bool crowded = outnumber_cores(*host_);
  if (crowded) operations_.lent().lend_from(*arena_, host_->local_size());
  no_core_spare_ = !own_wake_delay_ && hosts_ == nullptr && outnumber_cores(*host_, 2);
  if (no_core_spare_) wake_delay_ = timeline::ticks_in(kWakeDelayOnSharedCore);
  if (!own_spin_) return;
  own_core_ = !crowded;
  crowded_ = crowded;
  spin_ = crowded ? kSpinOnSharedCore : kSpinOnOwnCore;
}

Session::~Session() {
  shutdown();
}

std::string Session::absent_ranks() {
  std::string text;
  for (int r = 0; r < host_->local_size(); ++r) {
    if (host_->slot(LocalRank{r}).state.load(std::memory_order_seq_cst) != RankState::absent)
      continue;
    // On one host local ranks are ranks.
    const auto& hosts = meeting_.hosts;
    const auto rank = hosts.size() <= 1
                          ? Rank{r}
                          : hosts[static_cast<std::size_t>(meeting_.identity.host_index)]
                                .ranks[static_cast<std::size_t>(r)];
    if (text.size() < 200) text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  }
  return text;
}

Status Session::meet(Duration timeout) {
  auto& header = host_->header();
  auto& slot = host_->my_slot();
  auto absent = RankState::absent;
  slot.pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
  if (!slot.state.compare_exchange_strong(absent, RankState::attached, std::memory_order_seq_cst)) {
    return fail(Errc::unavailable, "rank {} of this job has joined before; a rank joins once",
                meeting_.identity.rank);
  }
  ring_all(header);
  const auto& clock = SteadyClock::instance();
  auto deadline = Deadline::in(clock, timeout);
  for (;;) {
    const auto seen = slot.bell.load(std::memory_order_seq_cst);
    if (absent_ranks().empty()) return {};
    if (poison_of(header).cause != LossCause::none) {
      slot.poison_ack.store(1, std::memory_order_seq_cst);
      return fail(Errc::peer_lost, "before all ranks had started: {}", sets_.loss_message());
    }
    // Late by far: this process was stopped meanwhile, and the others with it.
    if (deadline.expired(clock.now() - kStandstill)) deadline = Deadline::in(clock, timeout);
    if (deadline.expired(clock.now())) {
      return fail(Errc::timed_out,
                  "rank {} waited for rank {}, which did not call horo_init; raise "
                  "HORO_START_TIMEOUT if it is only slow",
                  meeting_.identity.rank, absent_ranks());
    }
    slot.foreground_sleepers.fetch_add(1, std::memory_order_seq_cst);
    futex::wait(slot.bell, seen, deadline.left(clock.now()), kForeground);
    slot.foreground_sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void Session::shutdown() {
  if (left_.exchange(true)) return;
  auto& slot = host_->my_slot();
  if (background_.joinable()) {
    slot.state.store(RankState::leaving, std::memory_order_seq_cst);
    const auto& clock = SteadyClock::instance();
    {
      const TakenToken token(*this);
      // Other ranks need this one for what all have agreed on; the rest is taken back.
      while ((!sets_.withdraw() || sets_.active()) && !sets_.lost()) {
        if (!sets_.progress())
          sleep_as_driver(kForeground, Deadline::in(clock, std::chrono::milliseconds(100)));
      }
      stopping_.store(true, std::memory_order_seq_cst);
    }
    slot.bell.fetch_add(1, std::memory_order_seq_cst);
    futex::wake(slot.bell);
    background_.join();
  }
  slot.poison_ack.store(1, std::memory_order_seq_cst);
  slot.state.store(RankState::detached, std::memory_order_seq_cst);
  host_->body().gone.fetch_add(1, std::memory_order_seq_cst);
  ring_all(host_->header());
  if (hosts_ != nullptr) hosts_->leave();
  meeting_.vigil.reset();
}

Result<TensorHandle> Session::declare(SetId set, std::string_view name, const Signature& signature,
                                      const GroupName& group) {
  HORO_TRY(ProcessSet* const own, own_set(set));
  if (signature.kind == Kind::broadcast && own->rank_of(Rank{signature.root}) < 0) {
    return fail(Errc::invalid_argument, "root rank {} is not in process set {}", signature.root,
                set);
  }
  return own->engine->declare(name, signature, group);
}

Session::Urgency Session::urgency(Board& board, std::uint64_t bytes, bool completed,
                                  std::uint64_t ticks) {
  // A submit makes no system call, unless this mark made a tensor ready that somebody sleeps for,
  // or a bucket is full and there is a core for it, or the oldest ready tensor has waited long
  // enough for company.
  if (!completed) return Urgency::none;
  auto& body = board.body();
  const auto& params = board.params();
  const auto full = params.fusion_threshold;
  if (!no_core_spare_ &&
      (bytes >= full || body.ready_bytes.load(std::memory_order_relaxed) >= full)) {
    return Urgency::everybody;
  }
  if (host_->body().impatient.load(std::memory_order_seq_cst) != 0) {
    // Of this rank, others than the caller may wait for it.
    const bool here = callbacks_.load(std::memory_order_relaxed) != 0 ||
                      local_waiters_.load(std::memory_order_seq_cst) != 0;
    return here ? Urgency::everybody : Urgency::peers;
  }
  auto since = body.first_ready.load(std::memory_order_relaxed);
  if (since == 0 &&
      body.first_ready.compare_exchange_strong(since, ticks, std::memory_order_relaxed))
    since = ticks;
  // Another rank's may be later than this one's, read before.
  const auto waited = ticks > since ? ticks - since : 0;
  return waited >= wake_delay_ ? Urgency::everybody : Urgency::none;
}

Result<Operation*> Session::prepare(const SetSubmission& s, ProcessSet*& own) {
  if (left_.load(std::memory_order_relaxed))
    return fail(Errc::shut_down, "horo_shutdown was called");
  HORO_TRY(own, own_set(s.set));
  auto& engine = *own->engine;
  HORO_TRY_STATUS(engine.health());
  HORO_TRY(Operation* const operation, operations_.take());
  operation->set = s.set;
  operation->recorded_set = own->board->recorded_set();
  const auto claimed = [&]() -> Status {
    HORO_TRY(const auto id, engine.claim(s.tensor, s.given, *operation));
    auto signature = engine.signature(id);
    signature.root = own->rank_of(Rank{signature.root});
    auto status = check(signature, s.given, own->rank_of(meeting_.identity.rank),
                        static_cast<int>(own->ranks.size()));
    if (!status) engine.let_go(id, *operation);
    return status;
  }();
  if (claimed) return operation;
  operations_.put(*operation);
  return Failure(Error(claimed.error()));
}

void Session::launch(const Submission& given, Operation& operation, ProcessSet& own,
                     std::uint64_t ticks) {
  const auto id = operation.tensor;
  auto& engine = *own.engine;
  auto& board = *own.board;
  const auto now = note_call();
  record_submitted(operation.recorded_set, id, ticks);
  // Once it is offered it may be done at once, and the tensor another's.
  const auto bytes = engine.signature(id).bytes();
  const bool completed = engine.offer(id, given, operation);
  // Nobody may ever wait for it: then this rank's own thread has to know when to look.
  if (stalls_.arm(board, now)) ring(board.spans() ? host_->slot(LocalRank{0}) : host_->my_slot());
  const auto urgent = urgency(board, bytes, completed, ticks);
  if (board.spans()) {
    if (completed) tell_other_hosts(own, urgent);
  } else if (urgent != Urgency::none && board.cut(0)) {
    // This rank's own thread may sleep on: the caller is about to wait, most of the time, and if
    // not, a peer that lacks this rank's share rings.
    const auto woken = board.wake(
        interest::kEntries, urgent == Urgency::everybody ? Board::Self::too : Board::Self::spared);
    wakes_.fetch_add(static_cast<std::uint64_t>(woken), std::memory_order_relaxed);
  }
}

void Session::tell_other_hosts(ProcessSet& own, Urgency urgent) {
  // Other hosts may wait for it, whatever this one does: it never stays here for long. The leader
  // of another process comes late enough by itself to find more than this.
  if (urgent == Urgency::none && hosts_->leads()) {
    hosts_->look_soon();
  } else {
    own.engine->call_leader();
  }
}

Result<Operation*> Session::submit(SetId set, TensorHandle tensor, const Submission& given) {
  // One reading for all that ask, and before what it can be read beside.
  const auto ticks = timeline::ticks_now(by_processor_);
  const SetSubmission submission{.set = set, .tensor = tensor, .given = given};
  ProcessSet* own = nullptr;
  HORO_TRY(Operation* const operation, prepare(submission, own));
  launch(given, *operation, *own, ticks);
  return operation;
}

Status Session::submit_all(std::span<const SetSubmission> submissions,
                           std::vector<Operation*>& operations) {
  std::vector<ProcessSet*> sets(submissions.size());
  operations.clear();
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    auto operation = prepare(submissions[i], sets[i]);
    if (operation) {
      operations.push_back(*operation);
      continue;
    }
    while (!operations.empty()) {
      const auto last = operations.size() - 1;
      sets[last]->engine->let_go(operations[last]->tensor, *operations[last]);
      operations_.put(*operations[last]);
      operations.pop_back();
    }
    return Failure(std::move(operation).error());
  }
  for (std::size_t i = 0; i < submissions.size(); ++i)
    launch(submissions[i].given, *operations[i], *sets[i], timeline::ticks_now(by_processor_));
  return {};
}

bool Session::homogeneous() const {
  const auto& hosts = meeting_.hosts;
  return std::all_of(hosts.begin(), hosts.end(), [&](const bootstrap::Host& host) {
    return host.ranks.size() == hosts.front().ranks.size();
  });
}

SessionCounters Session::counters() const {
  const auto c = sets_.totals();
  return {.tensors = c.tensors,
          .entries = c.entries,
          .bytes = c.bytes,
          .fused_bytes = c.fused_bytes,
          .direct_bytes = c.direct_bytes,
          .sleeps = sleeps_.load(std::memory_order_relaxed),
          .wakes = wakes_.load(std::memory_order_relaxed)};
}

}  // namespace horo::runtime
