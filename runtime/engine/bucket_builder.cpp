// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/bucket_builder.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/bucket/lanes.hpp"
#include "runtime/tensor/neutral.hpp"

namespace horo::runtime {

BucketBuilder::BucketBuilder(const Board& board, OperationTable& operations, Claims& claims,
                             const Agreement& agreement, Transfers& transfers)
    : board_(board),
      operations_(operations),
      claims_(claims),
      agreement_(agreement),
      transfers_(transfers) {}

Failure BucketBuilder::broken(std::string_view what) const {
  return fail(Errc::protocol, "log entry {} of the board {}", number_, what);
}

Result<Part> BucketBuilder::part_of(const Entry& entry, std::size_t at, Signature& signature,
                                    EntryBucket& made) const {
  const auto id = id_at(entry, at);
  if (!claims_.has_submitted(id)) return neutral_part(entry, at, signature, made);
  const auto& mine = claims_.tensor(id);
  signature = claims_.signature(id);
  Part part{.id = id, .in = mine.in, .out = mine.out, .elements = signature.elements};
  if (signature.memory == MemoryKind::device) [[unlikely]]
    use_device(part, made.bucket);
  return part;
}

void BucketBuilder::use_device(Part& part, Bucket& bucket) const {
  part.memory = MemoryKind::device;
  const auto* const operation = claims_.operation_of(part.id);
  if (operation == nullptr) return;  // The loss of a rank has ended it.
  part.ready = operation->on_device.ready.get();
  part.device = operation->on_device.gpu->index();
  if (bucket.device < 0) bucket.device = part.device;
}

Result<Part> BucketBuilder::neutral_part(const Entry& entry, std::size_t at, Signature& signature,
                                         EntryBucket& made) const {
  const auto id = id_at(entry, at);
  if (entry.signatures.empty()) return broken("has no signatures");
  std::memcpy(static_cast<void*>(&signature), entry.signatures.data() + at * kSignatureWords,
              sizeof signature);
  if (!is_possible(signature) || !possible_with_joined(signature))
    return broken("has a senseless signature");
  if (moves_nothing(signature.kind)) return Part{.id = id};
  made.neutral.push_back(operations_.results().take(signature.bytes()));
  void* const memory = made.neutral.back().get();
  if (memory == nullptr) {
    return fail(Errc::out_of_memory,
                "{} bytes for tensor '{}', which this rank takes part in "
                "although it has joined, cannot be allocated",
                signature.bytes(), board_.region().tensor_name(id));
  }
  fill_neutral(signature.dtype, signature.op, memory, signature.elements);
  return Part{.id = id, .in = memory, .out = memory, .elements = signature.elements};
}

Result<EntryBucket> BucketBuilder::make(const Entry& entry, std::uint64_t number) {
  number_ = number;
  EntryBucket made;
  auto& bucket = made.bucket;
  bucket.path = entry.path;
  bucket.place = entry.place;
  bucket.partial = !entry.signatures.empty();
  // Entries begin in the same order on all ranks, and so do changes of the tuning.
  bucket.small_message = board_.tuning().small_message();
  bucket.parts = std::exchange(spare_parts_, {});
  bucket.parts.clear();
  bucket.parts.reserve(entry.ids.size());
  for (std::size_t at = 0; at < entry.ids.size(); ++at) {
    Signature s;
    HORO_TRY(auto part, part_of(entry, at, s, made));
    if (at == 0) bucket.like = s;
    const auto& first = bucket.like;
    if (first.kind != s.kind || first.dtype != s.dtype || first.op != s.op ||
        first.wire != s.wire || first.memory != s.memory)
      return broken("fuses tensors that cannot be fused");
    if (first_extent_is_free(s.kind) || s.kind == Kind::reducescatter) {
      part.row_elements = s.row_elements;
      HORO_TRY(auto rows, count_rows(entry, at, s, bucket));
      HORO_TRY_STATUS(provide_output(part.id, std::move(rows), part));
    }
    bucket.parts.push_back(part);
  }
  if (bucket.like.kind == Kind::alltoall) {
    HORO_TRY(bucket.longest, transfers_.longest_of(entry));
  }
  if (bucket.like.kind == Kind::broadcast)
    bucket.like.root = agreement_.position_of(Rank{bucket.like.root});
  return made;
}

Status BucketBuilder::append_rows(const Entry& entry, std::size_t at, const Signature& s,
                                  Bucket& bucket) const {
  const int ranks = agreement_.size();
  const auto n = static_cast<std::size_t>(ranks);
  if (s.kind == Kind::allgather) {
    if (entry.rows.size() != entry.ids.size() * n) return broken("has no row counts");
    const auto brought = entry.rows.subspan(at * n, n);
    bucket.rows.insert(bucket.rows.end(), brought.begin(), brought.end());
  } else {
    for (int r = 0; r < ranks; ++r) bucket.rows.push_back(share_of(s.rows(), ranks, r).count);
  }
  return {};
}

/// The most rows that one rank may send to one, so that no sum of one tensor overflows.
std::uint64_t BucketBuilder::most_rows(const Signature& s) const {
  return kMostElements / std::max<std::uint64_t>(s.row_elements, 1) /
         static_cast<std::uint64_t>(agreement_.size());
}

/// Other processes have written the counts.
Result<std::vector<std::int64_t>> BucketBuilder::count_rows(const Entry& entry, std::size_t at,
                                                            const Signature& s, Bucket& bucket) {
  if (s.kind == Kind::alltoall) return count_peers(entry, at, s, bucket);
  const auto first = bucket.rows.size();
  HORO_TRY_STATUS(append_rows(entry, at, s, bucket));
  const auto rows = std::span<const std::uint64_t>(bucket.rows).subspan(first);
  std::vector<std::int64_t> received;
  for (const auto count : rows) {
    if (count > most_rows(s)) return broken(fmt::format("claims {} rows", count));
    received.push_back(static_cast<std::int64_t>(count));
  }
  return received;
}

Result<std::vector<std::int64_t>> BucketBuilder::count_peers(const Entry& entry, std::size_t at,
                                                             const Signature& s,
                                                             Bucket& bucket) const {
  const auto first = bucket.peers.size();
  HORO_TRY_STATUS(transfers_.add_splits(entry, at, bucket.peers));
  const auto most = most_rows(s);
  const auto most_before = most * static_cast<std::uint64_t>(agreement_.size());
  std::vector<std::int64_t> received;
  std::uint64_t sent = 0;
  for (const auto& rows : std::span<const PeerRows>(bucket.peers).subspan(first)) {
    const auto count = std::max(rows.sent, rows.received);
    if (count > most) return broken(fmt::format("claims {} rows", count));
    if (rows.before > most_before) return broken(fmt::format("claims {} rows", rows.before));
    sent += rows.sent;
    received.push_back(static_cast<std::int64_t>(rows.received));
  }
  // Even this rank's own splits lie where other ranks can write.
  if (sent <= s.rows()) return received;
  return fail(Errc::protocol, "the board claims that this rank sends {} rows of {}", sent,
              s.rows());
}

/// The submitter's memory can take the result.
bool BucketBuilder::fits_output(const LocalTensor& mine, const Signature& s,
                                const Operation& operation) const {
  if (mine.out == nullptr || operation.result_bytes > operation.room) return false;
  // An input in place lies where this rank's own rows go. Any other overlap would spoil data that
  // peers still read.
  const auto before = std::accumulate(
      operation.rows.begin(), operation.rows.begin() + agreement_.position(), std::int64_t{0});
  const auto* const own = static_cast<const std::byte*>(mine.out) +
                          static_cast<std::uint64_t>(before) * s.row_elements * size_of(s.dtype);
  return mine.in == own || !overlap(mine.in, s.bytes(), mine.out, operation.room);
}

/// Without memory for the result the operation fails on this rank, which takes part all the same.
void BucketBuilder::provide_on_device(Operation& operation, Part& part) {
  auto& use = operation.on_device;
  auto result = use.gpu->result(operation.result_bytes);
  part.out = nullptr;
  if (!result) {
    use.error = Failure(result.error());
    return;
  }
  use.result = std::move(*result);
  operation.result = use.result->memory();
  part.out = operation.result;
  part.before = use.result->before();
}

Status BucketBuilder::provide_output(TensorId id, std::vector<std::int64_t> rows, Part& part) {
  const auto& mine = claims_.tensor(id);
  const auto& s = claims_.signature(id);
  if (s.kind == Kind::reducescatter && mine.out != nullptr) return {};
  auto& operation = operations_.at(mine.operation.load(std::memory_order_relaxed) - 1);
  const auto received = s.kind == Kind::reducescatter
                            ? rows[static_cast<std::size_t>(agreement_.position())]
                            : std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  operation.result_bytes = static_cast<std::uint64_t>(received) * s.row_elements * size_of(s.dtype);
  operation.rows = std::move(rows);
  if (fits_output(mine, s, operation)) {
    operation.result = mine.out;
  } else if (s.memory == MemoryKind::device && operation.result_bytes != 0) {
    provide_on_device(operation, part);
    return {};
  } else {
    operation.memory = operations_.results().take(operation.result_bytes);
    operation.result = operation.memory.get();
    if (operation.result == nullptr) {
      return fail(Errc::out_of_memory, "{} bytes for the result of {} '{}' cannot be allocated",
                  operation.result_bytes, name(s.kind), board_.region().tensor_name(id));
    }
  }
  part.out = operation.result;
  return {};
}

}  // namespace horo::runtime
