// SPDX-License-Identifier: Apache-2.0
// Random buckets for all ranks of a set, with the expected results.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/bucket/backend.hpp"
#include "runtime/kernels/kernels.hpp"

namespace horo::test {

using namespace horo::runtime;  // NOLINT(google-build-using-namespace): the namespace under test

using Buffer = std::vector<std::byte>;

inline constexpr DType kTypes[] = {DType::u8,  DType::i8,  DType::u16, DType::i16, DType::i32,
                                   DType::i64, DType::f16, DType::f32, DType::f64, DType::bf16};
inline constexpr ReduceOp kOps[] = {ReduceOp::average, ReduceOp::sum, ReduceOp::min, ReduceOp::max,
                                    ReduceOp::product};

inline constexpr std::uint16_t kHalves[] = {0x3c00, 0x4000, 0x4200};  // 1, 2, 3
inline constexpr std::uint16_t kBfloats[] = {0x3f80, 0x4000, 0x4040};

/// One random tensor: the inputs of all ranks, the expected result and the actual result.
struct Tensor {
  std::vector<Buffer> in, expected, out;
  std::vector<std::uint64_t> rows;
  std::uint64_t row_elements = 1;
  std::vector<std::uint64_t> elements;  ///< Number of elements in each rank's input.
};

struct Case {
  Signature like;
  std::vector<Tensor> tensors;
};

struct Maker {
  std::mt19937_64& random;
  std::size_t n;

  std::uint64_t below(std::uint64_t bound) { return random() % bound; }

  /// Small whole numbers. Their sums are exact in every type, and so are products of 1 and 2, so
  /// any order gives the same bits. A product with threes is rounded as soon as it passes 2^8
  /// (bfloat16).
  Buffer numbers(const Signature& like, std::uint64_t count) {
    const auto dtype = like.dtype;
    const bool product = reduces(like.kind) && like.op == ReduceOp::product;
    Buffer bytes(count * size_of(dtype));
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto value = 1 + below(product ? 2 : 3);
      auto* to = bytes.data() + i * size_of(dtype);
      const auto put = [&](auto x) { std::memcpy(to, &x, sizeof x); };
      switch (dtype) {
        case DType::f32:
          put(static_cast<float>(value));
          break;
        case DType::f64:
          put(static_cast<double>(value));
          break;
        case DType::f16:
          put(kHalves[value - 1]);
          break;
        case DType::bf16:
          put(kBfloats[value - 1]);
          break;
        case DType::u8:
        case DType::i8:
        case DType::boolean:
          put(static_cast<std::uint8_t>(value));
          break;
        case DType::u16:
        case DType::i16:
          put(static_cast<std::uint16_t>(value));
          break;
        case DType::i32:
          put(static_cast<std::uint32_t>(value));
          break;
        case DType::i64:
          put(value);
          break;
      }
    }
    return bytes;
  }

  /// The result when elements travel between hosts in another type: the scaled inputs are
  /// rounded to it, reduced in it, and widened.
  Buffer reduce_rounded(const Signature& like, const std::vector<Buffer>& in,
                        std::uint64_t count) const {
    const auto moved = moved_between_hosts(like);
    std::vector<Buffer> rounded;
    for (const auto& one : in) {
      auto& to = rounded.emplace_back(count * size_of(moved.dtype));
      kernels::encode_kernel(moved.dtype)(
          {.dtype = moved.dtype, .before = static_cast<float>(like.prescale)}, to.data(),
          reinterpret_cast<const float*>(one.data()), nullptr, count);
    }
    const auto sum = reduce(moved, rounded, count);
    Buffer result(count * sizeof(float));
    kernels::decode_kernel(moved.dtype)(reinterpret_cast<float*>(result.data()), sum.data(), count);
    return result;
  }

  Buffer reduce(const Signature& like, const std::vector<Buffer>& in, std::uint64_t count) const {
    if (like.wire != WireDType::none) return reduce_rounded(like, in, count);
    Buffer result(count * size_of(like.dtype));
    std::vector<const void*> sources;
    for (const auto& one : in) sources.push_back(one.data());
    const kernels::Reduction what{.dtype = like.dtype,
                                  .op = like.op,
                                  .prescale = like.prescale,
                                  .postscale = like.postscale,
                                  .ranks = static_cast<int>(n)};
    kernels::reduce_kernel(like.dtype, like.op)(what, result.data(), sources.data(),
                                                static_cast<int>(n), count);
    return result;
  }

  Tensor same_everywhere(const Signature& like) {
    return same_everywhere(like, below(4) == 0 ? below(3) : below(700));
  }

  Tensor same_everywhere(const Signature& like, std::uint64_t count) {
    Tensor t;
    for (std::size_t r = 0; r < n; ++r) t.in.push_back(numbers(like, count));
    t.elements.assign(n, count);
    if (like.kind == Kind::broadcast) {
      t.expected.assign(n, t.in[static_cast<std::size_t>(like.root)]);
    } else {
      t.expected.assign(n, reduce(like, t.in, count));
    }
    return t;
  }

  /// Every element of rank r is the r-th of the given float16 values, repeating from the first
  /// after the last.
  Case of_halves(Signature like, const std::vector<std::uint16_t>& bits, std::uint64_t count) {
    like.dtype = DType::f16;
    Tensor t;
    for (std::size_t r = 0; r < n; ++r) {
      const std::vector<std::uint16_t> same(count, bits[r % bits.size()]);
      const auto* first = reinterpret_cast<const std::byte*>(same.data());
      t.in.emplace_back(first, first + count * sizeof(std::uint16_t));
    }
    t.elements.assign(n, count);
    t.expected.assign(n, reduce(like, t.in, count));
    t.out.assign(n, Buffer(count * sizeof(std::uint16_t)));
    return {.like = like, .tensors = {std::move(t)}};
  }

