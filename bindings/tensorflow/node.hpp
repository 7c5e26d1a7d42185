// SPDX-License-Identifier: Apache-2.0
// What one node of a graph asks for: its attributes, and the names that it has declared.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bindings/tensorflow/status.hpp"

namespace horo::tensorflow {

/// The attributes of a node. Immutable.
struct Attributes {
  horo_kind kind = HORO_ALLREDUCE;
  std::vector<std::string> names;  ///< of its tensors
  horo_set set = HORO_WORLD;
  horo_reduce_op op = HORO_SUM;
  double prescale = 1.0;
  double postscale = 1.0;
  int root_rank = 0;
  bool grouped = false;
  horo_wire_dtype wire_dtype = HORO_WIRE_DEFAULT;
  int wire_feedback = 0;

  bool reduces() const { return kind == HORO_ALLREDUCE || kind == HORO_REDUCESCATTER; }

  /// Allgather and alltoall: the number of rows in the result depends on the other ranks.
  bool collects_rows() const { return kind == HORO_ALLGATHER || kind == HORO_ALLTOALL; }

  /// Reads the attributes of a node that is being made.
  static OpFailure read(TF_OpKernelConstruction* construction, horo_kind kind, Attributes& result);
};

/// dtype and shape as libhoro sees them: a complex number is two real ones in a further dimension.
struct Shape {
  horo_dtype dtype = HORO_FLOAT32;
  std::vector<std::int64_t> dims;

  /// Fails: a dtype that libhoro does not have.
  static OpFailure of(DataType type, std::vector<std::int64_t> dims, Shape& result);
  /// Bytes of one row of dimension 0; of all, for a scalar.
  std::size_t row_bytes() const;

  friend bool operator==(const Shape&, const Shape&) = default;
};

struct Name;

/// One node's tensors as declared names. It declares a name again when its shape has changed, when
/// another node has declared it since, or when the runtime has forgotten it. Thread: any.
class Node {
 public:
  explicit Node(Attributes attributes);

  const Attributes& attributes() const { return attributes_; }

  std::size_t size() const { return attributes_.names.size(); }

  /// Declares the tensors with these shapes if needed, and submits all of them, or none.
  /// `submissions` and `ops` have an element for each tensor.
  OpFailure submit(const std::vector<Shape>& shapes, std::vector<horo_submission>& submissions,
                   horo_op* ops);

  /// The rows of tensor i's last result, for operations that collect rows; -1 at first.
  std::int64_t last_rows(std::size_t i) const { return rows_[i].load(std::memory_order_relaxed); }

  void keep_rows(std::size_t i, std::int64_t rows) {
    rows_[i].store(rows, std::memory_order_relaxed);
  }

 private:
  horo_status declare(std::size_t i, const Shape& shape);
  horo_status declare_changed(const std::vector<Shape>& shapes);
  horo_status submit_once(const std::vector<Shape>& shapes,
                          std::vector<horo_submission>& submissions, horo_op* ops);

  const Attributes attributes_;
  const std::uint64_t id_;                          ///< no other node of this process has it
  const std::vector<std::shared_ptr<Name>> names_;  ///< shared by all requests of a name
  std::vector<std::atomic<std::int64_t>> rows_;
};

}  // namespace horo::tensorflow
