// SPDX-License-Identifier: Apache-2.0
#include "tests/device_path/drawn_ops.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace horo::tests {

namespace {

int value_of(const DrawnOp& op, int rank, std::int64_t element) {
  return static_cast<int>((rank * 7 + element * 3 + op.number) % 5) + 1;
}

void append(std::vector<std::uint8_t>& to, horo_dtype dtype, double value) {
  const auto add = [&to](const auto& number) {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&number);
    to.insert(to.end(), bytes, bytes + sizeof number);
  };
  switch (dtype) {
    case HORO_FLOAT32:
      return add(static_cast<float>(value));
    case HORO_FLOAT64:
      return add(value);
    case HORO_INT32:
      return add(static_cast<std::int32_t>(value));
    case HORO_INT64:
      return add(static_cast<std::int64_t>(value));
    default:
      return add(static_cast<std::uint8_t>(value));
  }
}

double combine(const DrawnOp& op, const DrawnSet& set, std::int64_t element) {
  double result = value_of(op, set.ranks[0], element);
  for (std::size_t p = 1; p < set.ranks.size(); ++p) {
    const double next = value_of(op, set.ranks[p], element);
    switch (op.op) {
      case HORO_MIN:
        result = std::min(result, next);
        break;
      case HORO_MAX:
        result = std::max(result, next);
        break;
      case HORO_PRODUCT:
        result *= next;
        break;
      default:
        result += next;
    }
  }
  return result;
}

/// Rows of a reducescatter that a position gets: the first ones have one more.
std::pair<std::int64_t, std::int64_t> share_of(std::int64_t rows, int size, int position) {
  const auto over = rows % size;
  const auto first = rows / size * position + std::min<std::int64_t>(position, over);
  return {first, rows / size + (position < over ? 1 : 0)};
}

void check(horo_status status, const char* call) {
  require(status == HORO_OK,
          std::string(call) + ": " + horo_status_name(status) + ": " + horo_last_error());
}

}  // namespace

DrawnSet world() {
  DrawnSet set{.id = HORO_WORLD};
  set.ranks.resize(static_cast<std::size_t>(horo_size()));
  require(horo_process_set_ranks(HORO_WORLD, set.ranks.data()) == HORO_OK, "the world's ranks");
  set.position = horo_rank();
  return set;
}

std::size_t size_of(horo_dtype dtype) {
  switch (dtype) {
    case HORO_FLOAT32:
    case HORO_INT32:
      return 4;
    case HORO_FLOAT64:
    case HORO_INT64:
      return 8;
    default:
      return 1;
  }
}

std::int64_t DrawnOp::rows_of(int position) const {
  return kind == HORO_ALLGATHER ? rows + position : rows;
}

std::int64_t DrawnOp::split(const DrawnSet& of, int from, int to) const {
  const auto size = static_cast<std::int64_t>(of.ranks.size());
  if (number % 2 == 0) return rows / size;
  // Uneven ones, whose sum is at most `rows`.
  return (rows / size) * ((from + to + number) % 2);
}

std::vector<std::uint8_t> input_of(const DrawnOp& op, int rank, int position) {
  std::vector<std::uint8_t> bytes;
  const auto elements = op.elements(position);
  bytes.reserve(static_cast<std::size_t>(elements) * size_of(op.dtype));
  for (std::int64_t e = 0; e < elements; ++e) append(bytes, op.dtype, value_of(op, rank, e));
  return bytes;
}

std::vector<std::uint8_t> result_of(const DrawnOp& op, const DrawnSet& set) {
  std::vector<std::uint8_t> bytes;
  const auto size = static_cast<int>(set.ranks.size());
  switch (op.kind) {
    case HORO_ALLREDUCE:
      for (std::int64_t e = 0; e < op.elements(0); ++e)
        append(bytes, op.dtype, combine(op, set, e));
      break;
    case HORO_BROADCAST:
      return input_of(op, set.ranks[static_cast<std::size_t>(op.root)], op.root);
    case HORO_ALLGATHER:
      for (int p = 0; p < size; ++p) {
        const auto part = input_of(op, set.ranks[static_cast<std::size_t>(p)], p);
        bytes.insert(bytes.end(), part.begin(), part.end());
      }
      break;
    case HORO_REDUCESCATTER: {
      const auto [first, count] = share_of(op.rows, size, set.position);
      for (std::int64_t e = first * op.row; e < (first + count) * op.row; ++e)
        append(bytes, op.dtype, combine(op, set, e));
      break;
    }
    default:  // alltoall
      for (int p = 0; p < size; ++p) {
        std::int64_t before = 0;
        for (int to = 0; to < set.position; ++to) before += op.split(set, p, to);
        for (std::int64_t e = 0; e < op.split(set, p, set.position) * op.row; ++e)
          append(bytes, op.dtype,
                 value_of(op, set.ranks[static_cast<std::size_t>(p)], before * op.row + e));
      }
  }
  return bytes;
}

