// SPDX-License-Identifier: Apache-2.0
// One rank's progress in one process set: reads the log in order, runs each entry, completes its
// operations. Never blocks and reads no clock unless a cycle time asks for it: who drives it
// decides when to sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/backends/backend.hpp"
#include "runtime/coordinator/board.hpp"
#include "runtime/coordinator/spanning_adasum.hpp"
#include "runtime/operation.hpp"
#include "runtime/submission.hpp"

namespace horo::runtime {

/// What this rank knows of one tensor. `operation` is taken by the submitter and given back at the
/// end; the other fields belong to whoever has it in between: first the submitter, then, from the
/// mark on, the engine.
struct LocalTensor {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  const void* in = nullptr;
  void* out = nullptr;
  std::byte* lent = nullptr;  ///< In the arena, for the bytes of this submission.
  std::atomic<std::uint32_t> incarnation{kNone};  ///< Of the handles that mean it.
  std::atomic<std::uint32_t> operation{0};        ///< Index + 1; 0: not in flight.
  std::uint32_t signature = 0;                    ///< Declared by this rank; see Engine::signature.
  std::atomic<bool> offered{false};  ///< The submitter is done with what the engine needs.
  bool agreed = false;               ///< All ranks have agreed on what is declared now.
  bool odd = false;                  ///< The tensor's generation when it was offered.
};

struct EngineCounters {
  std::atomic<std::uint64_t> tensors{0}, entries{0}, bytes{0}, fused_bytes{0}, direct_bytes{0};
};

/// Thread: the holder of the progress token, but for what says otherwise.
class Engine {
 public:
  /// `ranks`: all members, ascending, of a set with members on other hosts; empty: the board's.
  Engine(Board& board, OperationTable& operations, std::unique_ptr<Backend> backend,
         std::vector<Rank> ranks = {});

  /// On the leader of a set with members on other hosts: `look` is called when its board has
  /// something for them. Before the first submission.
  void lead(std::function<void()> look) { look_ = std::move(look); }

  /// Has the leader look at the board of such a set now: calls `look`, or wakes who leads. True
  /// when this rank does. Thread: any.
  bool call_leader();

  /// Does what can be done now, a bounded piece; true when anything moved.
  bool progress();

  /// Entries are begun and not done.
  bool active() const { return !started_.empty() || gathering_ != nullptr; }

  /// Of the entries that are begun and not done.
  std::uint64_t bytes_in_flight() const;

  /// Whether a look would find something to do or to finish. Thread: any.
  bool has_news() const;

  /// Tensors wait for company, for less than the cycle time. Thread: any.
  bool lingers() const { return board_.params().cycle_ns != 0 && board_.has_ready(); }

  /// Why nothing can be submitted any more; ok while all is well. Thread: any.
  Status health() const;

  /// Why the backend of a set over several hosts moves nothing any more, while nobody has said yet
  /// whose loss that is; ok else.
  const Status& breakdown() const { return breakdown_; }

  /// Makes `operation` the one in flight for the tensor, and pins that; offer or let_go follows,
  /// with the id that this gives. Thread: any. Fails: duplicate, invalid_argument (this rank has
  /// joined), not_found (it gave way to others).
  Result<TensorId> claim(TensorHandle handle, const Submission& given, Operation& operation);
  /// Takes a claim back; `operation` is free again.
  void let_go(TensorId id, const Operation& operation);

  /// Puts this rank's part of a claimed tensor on the board; its operation completes when it has
  /// run. True when this mark completed the tensor. Thread: any.
  bool offer(TensorId id, const Submission& given, Operation& operation);

  /// Drops what is in flight: afterwards this rank touches no peer's memory through this set.
  void abort();

  /// Ends all operations of this rank, now and from now on, with `status`.
  void fail_all(Errc status, const std::string& message);

  /// Backs this rank out: takes marks back where the tensor is not complete and ends those
  /// operations. True when none of this rank's operations is left.
  bool withdraw();

  /// Thread: any, for a tensor that is claimed.
  LocalTensor& tensor(TensorId id) {
    return blocks_[id.index() / kBlock].load(std::memory_order_acquire)[id.index() % kBlock];
  }

  /// What this rank has declared of a tensor that is claimed: a copy of its own, so that what other
  /// processes write cannot change it. Thread: any.
  const Signature& signature(TensorId id) { return signature_of(tensor(id).signature); }

  /// The tensor of `name`, whose signature and group become these. Thread: any. Fails: duplicate
  /// (in flight), resource_exhausted, peer_lost, shut_down, invalid_argument.
  Result<TensorHandle> declare(std::string_view name, const Signature& signature,
                               const GroupName& group = {});

  const EngineCounters& counters() const { return counters_; }

  Board& board() { return board_; }

  Backend& backend() { return *backend_; }

 private:
  static constexpr std::size_t kBlock = 256;
  static constexpr std::size_t kSignatures = 32;  ///< Of one block of them.
  static constexpr std::uint64_t kUnknownTicket = ~std::uint64_t{0};

