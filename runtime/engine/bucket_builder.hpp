// SPDX-License-Identifier: Apache-2.0
// Makes the bucket of a log entry: which of this rank's memory takes part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "runtime/board/board.hpp"
#include "runtime/board/entry.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/engine/agreement/agreement.hpp"
#include "runtime/engine/claims.hpp"
#include "runtime/engine/transfers.hpp"
#include "runtime/host/result_memory.hpp"

namespace horo::runtime {

/// An entry's bucket, and memory that lives until the entry is done.
struct EntryBucket {
  Bucket bucket;
  /// Neutral values, in place of data that this rank does not have because it has joined.
  std::vector<ResultMemory> neutral;
};

/// Turns entries into buckets; owns no state. Entries come from other processes: all that is read
/// is checked. Thread: the holder of the progress token.
class BucketBuilder {
 public:
  BucketBuilder(const Board& board, OperationTable& operations, Claims& claims,
                const Agreement& agreement, Transfers& transfers);

  /// The bucket of entry `number`. Provides memory for results whose size is known only now. Fails:
  /// protocol, out_of_memory.
  Result<EntryBucket> make(const Entry& entry, std::uint64_t number);

  /// Takes a bucket that is done: the next one uses the memory of its list of parts.
  void take_back(Bucket&& bucket) { spare_parts_ = std::move(bucket.parts); }

 private:
  Result<Part> part_of(const Entry& entry, std::size_t at, Signature& signature,
                       EntryBucket& made) const;
  Result<Part> neutral_part(const Entry& entry, std::size_t at, Signature& signature,
                            EntryBucket& made) const;
  /// Appends to the bucket's rows what the kind needs, and returns what this rank receives from
  /// each member.
  Result<std::vector<std::int64_t>> count_rows(const Entry& entry, std::size_t at,
                                               const Signature& s, Bucket& bucket);
  Result<std::vector<std::int64_t>> count_peers(const Entry& entry, std::size_t at,
                                                const Signature& s, Bucket& bucket) const;
  Status append_rows(const Entry& entry, std::size_t at, const Signature& s, Bucket& bucket) const;
  std::uint64_t most_rows(const Signature& s) const;
  void use_device(Part& part, Bucket& bucket) const;
  static void provide_on_device(Operation& operation, Part& part);
  Status provide_output(TensorId id, std::vector<std::int64_t> rows, Part& part);
  bool fits_output(const LocalTensor& mine, const Signature& s, const Operation& operation) const;
  Failure broken(std::string_view what) const;

  const Board& board_;
  OperationTable& operations_;
  Claims& claims_;
  const Agreement& agreement_;
  Transfers& transfers_;
  std::uint64_t number_ = 0;  ///< The entry's number, for messages.
  std::vector<Part> spare_parts_;
};

}  // namespace horo::runtime
