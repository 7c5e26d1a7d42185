// SPDX-License-Identifier: Apache-2.0
// Every kernel against the reference: all types, operations, instruction sets, lengths and
// alignments.
#include <algorithm>
#include <cstring>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/unit/kernels/reference.hpp"

using horo::kernels::DType;
using horo::kernels::Isa;
using horo::kernels::ReduceOp;
using horo::kernels::Reduction;
using horo::tests::Bytes;
using horo::tests::isas;
using horo::tests::kOps;
using horo::tests::kReduced;

namespace {

constexpr std::size_t kRoom = 64;  // in front of and behind each buffer: misalignment, and a canary

/// A buffer whose payload starts `shift` bytes after a multiple of 64 and is surrounded by a
/// canary.
class Buffer {
 public:
  Buffer(const Bytes& payload, std::size_t shift)
      : memory_(payload.size() + 3 * kRoom, 0xa5), bytes_(payload.size()) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = memory_.data() + (kRoom - address % kRoom) % kRoom + shift;
    std::copy(payload.begin(), payload.end(), begin_);
  }

  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;
  ~Buffer() = default;

  std::uint8_t* data() { return begin_; }

  Bytes payload() const { return {begin_, begin_ + bytes_}; }

  bool canary_lives() const {
    const auto untouched = [](std::uint8_t byte) { return byte == 0xa5; };
    const std::uint8_t* const end = memory_.data() + memory_.size();
    return std::all_of(memory_.data(), static_cast<const std::uint8_t*>(begin_), untouched) &&
           std::all_of(static_cast<const std::uint8_t*>(begin_) + bytes_, end, untouched);
  }

 private:
  Bytes memory_;
  std::uint8_t* begin_ = nullptr;
  std::size_t bytes_;
};

struct Case {
  Reduction what;
  std::size_t count = 0;
  std::vector<Bytes> inputs;
  Bytes expected;
};

Case make_case(const Reduction& what, int n, std::size_t count, std::mt19937_64& random) {
  Case made{.what = what, .count = count};
  for (int k = 0; k < n; ++k)
    made.inputs.push_back(horo::tests::random_elements(what.dtype, count, random));
  made.expected = horo::tests::reference(what, made.inputs, count);
  return made;
}

/// Runs `body` for every type and operation, each with a few inputs, lengths and factors.
template <typename Body>
void for_each_case(std::mt19937_64& random, Body body) {
  for (const DType dtype : kReduced) {
    for (const ReduceOp op : kOps) {
      for (int n = 1; n <= 5; ++n) {
        for (const double factor : {1.0, 0.3}) {
          const std::size_t count = random() % 300;
          const Reduction what{.dtype = dtype,
                               .op = op,
                               .prescale = factor,
                               .postscale = factor * 5,
                               .ranks = n + 2};
          const Reduction bare{.dtype = dtype, .op = op, .ranks = n};
          body(make_case(factor == 1.0 ? bare : what, n, count, random));
        }
      }
    }
  }
}

std::string label(const Case& c, Isa isa) {
  return fmt::format("{} {} of {} inputs of {} elements, factors {} and {}, {}",
                     horo::runtime::name(c.what.dtype), horo::runtime::name(c.what.op),
                     c.inputs.size(), c.count, c.what.prescale, c.what.postscale,
                     horo::kernels::name(isa));
}

struct Placed {
  explicit Placed(const Case& c, std::mt19937_64& random) {
    for (const auto& input : c.inputs)
      buffers.emplace_back(input, random() % 2 == 0 ? 0 : random() % kRoom);
    for (auto& buffer : buffers) pointers.push_back(buffer.data());
  }

  std::vector<const void*> sources() const { return {pointers.begin(), pointers.end()}; }

  std::vector<Buffer> buffers;
  std::vector<void*> pointers;
};

}  // namespace

TEST_CASE("every kernel gives the reference's bits, on every instruction set") {
  std::mt19937_64 random(1);
  for_each_case(random, [&](const Case& c) {
    for (const Isa isa : isas()) {
      const Placed placed(c, random);
      Buffer out(Bytes(c.expected.size()), random() % kRoom);
      horo::kernels::reduce_kernel(c.what.dtype, c.what.op, isa)(
          c.what, out.data(), placed.sources().data(), static_cast<int>(c.inputs.size()), c.count);
      INFO(label(c, isa));
      REQUIRE(out.payload() == c.expected);
      REQUIRE(out.canary_lives());
    }
  });
}