  struct Started {
    std::vector<TensorId> ids;
    std::vector<ResultMemory> neutral;  ///< In place of what this rank, having joined, has not got.
    std::uint64_t bytes = 0;
    Placement placement = Placement::staged;
    std::uint64_t backend_ticket = 0;  ///< Done when the backend has completed so many; 0: done.
  };

  /// Entries whose row counts only their senders know: all members' splits are gathered first.
  struct Gathering {
    std::uint64_t ticket = 0;         ///< There when the backend has completed so many.
    std::vector<std::uint64_t> mine;  ///< Tensor by tensor, receiver by receiver.
    std::vector<std::uint64_t> all;   ///< The same, member by member.
  };

  /// Members are counted in the whole set here, on the board among those of this host.
  int size() const;
  int position() const;
  int position_of(Rank rank) const;

  Offer put_parts(TensorId id, const Signature& s, const Submission& given, Operation& operation);
  void borrow(TensorId id, Offer& offer);
  void return_lent(TensorId id, Placement placement);
  /// Of a tensor that ran without this rank, which had joined.
  void forget_agreement(TensorId id);
  bool gathers(const Entry& entry);
  Status gather_splits(const Entry& entry);
  void add_splits(const Entry& entry, std::size_t position, Bucket& bucket) const;
  /// Moves on what takes several buckets; nothing else begins meanwhile, so that the backend sees
  /// its buckets in one order on all ranks.
  Result<bool> may_begin();
  void publish_activity();
  void provide(TensorId id);
  Result<TensorId> claim_pinned(TensorHandle handle, const Submission& given, Operation& operation);
  Failure gave_way() const;
  bool give_back(TensorId id, const Operation& operation);
  void adopt(TensorHandle handle);
  bool is_mine(TensorHandle handle);
  const Signature& signature_of(std::uint32_t number) const;
  void keep(std::uint32_t number, const Signature& signature);
  void fail_if_broken(TensorId id);
  bool begin_entries();
  Status begin(const Entry& entry);
  bool offered(TensorId id);
  Status end_join(const Entry& entry, Started started);
  Result<Bucket> make_bucket(const Entry& entry, Started& started);
  Result<Part> neutral_part(const Entry& entry, std::size_t position, Started& started,
                            Signature& signature);
  /// Appends to `bucket.rows` what a kind needs of one tensor, and says what this rank receives.
  Status count_rows(const Entry& entry, std::size_t at, const Signature& s, const Part& part,
                    Bucket& bucket, std::vector<std::int64_t>& rows);
  Status provide_output(TensorId id, std::vector<std::int64_t> rows, Part& part);
  void run_alone(const Bucket& bucket);
  Status run_in_marks(const Bucket& bucket);
  Status find_payloads(const Bucket& bucket, std::size_t position);
  void copy_payloads(const Bucket& bucket, std::size_t position);
  bool finish_entries();
  void complete(TensorId id, Errc status, const std::string& message);
  void finish(std::uint32_t number, Errc status, const std::string& message);
  void count(const Bucket& bucket);
  bool observe_breakdown(Status health);
  bool observe_departures();
  /// Poisons the board if a rank has left that the entries begun here need.
  bool observe_debts();
  void break_board(const Error& error);

  Board& board_;
  OperationTable& operations_;
  const std::unique_ptr<Backend> backend_;
  CopyTimes copied_;               ///< Of the backend, by the entry that ended last.
  const std::vector<Rank> ranks_;  ///< Empty: all members are on this host.

  std::deque<Started> started_;
  std::unique_ptr<Gathering> gathering_;    ///< For the entry that begins next.
  std::unique_ptr<SpanningAdasum> adasum_;  ///< Of the last entry in `started_`.
  Status breakdown_;
  std::atomic<bool> joined_{false};  ///< This rank has no more data, until all have joined.
  std::uint64_t begun_ = 0;          ///< Entries begun: the next one to read.
  std::uint64_t cursor_ = 0;
  std::uint32_t gone_seen_ = 0;
  Rank left_{-1};  ///< The log has said that it left, and entries before that are not done yet.
  std::function<void()> look_;
  std::vector<const void*> sources_;  ///< By rank: payloads of one tensor, beside their marks.

  std::unique_ptr<std::atomic<LocalTensor*>[]> blocks_;
  std::unique_ptr<std::atomic<Signature*>[]> signatures_;  ///< By the board's numbers.
  std::atomic<std::uint64_t> begun_public_{0};
  std::atomic<std::uint32_t> active_public_{0};
  std::atomic<Errc> broken_{Errc::ok};  ///< Set once, after `broken_message_`.
  std::string broken_message_;
  EngineCounters counters_;

  std::mutex names_mutex_;
  std::vector<std::unique_ptr<LocalTensor[]>> owned_blocks_;    // HORO_GUARDED_BY(names_mutex_)
  std::vector<std::unique_ptr<Signature[]>> owned_signatures_;  // HORO_GUARDED_BY(names_mutex_)
};

}  // namespace horo::runtime
