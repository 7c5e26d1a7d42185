// SPDX-License-Identifier: Apache-2.0
/// Tensors by name: declare once, submit every step.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <horo/element.hpp>
#include <horo/error.hpp>
#include <horo/horo.h>
#include <horo/op.hpp>
#include <horo/process_set.hpp>

namespace horo {
inline namespace v1 {

/// How the elements of several ranks are combined; see horo_reduce_op.
enum class ReduceOp : int {
  average = HORO_AVERAGE,
  sum = HORO_SUM,
  adasum = HORO_ADASUM,
  min = HORO_MIN,
  max = HORO_MAX,
  product = HORO_PRODUCT,
};

/// In which type the elements of a float sum or average travel between hosts; see horo_wire_dtype.
enum class WireDType : int {
  by_knob = HORO_WIRE_DEFAULT,
  none = HORO_WIRE_NONE,
  bfloat16 = HORO_WIRE_BFLOAT16,
  float16 = HORO_WIRE_FLOAT16,
};

/// Whether the next submission of a name adds what the rounding to its WireDType has left.
enum class WireFeedback : int { by_knob = 0, on = 1, off = -1 };

/// How allreduce and reducescatter combine. Each rank's input is multiplied by `prescale`, the
/// result by `postscale`.
struct Reduction {
  ReduceOp op = ReduceOp::average;
  double prescale = 1.0;
  double postscale = 1.0;
  WireDType wire_dtype = WireDType::by_knob;
  WireFeedback wire_feedback = WireFeedback::by_knob;
};

/// A declared name with its type, count and operation; cheap to copy. Declare it once and submit it
/// in every step. Ranks may submit their tensors in different orders. Valid until the Job ends.
/// Thread: any; a name is in flight once.
template <Element T>
class Tensor {
 public:
  /// `count` elements, combined over all ranks of the set; 0 is allowed. `name` must be the same on
  /// all ranks and unique in flight; a second call may change the signature. Blocks: no; ranks are
  /// compared when they submit. Fails: INVALID_ARGUMENT (no such set, a type that the operation
  /// does not take), DUPLICATE (in flight), RESOURCE_EXHAUSTED (HORO_CACHE_CAPACITY),
  /// NOT_INITIALIZED, FORKED.
  static Tensor allreduce(const std::string& name, std::size_t count, const Reduction& how = {},
                          const Where& where = {}) {
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.kind = HORO_ALLREDUCE;
    put(how, desc);
    return Tensor(name, count, desc, where);
  }

  /// `rows` rows of `row_elements`, combined over all ranks. Each rank gets its own rows, divided
  /// in rank order; when they do not divide evenly, the first ranks get one row more. Blocks: no.
  /// Fails: as allreduce.
  static Tensor reducescatter(const std::string& name, std::size_t rows,
                              std::size_t row_elements = 1, const Reduction& how = {},
                              const Where& where = {}) {
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.kind = HORO_REDUCESCATTER;
    put(how, desc);
    Tensor tensor(name, rows, desc, where, row_elements);
    const auto ranks = static_cast<std::size_t>(where.set.size());
    const auto me = static_cast<std::size_t>(where.set.rank());
    const std::size_t over = rows % ranks;
    tensor.out_first_ = (rows / ranks * me + (me < over ? me : over)) * row_elements;
    tensor.out_count_ = (rows / ranks + (me < over ? 1 : 0)) * row_elements;
    return tensor;
  }

  /// `count` elements of rank `root`, a rank of the job that is in the set, copied to all others.
  /// Blocks: no. Fails: as allreduce.
  static Tensor broadcast(const std::string& name, std::size_t count, int root,
                          const Where& where = {}) {
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.kind = HORO_BROADCAST;
    desc.root_rank = root;
    return Tensor(name, count, desc, where);
  }

  /// Submits this rank's part; `in` has size() elements, `out` out_size(). Memory: the caller's;
  /// `in` and `out` may be the same. The caller must not touch them until the Op has completed.
  /// Blocks: no. Fails: INVALID_ARGUMENT (another count than declared), DUPLICATE (in flight),
  /// NOT_FOUND (its name was evicted, see horo_declare: declare it again), PEER_LOST, SHUT_DOWN,
  /// FORKED. When ranks disagree, the Op fails with MISMATCH.
  [[nodiscard]] Op submit(std::span<const T> in, std::span<T> out) const {
    check_sizes(in, out);
    horo_op op = 0;
    check(horo_submit(tensor_, in.data(), place(out), &op));
    return Op(op);
  }

  /// Like the other submit, in place, with size() elements. The rows of a reducescatter are written
  /// to their own place in `data`. Memory: as above. Blocks: no. Fails: as above.
  [[nodiscard]] Op submit(std::span<T> data) const { return submit(data, own(data)); }

  /// A submission for submit_all, which submits it together with others. Memory: as submit, from
  /// submit_all on. Fails: INVALID_ARGUMENT (another count than declared).
  Part part(std::span<const T> in, std::span<T> out) const {
    check_sizes(in, out);
    horo_submission submission = HORO_SUBMISSION_INIT;
    submission.tensor = tensor_;
    submission.in = in.data();
    submission.out = place(out);
    return {submission};
  }

  /// Like part, in place. Fails: as part.
  Part part(std::span<T> data) const { return part(data, own(data)); }

  /// The number of elements that this rank gives.
  std::size_t size() const noexcept { return count_; }

  /// The number of elements that this rank receives.
  std::size_t out_size() const noexcept { return out_count_; }

  /// For calls of horo.h.
  horo_tensor handle() const noexcept { return tensor_; }

 private:
  static void put(const Reduction& how, horo_tensor_desc& desc) noexcept {
    desc.op = static_cast<horo_reduce_op>(how.op);
    desc.prescale = how.prescale;
    desc.postscale = how.postscale;
    desc.wire_dtype = static_cast<horo_wire_dtype>(how.wire_dtype);
    desc.wire_feedback = static_cast<int>(how.wire_feedback);
  }

  void check_sizes(std::span<const T> in, std::span<T> out) const {
    if (in.size() == count_ && out.size() == out_count_) return;
    throw Error(HORO_INVALID_ARGUMENT,
                "tensor was declared with " + std::to_string(count_) + " elements in and " +
                    std::to_string(out_count_) + " out, but the buffers have " +
                    std::to_string(in.size()) + " and " + std::to_string(out.size()));
  }

  /// An empty result needs an address too: without one, the operation would own its result until it
  /// is released.
  static T* place(std::span<T> out) noexcept {
    static T nowhere{};
    return out.empty() ? &nowhere : out.data();
  }

  /// This rank's rows in `data`. All of `data` when its size is wrong, so that the check refuses
  /// it.
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
  std::size_t out_first_ = 0;  // First element of `out` within `in`, in place.
};

}  // namespace v1
}  // namespace horo
