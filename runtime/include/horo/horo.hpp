// SPDX-License-Identifier: Apache-2.0
/// The C++20 face of libhoro: header-only RAII over horo.h, for trainings written in C++.
///
///   horo::Job job;                                       // joins the job that `horo run` started
///   horo::SharedBuffer<float> gradient(count);           // reduced in place by the host's ranks
///   auto reduce = horo::Tensor<float>::allreduce("grad.0", count);   // average over the ranks
///   horo::Op op = reduce.submit(gradient);               // at once; compute something else ...
///   op.wait();                                           // ... and gradient holds the average
///
/// Counts are elements, not bytes. Functions that fail throw horo::Error, whose what() names
/// object, value and remedy. Destructors do not throw. Anything may be called from any thread, but
/// one object by one thread at a time. Not to be included together with headers of Horo's own
/// source tree: they use the same names.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <horo/error.hpp>
#include <horo/horo.h>
#include <horo/process_set.hpp>

namespace horo {
inline namespace v1 {

/// Bits of a half and of a bfloat16 number: C++20 has no such types; convert with your own
/// library's.
struct Float16 {
  std::uint16_t bits;
};

struct BFloat16 {
  std::uint16_t bits;
};

/// The wire type of T, or -1 where there is none.
template <class T>
consteval int dtype_of() {
  if constexpr (std::same_as<T, float>) {
    return HORO_FLOAT32;
  } else if constexpr (std::same_as<T, double>) {
    return HORO_FLOAT64;
  } else if constexpr (std::same_as<T, Float16>) {
    return HORO_FLOAT16;
  } else if constexpr (std::same_as<T, BFloat16>) {
    return HORO_BFLOAT16;
  } else if constexpr (std::same_as<T, bool>) {
    return HORO_BOOL;
  } else if constexpr (std::signed_integral<T>) {
    return sizeof(T) == 1   ? HORO_INT8
           : sizeof(T) == 2 ? HORO_INT16
           : sizeof(T) == 4 ? HORO_INT32
                            : HORO_INT64;
  } else if constexpr (std::unsigned_integral<T> && sizeof(T) <= 2) {
    return sizeof(T) == 1 ? HORO_UINT8 : HORO_UINT16;
  } else {
    return -1;
  }
}

/// What a tensor may consist of.
template <class T>
concept Element = dtype_of<T>() >= 0;

enum class ReduceOp : int {
  average = HORO_AVERAGE,
  sum = HORO_SUM,
  adasum = HORO_ADASUM,
  min = HORO_MIN,
  max = HORO_MAX,
  product = HORO_PRODUCT,
};

/// How allreduce and reducescatter combine: each rank's input times `prescale`, the result times
/// `postscale`.
struct Reduction {
  ReduceOp op = ReduceOp::average;
  double prescale = 1.0;
  double postscale = 1.0;
};

/// One submitted operation. The buffers belong to the runtime until it has completed, so the
/// destructor waits.
class Op {
 public:
  Op() = default;

  explicit Op(horo_op op) noexcept : op_(op) {}

  Op(Op&& other) noexcept : op_(std::exchange(other.op_, 0)) {}

  Op& operator=(Op&& other) noexcept {
    if (this != &other) {
      finish();
      op_ = std::exchange(other.op_, 0);
    }
    return *this;
  }

  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  ~Op() { finish(); }

  /// Blocks: until the operation has completed; never for ever on a dead peer. Once; later calls do
  /// nothing. Fails: MISMATCH, PEER_LOST, SHUT_DOWN, FORKED.
  void wait() {
    if (op_ != 0) {
      check(horo_wait(std::exchange(op_, 0), -1));
    }
  }

  /// As wait, but at most `timeout`; false when that was not enough.
  bool wait_for(std::chrono::milliseconds timeout) {
    if (op_ == 0) {
      return true;
    }
    const horo_status status = horo_wait(op_, timeout.count() < 0 ? 0 : timeout.count());
    if (status == HORO_IN_PROGRESS) {
      return false;
    }
    op_ = 0;
    check(status);
    return true;
  }

  /// Whether wait() would return at once. Blocks: no.
  bool done() const noexcept { return op_ == 0 || horo_poll(op_) != HORO_IN_PROGRESS; }

  /// Gives up ownership: the caller must wait for it or release it. 0 when there is none.
  horo_op release() noexcept { return std::exchange(op_, 0); }

 private:
  void finish() noexcept {
    if (op_ != 0) {
      horo_wait(std::exchange(op_, 0), -1);
    }
  }

  horo_op op_ = 0;
};

/// Waits for all, then throws the first error in their order. Faster than one after the other.
inline void wait_all(std::span<Op> ops) {
  std::vector<horo_op> handles;
  handles.reserve(ops.size());
  for (Op& op : ops) {
    if (const horo_op handle = op.release(); handle != 0) {
      handles.push_back(handle);
    }
  }
  check(horo_wait_all(handles.data(), handles.size(), -1));
}

/// What submit_all offers of one tensor; see Tensor::part.
struct Part {
  horo_submission submission;
};

/// Offers all of them, or none when one fails: as the tensors of a group are. Blocks: no. Fails: as
/// Tensor::submit.
[[nodiscard]] inline std::vector<Op> submit_all(std::span<const Part> parts) {
  std::vector<horo_submission> submissions;
  submissions.reserve(parts.size());
  for (const Part& part : parts) submissions.push_back(part.submission);
  std::vector<horo_op> handles(parts.size());
  std::vector<Op> ops;
  ops.reserve(parts.size());
  check(horo_submit_all(submissions.data(), submissions.size(), handles.data()));
  for (const horo_op handle : handles) ops.emplace_back(handle);
  return ops;
}

/// `size()` elements in the memory that this host's ranks share, zero at first: a tensor that lies
/// there on all ranks is reduced in place, without a copy. Needs a Job; must not be in flight when
/// destroyed. Forked children lack it.
template <Element T>
class SharedBuffer {
 public:
  SharedBuffer() = default;

  /// Fails: OUT_OF_MEMORY, RESOURCE_EXHAUSTED (arena size), NOT_INITIALIZED.
  explicit SharedBuffer(std::size_t count) : size_(count) {
    void* memory = nullptr;
    check(horo_alloc(count * sizeof(T), &memory));
    data_.reset(static_cast<T*>(memory));
    std::uninitialized_value_construct_n(data_.get(), count);
  }

  T* data() const noexcept { return data_.get(); }

  std::size_t size() const noexcept { return size_; }

  T* begin() const noexcept { return data(); }

  T* end() const noexcept { return data() + size_; }

  T& operator[](std::size_t index) const noexcept { return data_.get()[index]; }

 private:
  struct Free {
    void operator()(T* memory) const noexcept { horo_free(memory); }
  };

  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

/// A declared name with its type, count and operation; a value that costs nothing to copy. Declare
/// once, submit every step: ranks may submit their tensors in different orders. Valid until the Job
/// ends.
template <Element T>
class Tensor {
 public:
  /// `count` elements, combined over all ranks of the set. `name` must be the same on all ranks and
  /// unique in flight. Fails: INVALID_ARGUMENT, DUPLICATE (in flight), RESOURCE_EXHAUSTED,
  /// NOT_INITIALIZED.
  static Tensor allreduce(const std::string& name, std::size_t count, const Reduction& how = {},
                          const Where& where = {}) {
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.kind = HORO_ALLREDUCE;
    desc.op = static_cast<horo_reduce_op>(how.op);
    desc.prescale = how.prescale;
    desc.postscale = how.postscale;
    return Tensor(name, count, desc, where);
  }

  /// `rows` rows of `row_elements`, combined over all ranks; each rank gets its own rows: dealt out
  /// in rank order, those that are over one each to the first ranks.
  static Tensor reducescatter(const std::string& name, std::size_t rows,
                              std::size_t row_elements = 1, const Reduction& how = {},
                              const Where& where = {}) {
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.kind = HORO_REDUCESCATTER;
    desc.op = static_cast<horo_reduce_op>(how.op);
    desc.prescale = how.prescale;
    desc.postscale = how.postscale;
    Tensor tensor(name, rows, desc, where, row_elements);
    const auto ranks = static_cast<std::size_t>(where.set.size());
    const auto me = static_cast<std::size_t>(where.set.rank());
    const std::size_t over = rows % ranks;
    tensor.out_first_ = (rows / ranks * me + (me < over ? me : over)) * row_elements;
    tensor.out_count_ = (rows / ranks + (me < over ? 1 : 0)) * row_elements;
    return tensor;
  }

  /// `count` elements of rank `root`, a rank of the job that is in the set, copied to all others.
  static Tensor broadcast(const std::string& name, std::size_t count, int root,
                          const Where& where = {}) {
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.kind = HORO_BROADCAST;
    desc.root_rank = root;
    return Tensor(name, count, desc, where);
  }

  /// Offers this rank's part; `in` and `out` may be the same memory, and stay untouched until the
  /// Op has completed. Blocks: no. Fails: INVALID_ARGUMENT (another count than declared), DUPLICATE
  /// (in flight), PEER_LOST, SHUT_DOWN.
  [[nodiscard]] Op submit(std::span<const T> in, std::span<T> out) const {
    check_sizes(in, out);
    horo_op op = 0;
    check(horo_submit(tensor_, in.data(), out.data(), &op));
    return Op(op);
  }

  /// In place; a reducescatter's rows end up where they lie in `data`.
  [[nodiscard]] Op submit(std::span<T> data) const { return submit(data, own(data)); }

  /// As submit, later: by submit_all, together with others.
  Part part(std::span<const T> in, std::span<T> out) const {
    check_sizes(in, out);
    horo_submission submission = HORO_SUBMISSION_INIT;
    submission.tensor = tensor_;
    submission.in = in.data();
    submission.out = out.data();
    return {submission};
  }

  Part part(std::span<T> data) const { return part(data, own(data)); }

  std::size_t size() const noexcept { return count_; }

  /// Elements that this rank receives.
  std::size_t out_size() const noexcept { return out_count_; }

  horo_tensor handle() const noexcept { return tensor_; }

 private:
  void check_sizes(std::span<const T> in, std::span<T> out) const {
    if (in.size() == count_ && out.size() == out_count_) return;
    throw Error(HORO_INVALID_ARGUMENT,
                "tensor was declared with " + std::to_string(count_) + " elements in and " +
                    std::to_string(out_count_) + " out, but the buffers have " +
                    std::to_string(in.size()) + " and " + std::to_string(out.size()));
  }

  /// Where this rank's rows lie in `data`; all of it when its size is wrong, to be refused so.
  std::span<T> own(std::span<T> data) const {
    return data.size() == count_ ? data.subspan(out_first_, out_count_) : data;
  }

  Tensor(const std::string& name, std::size_t rows, horo_tensor_desc desc, const Where& where,
         std::size_t row_elements = 1)
      : count_(rows * row_elements), out_count_(count_) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(rows),
                                  static_cast<std::int64_t>(row_elements)};
    desc.name = name.c_str();
    desc.dtype = static_cast<horo_dtype>(dtype_of<T>());
    desc.ndim = row_elements == 1 ? 1 : 2;
    desc.shape = shape;
    desc.process_set = where.set.id();
    desc.group = where.group.empty() ? nullptr : where.group.c_str();
    desc.group_size = where.group_size;
    check(horo_declare(&desc, &tensor_));
  }

  horo_tensor tensor_ = 0;
  std::size_t count_;
  std::size_t out_count_;
  std::size_t out_first_ = 0;  // Of `out` in `in`, in place.
};

/// What allgather and alltoall brought: the parts of all ranks, in rank order.
template <Element T>
struct Gathered {
  std::vector<T> data;
  std::vector<std::int64_t> rows;  ///< How many rows came from each rank.
};

/// Membership of this process in its job: joins when constructed, leaves when destroyed. Without
/// `horo run` it is a job of one rank. Where the process has joined already (another library did),
/// it neither joins nor leaves.
class Job {
 public:
  /// Blocks: until all ranks have come, at most HORO_START_TIMEOUT.
  /// Fails: TIMED_OUT (names the missing ranks), PEER_LOST, VERSION_MISMATCH, OUT_OF_MEMORY,
  /// INVALID_ARGUMENT.
  Job() : owner_(horo_is_initialized() == 0) {
    if (horo_abi_version() != HORO_ABI_VERSION) {
      throw Error(HORO_VERSION_MISMATCH, "libhoro has ABI " + std::to_string(horo_abi_version()) +
                                             ", but this program was built for ABI " +
                                             std::to_string(HORO_ABI_VERSION) + "; rebuild it");
    }
    check(horo_init());
    if (owner_) {
      for (auto& turn : ProcessSet::barriers) turn = 0;
    }
  }

  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  ~Job() {
    if (owner_) {
      horo_shutdown();
    }
  }

