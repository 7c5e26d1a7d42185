// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/drawn_op.hpp"

#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "runtime/bucket/adasum.hpp"

namespace horo::sim {

using runtime::DType;
using runtime::Kind;
using runtime::ReduceOp;
using runtime::Signature;
using tests::Bytes;

namespace {

bool has_free_rows(Kind kind) {
  return kind == Kind::allgather || kind == Kind::alltoall;
}

void append(Bytes& to, const Bytes& from, std::uint64_t first, std::uint64_t count) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first);
  to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
}

std::uint64_t row_bytes(const Signature& s) {
  std::uint64_t bytes = size_of(s.dtype);
  for (int d = 1; d < s.ndim; ++d)
    bytes *= static_cast<std::uint64_t>(s.extents[static_cast<std::size_t>(d)]);
  return bytes;
}

/// Rows before and of `rank`, dealt out one by one.
std::vector<std::uint64_t> dealt(std::uint64_t rows, int ranks) {
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks));
  for (std::uint64_t i = 0; i < rows; ++i) ++counts[i % counts.size()];
  return counts;
}

Bytes reduced(const DrawnOp& op) {
  const auto& s = op.signatures.front();
  if (s.op == ReduceOp::adasum) {  // Its one-process form has tests of its own.
    Bytes out(s.bytes());
    std::vector<const void*> inputs;
    for (const auto& input : op.inputs) inputs.push_back(input.data());
    runtime::adasum(s.dtype, s.prescale * s.postscale, inputs, s.elements, out.data());
    return out;
  }
  return tests::reference({.dtype = s.dtype,
                           .op = s.op,
                           .prescale = s.prescale,
                           .postscale = s.postscale,
                           .ranks = static_cast<int>(op.inputs.size())},
                          op.inputs, s.elements);
}

std::vector<std::int64_t> draw_splits(std::int64_t rows, int ranks, std::mt19937_64& random) {
  std::vector<std::int64_t> splits(static_cast<std::size_t>(ranks));
  auto left = rows;
  for (auto& split : splits) {
    split = random() % 4 == 0 ? 0 : static_cast<std::int64_t>(random()) % (left + 1);
    split = std::abs(split);
    left -= split;
  }
  std::shuffle(splits.begin(), splits.end(), random);
  return splits;
}

void draw_reduction(Signature& s, std::mt19937_64& random) {
  s.op = tests::kOps[random() % std::size(tests::kOps)];
  if (s.dtype == DType::boolean) {
    s.op = random() % 2 == 0 ? ReduceOp::min : ReduceOp::max;
  } else if (random() % 3 == 0) {
    s.prescale = 0.5;
    s.postscale = 3;
  }
}

std::int64_t draw_rows(Kind kind, int ranks, std::mt19937_64& random) {
  const std::int64_t sizes[] = {0, 1, 2, 7, 100, 333, 1000, 4096, 9001};
  auto rows = sizes[random() % std::size(sizes)];
  if (kind == Kind::alltoall && random() % 2 == 0) rows = rows / ranks * ranks;
  return rows;
}

}  // namespace

std::string DrawnOp::text() const {
  const auto& s = signatures.front();
  return fmt::format("{} '{}' {} prescale {}", runtime::describe(s), name, runtime::name(s.op),
                     s.prescale);
}

DrawnOp draw_op(int ranks, std::mt19937_64& random, const std::string& name) {
  constexpr Kind kKinds[] = {Kind::allreduce, Kind::allgather, Kind::broadcast, Kind::reducescatter,
                             Kind::alltoall};
  DrawnOp op{.name = name};
  Signature s;
  s.kind = kKinds[random() % std::size(kKinds)];
  s.dtype = static_cast<DType>(random() % runtime::kDTypes);
  s.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
  if (runtime::reduces(s.kind)) draw_reduction(s, random);
  const bool scalar = !has_free_rows(s.kind) && s.kind != Kind::reducescatter && random() % 9 == 0;
  auto rows = draw_rows(s.kind, ranks, random);
  const auto width = static_cast<std::int64_t>(random() % 3);
  const bool flat = random() % 2 == 0;
  for (int r = 0; r < ranks; ++r) {
    if (has_free_rows(s.kind) && random() % 2 == 0) rows = draw_rows(s.kind, ranks, random);
    std::vector<std::int64_t> shape{rows};
    if (!flat) shape = {rows, width, 2};
    if (scalar) shape.clear();
    HORO_CHECK(runtime::set_shape(s, shape).has_value());
    op.signatures.push_back(s);
    op.inputs.push_back(tests::random_elements(s.dtype, s.elements, random));
    op.splits.emplace_back();
    if (s.kind == Kind::alltoall && (rows % ranks != 0 || random() % 2 == 0))
      op.splits.back() = draw_splits(rows, ranks, random);
  }
  return op;
}

