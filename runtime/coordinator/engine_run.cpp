// SPDX-License-Identifier: Apache-2.0
// What a log entry asks of this rank: its bucket, the place of its results, and the entries that
// need no backend.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/backends/shm/adasum.hpp"
#include "runtime/backends/shm/kernels/kernels.hpp"
#include "runtime/backends/shm/lanes.hpp"
#include "runtime/coordinator/engine.hpp"
#include "runtime/neutral.hpp"

namespace horo::runtime {

namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 56U;

/// All ranks' inputs, which this process can read, to one result.
void combine_parts(const Signature& like, std::span<const void* const> inputs,
                   std::uint64_t elements, void* out) {
  if (like.op == ReduceOp::adasum)
    return adasum(like.dtype, like.prescale * like.postscale, inputs, elements, out);
  const auto n = static_cast<int>(inputs.size());
  const kernels::Reduction what{.dtype = like.dtype,
                                .op = like.op,
                                .prescale = like.prescale,
                                .postscale = like.postscale,
                                .ranks = n};
  kernels::reduce_kernel(like.dtype, like.op)(what, out, inputs.data(), n, elements);
}

}  // namespace

Result<Part> Engine::neutral_part(const Entry& entry, std::size_t position, Started& started,
                                  Signature& signature) {
  const TensorId id{static_cast<std::uint32_t>(entry.ids[position])};
  if (entry.signatures.empty())
    return fail(Errc::protocol, "log entry {} of the board has no signatures", begun_);
  std::memcpy(static_cast<void*>(&signature), entry.signatures.data() + position * kSignatureWords,
              sizeof signature);
  if (!is_dtype(static_cast<int>(signature.dtype)) || signature.elements > kMostElements)
    return fail(Errc::protocol, "log entry {} of the board has a senseless signature", begun_);
  if (moves_nothing(signature.kind)) return Part{.id = id};
  started.neutral.push_back(operations_.results().take(signature.bytes()));
  void* const memory = started.neutral.back().get();
  if (memory == nullptr) {
    return fail(Errc::out_of_memory,
                "{} bytes for tensor '{}', which this rank takes part in "
                "although it has joined, cannot be had",
                signature.bytes(), board_.tensor_name(id));
  }
  fill_neutral(signature.dtype, signature.op, memory, signature.elements);
  return Part{.id = id, .in = memory, .out = memory, .elements = signature.elements};
}

Result<Bucket> Engine::make_bucket(const Entry& entry, Started& started) {
  Bucket bucket;
  bucket.placement = entry.placement;
  bucket.parts.reserve(entry.ids.size());
  std::size_t position = 0;
  for (const auto raw : entry.ids) {
    const TensorId id{static_cast<std::uint32_t>(raw)};
    Signature s;
    Part part;
    if (offered(id)) {
      const auto& mine = tensor(id);
      s = signature(id);
      part = {.id = id, .in = mine.in, .out = mine.out, .elements = s.elements};
    } else {
      HORO_TRY(part, neutral_part(entry, position, started, s));
    }
    if (position == 0) bucket.like = s;
    const auto& first = bucket.like;
    if (first.kind != s.kind || first.dtype != s.dtype || first.op != s.op) {
      return fail(Errc::protocol,
                  "log entry {} of the board fuses tensors that do not fit together", begun_);
    }
    if (first_extent_is_free(s.kind) || s.kind == Kind::reducescatter) {
      part.row_elements = s.row_elements;
      std::vector<std::int64_t> rows;
      HORO_TRY_STATUS(count_rows(entry, position, s, part, bucket, rows));
      HORO_TRY_STATUS(provide_output(id, std::move(rows), part));
    }
    bucket.parts.push_back(part);
    ++position;
  }
  if (bucket.like.kind == Kind::broadcast) bucket.like.root = position_of(Rank{bucket.like.root});
  return bucket;
}

Status Engine::count_rows(const Entry& entry, std::size_t at, const Signature& s, const Part& part,
                          Bucket& bucket, std::vector<std::int64_t>& rows) {
  const int ranks = size();
  const auto n = static_cast<std::size_t>(ranks);
  const auto me = static_cast<std::size_t>(position());
  const auto most = kMostElements / std::max<std::uint64_t>(s.row_elements, 1);
  const auto first = bucket.rows.size();
  if (s.kind == Kind::allgather) {
    if (entry.rows.size() != entry.ids.size() * n)
      return fail(Errc::protocol, "log entry {} of the board has no row counts", begun_);
    const auto brought = entry.rows.subspan(at * n, n);
    bucket.rows.insert(bucket.rows.end(), brought.begin(), brought.end());
  } else if (s.kind == Kind::reducescatter) {
    for (int r = 0; r < ranks; ++r) bucket.rows.push_back(share_of(s.rows(), ranks, r).count);
  } else if (board_.spans()) {
    add_splits(entry, at, bucket);
  } else {
    const std::uint64_t generation = tensor(part.id).odd ? 1 : 0;
    for (int r = 0; r < ranks; ++r) {
      const auto* sent = board_.splits(part.id, r, generation);
      if (sent == nullptr) {
        return fail(Errc::protocol, "tensor '{}' has no place for splits on the board",
                    board_.tensor_name(part.id));
      }
      bucket.rows.insert(bucket.rows.end(), sent, sent + n);
    }
  }
  // From another process, all but a reducescatter's: no sum of these may overflow.
  for (auto i = first; i < bucket.rows.size(); ++i) {
    if (bucket.rows[i] > most / n)
      return fail(Errc::protocol, "log entry {} of the board claims {} rows", begun_,
                  bucket.rows[i]);
  }
  if (s.kind == Kind::alltoall) {  // This rank's own too lie where others can write.
    const auto* own = bucket.rows.data() + first + me * n;
    const auto sent = std::accumulate(own, own + n, std::uint64_t{0});
    if (sent > s.rows())
      return fail(Errc::protocol, "the board claims that this rank sends {} rows of {}", sent,
                  s.rows());
  }
  for (std::size_t r = 0; r < n; ++r) {
    const auto cell = s.kind == Kind::alltoall ? r * n + me : r;
    rows.push_back(static_cast<std::int64_t>(bucket.rows[first + cell]));
  }
  return {};
}