  /// Position in the whole job and on this host; how many there are.
  int rank() const noexcept { return horo_rank(); }

  int size() const noexcept { return horo_size(); }

  int local_rank() const noexcept { return horo_local_rank(); }

  int local_size() const noexcept { return horo_local_size(); }

  /// In place; blocks until the result is there. In a loop, declare a Tensor once instead: it looks
  /// up no name.
  template <Element T>
  void allreduce(const std::string& name, std::span<T> data, const Reduction& how = {},
                 ProcessSet set = {}) const {
    Tensor<T>::allreduce(name, data.size(), how, {.set = set}).submit(data).wait();
  }

  /// In place: after it, all ranks have what `root` had.
  template <Element T>
  void broadcast(const std::string& name, std::span<T> data, int root = 0,
                 ProcessSet set = {}) const {
    Tensor<T>::broadcast(name, data.size(), root, {.set = set}).submit(data).wait();
  }

  /// All ranks' rows in rank order; a row is `row_elements` elements, and each rank may bring any
  /// number of rows.
  template <Element T>
  Gathered<T> allgather(const std::string& name, std::span<const T> data,
                        std::size_t row_elements = 1, ProcessSet set = {}) const {
    return exchange<T>(HORO_ALLGATHER, name, data, row_elements, {}, set);
  }