std::vector<DrawnOp> draw(std::mt19937_64& random, int count, const std::vector<DrawnSet>& sets) {
  constexpr std::array kKinds = {HORO_ALLREDUCE, HORO_ALLREDUCE,     HORO_BROADCAST,
                                 HORO_ALLGATHER, HORO_REDUCESCATTER, HORO_ALLTOALL};
  constexpr std::array kOps = {HORO_SUM, HORO_SUM, HORO_MIN, HORO_MAX, HORO_PRODUCT};
  constexpr std::array kTypes = {HORO_FLOAT32, HORO_FLOAT32, HORO_FLOAT64,
                                 HORO_INT32,   HORO_INT64,   HORO_UINT8};
  // The last two are several pieces, of all types but bytes.
  constexpr std::array<std::int64_t, 9> kRows = {0, 1, 3, 16, 100, 1000, 4096, 20'000, 300'000};
  const auto pick = [&random](const auto& from) { return from[random() % from.size()]; };
  std::vector<DrawnOp> ops;
  for (int k = 0; k < count; ++k) {
    DrawnOp op{.number = k + static_cast<int>(random() % 5)};
    op.kind = pick(kKinds);
    op.dtype = pick(kTypes);
    op.op = op.dtype == HORO_UINT8 ? HORO_MAX : pick(kOps);
    op.rows = pick(kRows);
    op.row = op.rows > 4096 && random() % 2 == 0 ? 3 : 1 + static_cast<int>(random() % 2);
    op.set = random() % sets.size();
    op.root = static_cast<int>(random() % sets[op.set].ranks.size());
    op.in_place = random() % 2 == 0;
    op.on_device = random() % 4 != 0;
    ops.push_back(op);
  }
  return ops;
}

RunningOp::RunningOp(const Gpu& gpu, const DrawnOp& op, const DrawnSet& set, void* stream,
                     const std::string& name)
    : gpu_(gpu), op_(op), set_(set), stream_(stream) {
  declare(name);
  submit();
}

void RunningOp::declare(const std::string& name) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  const std::array<std::int64_t, 2> shape = {op_.rows_of(set_.position), op_.row};
  desc.name = name.c_str();
  desc.kind = op_.kind;
  desc.op = op_.op;
  desc.dtype = op_.dtype;
  desc.ndim = 2;
  desc.shape = shape.data();
  desc.root_rank = set_.ranks[static_cast<std::size_t>(op_.root)];
  desc.process_set = set_.id;
  desc.memory = op_.on_device ? HORO_MEMORY_DEVICE : HORO_MEMORY_HOST;
  check(horo_declare(&desc, &tensor_), "horo_declare");
}

void RunningOp::submit() {
  host_in_ = input_of(op_, set_.ranks[static_cast<std::size_t>(set_.position)], set_.position);
  const bool full = op_.kind == HORO_ALLREDUCE || op_.kind == HORO_BROADCAST;
  host_out_.resize(host_in_.size());
  horo_submission given = HORO_SUBMISSION_INIT;
  given.tensor = tensor_;
  if (op_.on_device) {
    in_ = gpu_.allocate(host_in_.size());
    gpu_.put(in_, host_in_, stream_);
    if (full) out_ = op_.in_place ? in_ : gpu_.allocate(host_out_.size());
    given.memory = HORO_MEMORY_DEVICE;
    given.device = gpu_.device();
    given.stream = stream_;
    given.in = in_;
    given.out = out_;
  } else {
    given.in = host_in_.data();
    if (full) given.out = op_.in_place ? host_in_.data() : host_out_.data();
  }
  if (op_.kind == HORO_ALLTOALL) {
    for (int to = 0; to < static_cast<int>(set_.ranks.size()); ++to)
      splits_.push_back(op_.split(set_, set_.position, to));
    given.splits = splits_.data();
    given.split_count = splits_.size();
  }
  check(horo_submit_with(&given, &handle_), "horo_submit_with");
}

std::vector<std::uint8_t> RunningOp::read(bool by_stream) {
  const bool full = op_.kind == HORO_ALLREDUCE || op_.kind == HORO_BROADCAST;
  const void* data = out_;
  std::size_t bytes = host_out_.size();
  if (!full) check(horo_result(handle_, &data, &bytes, nullptr), "horo_result");
  if (op_.on_device && bytes != 0) return gpu_.fetch(data, bytes, by_stream ? stream_ : nullptr);
  if (full) return op_.in_place ? host_in_ : host_out_;
  const auto* const at = static_cast<const std::uint8_t*>(data);
  return {at, at + bytes};
}

void RunningOp::check_result(const std::vector<std::uint8_t>& got) const {
  require(got == result_of(op_, set_), "operation " + std::to_string(op_.number) + ", kind " +
                                           std::to_string(op_.kind) + ", has a wrong result");
}

void RunningOp::await_launch(void* stream) const {
  check(horo_wait_stream(&handle_, 1, stream, -1), "horo_wait_stream");
}

void RunningOp::check_on_stream() {
  await_launch(stream_);
  const auto got = read(true);
  gpu_.synchronize(stream_);
  check_result(got);
}

void RunningOp::finish(bool by_stream) {
  if (by_stream) {
    await_launch(stream_);
  } else {
    check(horo_await(handle_, -1), "horo_await");
  }
  check_result(read(by_stream));
  check(horo_await(handle_, -1), "horo_await");
  check(horo_release(handle_), "horo_release");
  release();
}

std::vector<std::uint8_t> RunningOp::take() {
  check(horo_await(handle_, -1), "horo_await");
  auto got = read(false);
  check(horo_release(handle_), "horo_release");
  release();
  return got;
}

bool RunningOp::finish_unless_lost() {
  const auto status = horo_await(handle_, -1);
  if (status == HORO_PEER_LOST) {
    check(horo_release(handle_), "horo_release");
    release();
    return false;
  }
  check(status, "horo_await");
  check_result(read(false));
  check(horo_release(handle_), "horo_release");
  release();
  return true;
}

horo_status RunningOp::end() {
  const auto status = horo_await(handle_, -1);
  static_cast<void>(horo_release(handle_));
  return status;
}

void RunningOp::release() {
  if (out_ != nullptr && out_ != in_) gpu_.free(out_);
  if (in_ != nullptr) gpu_.free(in_);
  in_ = out_ = nullptr;
}

}  // namespace horo::tests