Status Engine::provide_output(TensorId id, std::vector<std::int64_t> rows, Part& part) {
  auto& mine = tensor(id);
  const auto& s = signature(id);
  if (s.kind == Kind::reducescatter && mine.out != nullptr) return {};
  auto& operation = operations_.at(mine.operation.load(std::memory_order_relaxed) - 1);
  const auto received = s.kind == Kind::reducescatter
                            ? rows[static_cast<std::size_t>(position())]
                            : std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const auto row_bytes = s.row_elements * size_of(s.dtype);
  operation.result_bytes = static_cast<std::uint64_t>(received) * row_bytes;
  const auto before = std::accumulate(rows.begin(), rows.begin() + position(), 0LL);
  operation.rows = std::move(rows);
  const auto usable = [&] {
    if (mine.out == nullptr || operation.result_bytes > operation.room) return false;
    // In place is where this rank's own rows go; other overlaps would spoil what peers still read.
    const auto* own =
        static_cast<const std::byte*>(mine.out) + static_cast<std::uint64_t>(before) * row_bytes;
    return mine.in == own || !overlap(mine.in, s.bytes(), mine.out, operation.room);
  };
  if (usable()) {
    operation.result = mine.out;
  } else {
    operation.memory = operations_.results().take(operation.result_bytes);
    operation.result = operation.memory.get();
    if (operation.result == nullptr) {
      return fail(Errc::out_of_memory, "{} bytes for the result of {} '{}' cannot be had",
                  operation.result_bytes, name(s.kind), board_.tensor_name(id));
    }
  }
  part.out = operation.result;
  return {};
}

void Engine::run_alone(const Bucket& bucket) {
  const auto& like = bucket.like;
  for (std::size_t p = 0; p < bucket.parts.size(); ++p) {
    const auto& part = bucket.parts[p];
    if (moves_nothing(like.kind) || part.elements == 0) continue;
    if (reduces(like.kind)) {
      combine_parts(like, {&part.in, 1}, part.elements, part.out);
    } else if (part.in != part.out) {
      // An alltoall may leave rows at its end behind.
      const auto elements =
          like.kind == Kind::alltoall ? bucket.rows[p] * part.row_elements : part.elements;
      std::memcpy(part.out, part.in, elements * size_of(like.dtype));
    }
  }
}

Status Engine::run_in_marks(const Bucket& bucket) {
  const auto& like = bucket.like;
  if (moves_nothing(like.kind)) return {};
  for (std::size_t p = 0; p < bucket.parts.size(); ++p) {
    const auto& part = bucket.parts[p];
    HORO_TRY_STATUS(find_payloads(bucket, p));
    if (!reduces(like.kind)) {
      copy_payloads(bucket, p);
      continue;
    }
    auto elements = part.elements;
    if (like.kind == Kind::reducescatter) {
      const auto mine = share_of(signature(part.id).rows(), board_.local_size(), board_.me());
      elements = mine.count * part.row_elements;
      if (elements == 0) continue;
      for (auto& source : sources_) {
        source = static_cast<const std::byte*>(source) +
                 mine.first * part.row_elements * size_of(like.dtype);
      }
    }
    if (elements != 0) combine_parts(like, sources_, elements, part.out);
  }
  return {};
}

Status Engine::find_payloads(const Bucket& bucket, std::size_t position) {
  const auto& part = bucket.parts[position];
  const std::uint64_t generation = tensor(part.id).odd ? 1 : 0;
  for (int r = 0; r < board_.local_size(); ++r) {
    const auto bytes =
        elements_from(bucket, position, r, board_.local_size()) * size_of(bucket.like.dtype);
    auto& source = sources_[static_cast<std::size_t>(r)];
    source = board_.inline_slot(part.id, r, generation, bytes);
    if (source == nullptr && bytes != 0) {
      return fail(Errc::protocol, "tensor '{}' has no payload slot on the board",
                  board_.tensor_name(part.id));
    }
  }
  return {};
}

void Engine::copy_payloads(const Bucket& bucket, std::size_t position) {
  const auto& part = bucket.parts[position];
  const auto kind = bucket.like.kind;
  const auto n = sources_.size();
  const auto me = static_cast<std::size_t>(board_.me());
  const auto row = part.row_elements * size_of(bucket.like.dtype);
  auto* to = static_cast<std::byte*>(part.out);
  const auto copy = [&to](const void* from, std::uint64_t skipped, std::uint64_t bytes) {
    if (bytes == 0) return;
    std::memcpy(to, static_cast<const std::byte*>(from) + skipped, bytes);
    to += bytes;
  };
  if (kind == Kind::broadcast) {
    copy(sources_[static_cast<std::size_t>(bucket.like.root)], 0,
         part.elements * size_of(bucket.like.dtype));
    return;
  }
  for (std::size_t r = 0; r < n; ++r) {
    if (kind == Kind::allgather) {
      copy(sources_[r], 0, bucket.rows[position * n + r] * row);
      continue;
    }
    const auto* sent = bucket.rows.data() + (position * n + r) * n;
    const auto skipped = std::accumulate(sent, sent + me, std::uint64_t{0}) * row;
    copy(sources_[r], skipped, sent[me] * row);
  }
}

}  // namespace horo::runtime