  /// This rank's rows of what allreduce gives: dealt out in rank order, those that are over one
  /// each to the first ranks.
  template <Element T>
  std::vector<T> reducescatter(const std::string& name, std::span<const T> data,
                               std::size_t row_elements = 1, const Reduction& how = {},
                               ProcessSet set = {}) const {
    check_rows(name, data.size(), row_elements);
    auto tensor =
        Tensor<T>::reducescatter(name, data.size() / row_elements, row_elements, how, {.set = set});
    std::vector<T> mine(tensor.out_size());
    tensor.submit(data, mine).wait();
    return mine;
  }

  /// Sends `splits[r]` rows to rank r, equally many to all when there are no splits, and gives the
  /// rows that came from all ranks, in rank order.
  template <Element T>
  Gathered<T> alltoall(const std::string& name, std::span<const T> data,
                       std::span<const std::int64_t> splits = {}, std::size_t row_elements = 1,
                       ProcessSet set = {}) const {
    return exchange<T>(HORO_ALLTOALL, name, data, row_elements, splits, set);
  }

  /// Blocks: until all ranks of the set are here. Threads may do so at the same time.
  void barrier(ProcessSet set = {}) const {
    const auto name = set.next_barrier();
    horo_op op = 0;
    horo_status status = HORO_DUPLICATE;
    // So many threads are here that it is a name's turn again before it is free.
    while ((status = start(HORO_BARRIER, name.c_str(), set, &op)) == HORO_DUPLICATE)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    check(status);
    check(horo_wait(op, -1));
  }