std::vector<std::int64_t> DrawnOp::expected_rows(int rank) const {
  std::vector<std::int64_t> rows;
  const auto n = static_cast<std::int64_t>(signatures.size());
  for (std::size_t r = 0; r < signatures.size(); ++r) {
    const auto all = signatures[r].extents[0];
    switch (kind()) {
      case Kind::allgather:
        rows.push_back(all);
        break;
      case Kind::alltoall:
        rows.push_back(splits[r].empty() ? all / n : splits[r][static_cast<std::size_t>(rank)]);
        break;
      case Kind::reducescatter:
        rows.push_back(static_cast<std::int64_t>(
            dealt(static_cast<std::uint64_t>(all), static_cast<int>(n))[r]));
        break;
      case Kind::allreduce:
      case Kind::broadcast:
      case Kind::barrier:
      case Kind::join:
        break;
    }
  }
  return rows;
}

Bytes DrawnOp::expected(int rank) const {
  const auto& s = signatures.front();
  const auto me = static_cast<std::size_t>(rank);
  const auto row = row_bytes(s);
  Bytes result;
  switch (s.kind) {
    case Kind::allreduce:
      return reduced(*this);
    case Kind::broadcast:
      return inputs[static_cast<std::size_t>(s.root)];
    case Kind::allgather:
      for (const auto& input : inputs) append(result, input, 0, input.size());
      return result;
    case Kind::reducescatter: {
      const auto counts =
          dealt(static_cast<std::uint64_t>(s.extents[0]), static_cast<int>(signatures.size()));
      const auto first = std::accumulate(counts.begin(), counts.begin() + rank, std::uint64_t{0});
      append(result, reduced(*this), first * row, counts[me] * row);
      return result;
    }
    case Kind::alltoall:
      for (std::size_t from = 0; from < inputs.size(); ++from) {
        std::uint64_t before = 0;
        for (int to = 0; to < rank; ++to)
          before += static_cast<std::uint64_t>(expected_rows(to)[from]);
        append(result, inputs[from], before * row,
               static_cast<std::uint64_t>(expected_rows(rank)[from]) * row);
      }
      return result;
    case Kind::barrier:
    case Kind::join:
      break;
  }
  return result;
}

void make_exact(DrawnOp& op, std::mt19937_64& random) {
  const auto dtype = op.signatures.front().dtype;
  const auto size = size_of(dtype);
  for (auto& input : op.inputs) {
    for (std::size_t at = 0; at < input.size(); at += size) {
      const auto value = static_cast<float>(1 + random() % 2);
      const auto put = [&](auto x) { std::memcpy(input.data() + at, &x, size); };
      if (dtype == DType::f16) {
        put(tests::half_of(value));
      } else if (dtype == DType::bf16) {
        put(tests::bfloat_of(value));
      } else if (dtype == DType::f32) {
        put(value);
      } else if (dtype == DType::f64) {
        put(static_cast<double>(value));
      } else {
        put(static_cast<std::int64_t>(dtype == DType::boolean ? value - 1 : value));
      }
    }
  }
}

void add_drawn(SimJob& job, int rank, const DrawnOp& op) {
  auto& random = job.random();
  const auto me = static_cast<std::size_t>(rank);
  const auto& s = op.signatures[me];
  const auto& input = op.inputs[me];
  const bool shared = random() % 2 == 0;
  auto* in = job.allocate(rank, input.size(), shared);
  if (!input.empty()) std::memcpy(in, input.data(), input.size());
  runtime::Submission given{.in = in, .out = in, .splits = op.splits[me]};
  const auto result = op.expected(rank).size();
  const bool in_place = random() % 2 == 0;
  if (has_free_rows(s.kind)) {
    given.out = nullptr;
    if (random() % 2 == 0) {  // Now and then too little, which is no error.
      given.room = result - (random() % 4 == 0 ? std::min<std::uint64_t>(result, 1) : 0);
      given.out = job.allocate(rank, given.room, random() % 2 == 0);
    }
  } else if (s.kind == Kind::reducescatter) {
    const auto counts = op.expected_rows(rank);
    const auto first = std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
    given.out = in + static_cast<std::uint64_t>(first) * row_bytes(s);
    if (!in_place || result == 0)
      given.out = random() % 2 == 0 ? nullptr : job.allocate(rank, result, shared);
  } else if (!in_place) {
    given.out = job.allocate(rank, result, shared);
  }
  const auto status = runtime::check(s, given, rank, job.ranks());
  HORO_CHECK(status.has_value());
  job.add(rank, op.name, s, given, op.splits[me]);
}

std::string difference(const DrawnOp& op, int rank, Buffer& buffer) {
  const auto& operation = *buffer.operation;
  if (operation.status() != Errc::ok) return operation.message();
  const auto expected = op.expected(rank);
  const void* at = buffer.given->out;
  if (operation.keeps_result) {
    at = operation.result;
    if (operation.result_bytes != expected.size())
      return fmt::format("{} bytes instead of {}", operation.result_bytes, expected.size());
    if (operation.rows != op.expected_rows(rank)) return "other rows";
  }
  if (expected.empty() || std::memcmp(at, expected.data(), expected.size()) == 0) return {};
  const auto* bytes = static_cast<const std::uint8_t*>(at);
  const auto first = std::mismatch(expected.begin(), expected.end(), bytes).first;
  return fmt::format("byte {} of {} differs", first - expected.begin(), expected.size());
}

}  // namespace horo::sim