TEST_CASE("a result is written to many destinations at once, inputs among them") {
  std::mt19937_64 random(2);
  for_each_case(random, [&](const Case& c) {
    for (const Isa isa : isas()) {
      const Placed placed(c, random);
      Buffer extra(Bytes(c.expected.size()), random() % kRoom);
      auto targets = placed.pointers;  // all inputs, in another order, and one more
      std::shuffle(targets.begin(), targets.end(), random);
      targets.push_back(extra.data());
      horo::kernels::reduce_to_many_kernel(c.what.dtype, c.what.op, isa)(
          c.what, targets.data(), static_cast<int>(targets.size()), placed.sources().data(),
          static_cast<int>(c.inputs.size()), c.count);
      INFO(label(c, isa));
      REQUIRE(extra.payload() == c.expected);
      REQUIRE(extra.canary_lives());
      for (const auto& buffer : placed.buffers) {
        REQUIRE(buffer.payload() == c.expected);
        REQUIRE(buffer.canary_lives());
      }
    }
  });
}

TEST_CASE("the bits do not depend on how a buffer is divided") {
  std::mt19937_64 random(3);
  for_each_case(random, [&](const Case& c) {
    const Placed placed(c, random);
    const std::size_t size = horo::runtime::size_of(c.what.dtype);
    const auto kernel = horo::kernels::reduce_kernel(c.what.dtype, c.what.op);
    Buffer out(Bytes(c.expected.size()), 0);
    for (std::size_t from = 0; from < c.count;) {
      const std::size_t piece = std::min<std::size_t>(c.count - from, 1 + random() % 70);
      std::vector<const void*> sources;
      sources.reserve(placed.pointers.size());
      for (const void* pointer : placed.pointers) {
        sources.push_back(static_cast<const std::uint8_t*>(pointer) + from * size);
      }
      kernel(c.what, out.data() + from * size, sources.data(), static_cast<int>(sources.size()),
             piece);
      from += piece;
    }
    INFO(label(c, horo::kernels::best_isa()));
    REQUIRE(out.payload() == c.expected);
  });
}

TEST_CASE("many inputs are combined in their order") {
  std::mt19937_64 random(4);
  for (const DType dtype : kReduced) {
    for (const ReduceOp op : kOps) {
      const Case c = make_case({.dtype = dtype, .op = op, .ranks = 67}, 67, 131, random);
      for (const Isa isa : isas()) {
        const Placed placed(c, random);
        Buffer out(Bytes(c.expected.size()), 0);
        horo::kernels::reduce_kernel(dtype, op, isa)(c.what, out.data(), placed.sources().data(),
                                                     67, c.count);
        INFO(label(c, isa));
        REQUIRE(out.payload() == c.expected);
      }
    }
  }
}

TEST_CASE("a large aligned buffer gives the same bits as an unaligned one") {
  std::mt19937_64 random(5);
  for (const DType dtype : kReduced) {
    const Case c = make_case({.dtype = dtype, .op = ReduceOp::sum}, 2, 20011, random);
    for (const std::size_t shift : {0U, 1U, 4U, 32U}) {
      Buffer left(c.inputs[0], shift);
      Buffer right(c.inputs[1], shift);
      void* const both[] = {left.data(), right.data()};
      horo::kernels::reduce_to_many_kernel(dtype, ReduceOp::sum)(c.what, both, 2, both, 2, c.count);
      INFO(label(c, horo::kernels::best_isa()) << ", shifted by " << shift);
      REQUIRE(left.payload() == c.expected);
      REQUIRE(right.payload() == c.expected);
    }
  }
}

TEST_CASE("a reduction of no elements touches no memory") {
  for (const Isa isa : isas()) {
    for (const DType dtype : kReduced) {
      for (const ReduceOp op : kOps) {
        const void* const sources[] = {nullptr, nullptr};
        horo::kernels::reduce_kernel(dtype, op, isa)({.dtype = dtype, .op = op}, nullptr, sources,
                                                     2, 0);
      }
    }
  }
  SUCCEED();
}