  /// This rank has no more data. Blocks: until all ranks of the set have joined; until then it
  /// takes part in their allreduces without changing a sum, and in their barriers. Gives the rank
  /// that joined last, the same on all ranks.
  int join(ProcessSet set = {}) const {
    horo_op op = 0;
    check(start(HORO_JOIN, "horo.join", set, &op));
    const Release release{op};
    check(horo_wait(op, -1));
    const void* last = nullptr;
    check(horo_result(op, &last, nullptr, nullptr));
    set.begin_barriers();
    return *static_cast<const std::int32_t*>(last);
  }

  /// What the runtime has done for this rank so far.
  horo_counters counters() const {
    horo_counters counters{};
    counters.size = sizeof(counters);
    check(horo_get_counters(&counters));
    return counters;
  }

 private:
  struct Release {
    horo_op op;

    ~Release() { horo_release(op); }
  };

  /// Declares and submits what has no data.
  static horo_status start(horo_kind kind, const char* name, ProcessSet set, horo_op* op) {
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.name = name;
    desc.kind = kind;
    desc.process_set = set.id();
    horo_tensor tensor = 0;
    const horo_status status = horo_declare(&desc, &tensor);
    return status == HORO_OK ? horo_submit(tensor, nullptr, nullptr, op) : status;
  }

  static void check_rows(const std::string& name, std::size_t elements, std::size_t row_elements) {
    if (row_elements == 0 || elements % row_elements != 0) {
      throw Error(HORO_INVALID_ARGUMENT, "'" + name + "': " + std::to_string(elements) +
                                             " elements are no whole number of rows of " +
                                             std::to_string(row_elements));
    }
  }

  template <Element T>
  Gathered<T> exchange(horo_kind kind, const std::string& name, std::span<const T> data,
                       std::size_t row_elements, std::span<const std::int64_t> splits,
                       ProcessSet set) const {
    check_rows(name, data.size(), row_elements);
    const std::int64_t shape[] = {static_cast<std::int64_t>(data.size() / row_elements),
                                  static_cast<std::int64_t>(row_elements)};
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.name = name.c_str();
    desc.kind = kind;
    desc.dtype = static_cast<horo_dtype>(dtype_of<T>());
    desc.ndim = 2;
    desc.shape = shape;
    desc.process_set = set.id();
    horo_submission submission = HORO_SUBMISSION_INIT;
    submission.in = data.data();
    submission.splits = splits.data();
    submission.split_count = splits.size();
    horo_op op = 0;
    check(horo_declare(&desc, &submission.tensor));
    check(horo_submit_with(&submission, &op));
    return collect<T>(op, set);
  }

  template <Element T>
  Gathered<T> collect(horo_op op, ProcessSet set) const {
    const Release release{op};
    check(horo_wait(op, -1));
    Gathered<T> gathered;
    gathered.rows.resize(static_cast<std::size_t>(set.size()));
    const void* data = nullptr;
    std::size_t bytes = 0;
    check(horo_result(op, &data, &bytes, gathered.rows.data()));
    const auto* first = static_cast<const T*>(data);
    gathered.data.assign(first, first + bytes / sizeof(T));
    return gathered;
  }

  bool owner_;
};

}  // namespace v1
}  // namespace horo
