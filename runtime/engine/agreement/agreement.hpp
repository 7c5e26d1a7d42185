// SPDX-License-Identifier: Apache-2.0
// How a process set's members come to the same log.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/board/marks.hpp"
#include "runtime/engine/operations/local_tensors.hpp"
#include "runtime/engine/operations/operation.hpp"
#include "runtime/tensor/submission.hpp"
#include "runtime/tensor/tuning.hpp"

namespace horo::runtime {

/// The part of agreement that depends on where a set's members are. It has two forms, chosen when
/// the engine is made: all members on this host, or members on several hosts. Members are counted
/// in the whole set. Thread: the holder of the progress token, except where it says any.
class Agreement {
 public:
  virtual ~Agreement() = default;

  int size() const { return size_; }

  /// This rank's position among the members.
  int position() const { return position_; }

  /// The member that has this rank of the job; -1: none.
  virtual int position_of(Rank rank) const = 0;

  // -- Submissions. Thread: any -----------------------------------------------------------------

  /// Puts this rank's data of a submission where its peers look for it, and says where that is.
  virtual Contribution contribute(TensorId id, LocalTensor& mine, const Signature& signature,
                                  const Submission& given, Operation& operation) = 0;

  /// Marks the join tensor; true when a tensor became ready or other hosts must hear of it.
  virtual bool join(TensorId id) = 0;

  /// Has the leader of a set with members on other hosts look at the board. True when this rank is
  /// the leader.
  virtual bool call_leader() = 0;

  /// advance() would find something to do.
  virtual bool has_news() const = 0;

  // -- Progress ---------------------------------------------------------------------------------

  /// Moves ready tensors towards the log; true when anything moved.
  virtual bool advance() = 0;

  /// This rank has run entries, which leaves room in the log.
  virtual void entries_done() = 0;

  /// This rank has moved on in any way.
  virtual void moved() = 0;

  /// All members replace their tuning by `tuning` at one entry of the log. False: there is no room
  /// for it now; try again later. With members on several hosts only the root of the tree can ask:
  /// the first rank of the first host.
  virtual bool change_tuning(const Tuning& tuning) = 0;

  // -- Ends -------------------------------------------------------------------------------------

  /// A member that has shut down, if nothing can complete without it from here on. `begun` entries
  /// are begun here, and some are not done if `active`. Poisons the board if an entry that is begun
  /// lacks the share of a rank that has gone.
  virtual std::optional<Rank> find_departed(std::uint64_t begun, bool active) = 0;

  /// This rank submits nothing more.
  virtual void leave() = 0;

 protected:
  Agreement(int size, int position) : size_(size), position_(position) {}

  Agreement(const Agreement&) = default;
  Agreement& operator=(const Agreement&) = delete;

 private:
  const int size_;
  const int position_;
};

}  // namespace horo::runtime
