// SPDX-License-Identifier: Apache-2.0
/// The job that this process is a rank of, and its collectives for single use.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <horo/element.hpp>
#include <horo/error.hpp>
#include <horo/horo.h>
#include <horo/op.hpp>
#include <horo/process_set.hpp>
#include <horo/tensor.hpp>

namespace horo {
inline namespace v1 {

/// The result of allgather and alltoall: the parts of all ranks, in rank order.
template <Element T>
struct Gathered {
  std::vector<T> data;
  std::vector<std::int64_t> rows;  ///< The number of rows from each rank.
};

/// Membership of this process in its job: joins when constructed, leaves when destroyed. Without
/// `horo run` it is a job of one rank. If another library of the process has joined already, it
/// neither joins nor leaves. Its functions wait for their result. `name` is the same on all ranks
/// and in flight once; `set` holds the ranks that take part. Thread: any; no other call may run
/// while the first Job of a process is constructed or the last one is destroyed.
class Job {
 public:
  /// Joins. Blocks: until all ranks have joined, at most HORO_START_TIMEOUT. Fails: as horo_init:
  /// TIMED_OUT (names the missing ranks), PEER_LOST, VERSION_MISMATCH (also: a program built for
  /// another ABI), MISMATCH, UNSUPPORTED, UNAVAILABLE, OUT_OF_MEMORY, PERMISSION_DENIED,
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

  /// Position in the whole job.
  int rank() const noexcept { return horo_rank(); }

  /// Number of ranks in the job.
  int size() const noexcept { return horo_size(); }

  /// Position on this host.
  int local_rank() const noexcept { return horo_local_rank(); }

  /// Number of ranks on this host.
  int local_size() const noexcept { return horo_local_size(); }

  /// Combines `data`, which has the same length on all ranks, in place. In a loop, declare a Tensor
  /// once instead: it looks up no name. Blocks: until the result is there. Fails: as
  /// Tensor::allreduce,
  /// Tensor::submit and Op::wait.
  template <Element T>
  void allreduce(const std::string& name, std::span<T> data, const Reduction& how = {},
                 ProcessSet set = {}) const {
    Tensor<T>::allreduce(name, data.size(), how, {.set = set}).submit(data).wait();
  }

  /// Copies the data of `root`, a rank of the job, to all ranks, in place. Blocks: until it is
  /// there. Fails: as allreduce.
  template <Element T>
  void broadcast(const std::string& name, std::span<T> data, int root = 0,
                 ProcessSet set = {}) const {
    Tensor<T>::broadcast(name, data.size(), root, {.set = set}).submit(data).wait();
  }

  /// The rows of all ranks in rank order. A row has `row_elements` elements, and each rank may give
  /// any number of rows. Memory: the result is a copy. Blocks: until it is there. Fails: as
  /// allreduce, and INVALID_ARGUMENT (`data` is not a whole number of rows).
  template <Element T>
  Gathered<T> allgather(const std::string& name, std::span<const T> data,
                        std::size_t row_elements = 1, ProcessSet set = {}) const {
    return exchange<T>(HORO_ALLGATHER, name, data, row_elements, {}, set);
  }

  /// Reduces like allreduce and returns this rank's rows. Rows are divided in rank order; when they
  /// do not divide evenly, the first ranks get one row more. Blocks: until they are there. Fails:
  /// as allgather.
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

  /// Sends `splits[r]` rows to rank r, or the same number of rows to every rank when there are no
  /// splits. Returns the received rows in rank order. Memory: the result is a copy. Blocks: until
  /// it is there. Fails: as allgather, and INVALID_ARGUMENT (a negative split, not one split for
  /// each rank, or more rows than there are).
  template <Element T>
  Gathered<T> alltoall(const std::string& name, std::span<const T> data,
                       std::span<const std::int64_t> splits = {}, std::size_t row_elements = 1,
                       ProcessSet set = {}) const {
    return exchange<T>(HORO_ALLTOALL, name, data, row_elements, splits, set);
  }

  /// Waits for the other ranks of the set. Several threads may call it at the same time. Blocks:
  /// until all ranks of the set have called it. Fails: PEER_LOST, SHUT_DOWN, NOT_INITIALIZED,
  /// INVALID_ARGUMENT (no such set), FORKED.
  void barrier(ProcessSet set = {}) const {
    const auto name = set.next_barrier();
    horo_op op = 0;
    horo_status status = HORO_DUPLICATE;
    // With very many threads, the next name may still be in flight.
    while ((status = start(HORO_BARRIER, name.c_str(), set, &op)) == HORO_DUPLICATE)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    check(status);
    check(horo_wait(op, -1));
  }

  /// Tells the set that this rank has no more data. Until all ranks of the set have joined, this
  /// rank takes part in their allreduces without changing a sum, and in their barriers. Returns the
  /// rank that joined last, which is the same on all ranks. Blocks: until all ranks of the set have
  /// joined. Fails: as barrier, and DUPLICATE (another thread joins).
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

  /// Counts what the runtime has done for this rank so far. Blocks: no. Fails: NOT_INITIALIZED,
  /// FORKED.
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

  /// Declares and submits an operation without data.
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
                                             " elements are not a whole number of rows of " +
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