  /// Float16 allreduces whose results can be represented although intermediate sums cannot.
  std::vector<Case> beyond_halves(std::uint64_t count) {
    constexpr std::uint16_t k40000 = 0x78e2;
    constexpr std::uint16_t kTiny = 0x0400;  // 2^-14
    return {
        of_halves({.op = ReduceOp::average}, {k40000}, count),
        of_halves({.op = ReduceOp::average, .prescale = 64, .postscale = 1.0 / 64}, {k40000},
                  count),
        of_halves({.op = ReduceOp::average, .postscale = -0.75}, {k40000}, count),
        of_halves({.op = ReduceOp::sum, .postscale = 1.0 / 64}, {k40000}, count),
        of_halves({.op = ReduceOp::max, .prescale = 64, .postscale = -1.0 / 64}, {k40000}, count),
        of_halves({.op = ReduceOp::product}, {k40000, k40000, kTiny, kTiny}, count)};
  }

  Tensor gathered(const Signature& like) {
    Tensor t{.row_elements = 1 + below(5)};
    Buffer all;
    for (std::size_t r = 0; r < n; ++r) {
      t.rows.push_back(below(40));
      t.elements.push_back(t.rows.back() * t.row_elements);
      t.in.push_back(numbers(like, t.elements.back()));
      all.insert(all.end(), t.in.back().begin(), t.in.back().end());
    }
    t.expected.assign(n, all);
    return t;
  }

  Tensor scattered(const Signature& like) {
    Tensor t{.row_elements = 1 + below(5)};
    std::uint64_t count = 0;
    for (std::size_t r = 0; r < n; ++r) {
      t.rows.push_back(below(60));
      count += t.rows.back() * t.row_elements;
    }
    for (std::size_t r = 0; r < n; ++r) t.in.push_back(numbers(like, count));
    t.elements.assign(n, count);
    const auto all = reduce(like, t.in, count);
    std::uint64_t begin = 0;
    for (std::size_t r = 0; r < n; ++r) {
      const auto end = begin + t.rows[r] * t.row_elements * size_of(like.dtype);
      t.expected.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                              all.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
    return t;
  }

  Tensor transposed(const Signature& like) {
    Tensor t{.row_elements = 1 + below(5)};
    for (std::size_t i = 0; i < n * n; ++i) t.rows.push_back(below(4) == 0 ? 0 : below(30));
    const auto bytes = t.row_elements * size_of(like.dtype);
    t.expected.resize(n);
    for (std::size_t source = 0; source < n; ++source) {
      std::uint64_t rows = 0;
      for (std::size_t target = 0; target < n; ++target) rows += t.rows[source * n + target];
      t.elements.push_back(rows * t.row_elements);
      t.in.push_back(numbers(like, t.elements.back()));
      const auto* from = t.in.back().data();
      for (std::size_t target = 0; target < n; ++target) {
        const auto piece = t.rows[source * n + target] * bytes;
        t.expected[target].insert(t.expected[target].end(), from, from + piece);
        from += piece;
      }
    }
    return t;
  }

  Case make() {
    Case c;
    c.like.kind = static_cast<Kind>(below(6));
    c.like.dtype = kTypes[below(std::size(kTypes))];
    c.like.op = kOps[below(std::size(kOps))];
    c.like.root = static_cast<int>(below(n));
    if (below(3) == 0) c.like.prescale = 2;
    if (below(3) == 0) c.like.postscale = 0.5;
    if (can_round_on_wire(c.like)) c.like.wire = static_cast<WireDType>(below(kWireDTypes));
    if (c.like.kind == Kind::barrier) return c;
    for (auto count = 1 + below(4); count > 0; --count) {
      auto t = c.like.kind == Kind::allgather       ? gathered(c.like)
               : c.like.kind == Kind::reducescatter ? scattered(c.like)
               : c.like.kind == Kind::alltoall      ? transposed(c.like)
                                                    : same_everywhere(c.like);
      for (const auto& expected : t.expected) t.out.emplace_back(expected.size());
      c.tensors.push_back(std::move(t));
    }
    return c;
  }
};

/// Adds what `rank` exchanges with each rank; `rows`: sender by sender, receiver by receiver.
inline void add_peers(Bucket& bucket, const std::vector<std::uint64_t>& rows, std::size_t rank,
                      std::size_t ranks) {
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto* const theirs = rows.data() + r * ranks;
    bucket.peers.push_back({.sent = rows[rank * ranks + r],
                            .received = theirs[rank],
                            .before = std::accumulate(theirs, theirs + rank, std::uint64_t{0})});
  }
}

inline std::uint64_t longest_of(const Case& c, std::size_t ranks) {
  std::uint64_t longest = 0;
  for (std::size_t pair = 0; pair < ranks * ranks; ++pair) {
    std::uint64_t elements = 0;
    for (const auto& t : c.tensors) elements += t.rows[pair] * t.row_elements;
    longest = std::max(longest, elements);
  }
  return longest;
}

inline Bucket bucket_of(Case& c, std::size_t rank) {
  Bucket bucket{.like = c.like};
  for (auto& t : c.tensors) {
    bucket.parts.push_back({.in = t.in[rank].data(),
                            .out = t.out[rank].data(),
                            .elements = t.elements[rank],
                            .row_elements = t.row_elements});
    if (c.like.kind == Kind::alltoall) {
      add_peers(bucket, t.rows, rank, t.in.size());
    } else {
      bucket.rows.insert(bucket.rows.end(), t.rows.begin(), t.rows.end());
    }
  }
  if (c.like.kind == Kind::alltoall) bucket.longest = longest_of(c, c.tensors.front().in.size());
  return bucket;
}

}  // namespace horo::test
