// SPDX-License-Identifier: Apache-2.0
// One rank's progress in one process set. Never blocks; the thread that drives it decides when to
// sleep.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "runtime/board/board.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/engine/agreement/agreement.hpp"
#include "runtime/engine/agreement/spanning_agreement.hpp"
#include "runtime/engine/claims.hpp"
#include "runtime/engine/entry_observer.hpp"
#include "runtime/engine/entry_runner.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/engine/transfers.hpp"

namespace horo::runtime {

/// Puts together what a rank does in a set: claims of its tensors, agreement on the log, the runner
/// of log entries, and the backend. Ends all operations when one of them fails for good.
/// Thread: the holder of the progress token, except where it says any.
class Engine {
 public:
  /// `spanning`: for a set with members on other hosts. The board and the operations outlive this.
  Engine(Board& board, OperationTable& operations, std::unique_ptr<Backend> backend,
         std::optional<SpanningSet> spanning = std::nullopt);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Does what can be done now, a bounded piece; true when anything moved.
  bool progress();

  /// Entries are begun and not done.
  bool active() const { return runner_.active(); }

  /// Bytes of these entries.
  std::uint64_t bytes_in_flight() const { return runner_.bytes_in_flight(); }

  /// A look would find something to do or to finish. Thread: any.
  bool has_news() const { return runner_.has_news() || agreement_->has_news(); }

  /// As has_news(), but without entries that nobody needs this rank to run soon. Thread: any.
  bool is_needed() const { return runner_.is_needed() || agreement_->has_news(); }

  /// Why the backend moves nothing any more, until the report says which rank was lost; ok else.
  const Status& breakdown() const { return breakdown_; }

  /// As what this rank is lost by that.
  LossCause breakdown_cause() const {
    return backend_->caps().device_failed ? LossCause::device_failed : LossCause::cut_off;
  }

  /// Why nothing can be submitted any more; ok while all is well. Thread: any.
  Status health() const { return claims_.health(); }

  /// Tells `observer` of all entries from now on; null: nobody. It outlives its use.
  void observe(EntryObserver* observer);

  /// Drops what is in flight: afterwards this rank touches no peer's memory through this set.
  void abort();

  /// Ends all operations of this rank, now and from now on, with `status`.
  void fail_all(const Error& error) { claims_.fail_all(error); }

  /// Backs this rank out: takes marks back where tensors are not complete, and ends those
  /// operations. True when none of this rank's operations is left.
  bool withdraw();

  /// As Agreement::call_leader. Thread: any.
  bool call_leader() { return agreement_->call_leader(); }

  /// Thread: any.
  Claims& claims() { return claims_; }

  const EngineCounters& counters() const { return runner_.counters(); }

  Backend& backend() { return *backend_; }

 private:
  bool begin_entries();
  bool observe_departures();
  void break_board(const Error& error);

  Board& board_;
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Agreement> agreement_;
  Claims claims_;
  const std::unique_ptr<Transfers> transfers_;
  EntryRunner runner_;
  EntryObserver* observer_ = nullptr;
  Status breakdown_;
};

}  // namespace horo::runtime
