// SPDX-License-Identifier: Apache-2.0
#include "bindings/tensorflow/node.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "base/mutex.hpp"

namespace horo::tensorflow {

namespace {

/// Reads attributes one after the other and keeps the first failure.
class Reader {
 public:
  explicit Reader(TF_OpKernelConstruction* construction) : construction_(construction) {}

  std::int64_t integer(const char* name) {
    std::int64_t value = 0;
    api.TF_OpKernelConstruction_GetAttrInt64(construction_, name, &value, status_.get());
    return after(value);
  }

  std::vector<std::string> strings(const char* name) {
    const auto [count, bytes] = sizes(name);
    std::vector<char*> values(static_cast<std::size_t>(count));
    std::vector<std::size_t> lengths(values.size());
    std::vector<char> storage(static_cast<std::size_t>(bytes) + 1);
    api.TF_OpKernelConstruction_GetAttrStringList(construction_, name, values.data(),
                                                  lengths.data(), count, storage.data(),
                                                  storage.size(), status_.get());
    std::vector<std::string> result;
    if (after(status_.ok())) {
      for (std::size_t i = 0; i < values.size(); ++i) result.emplace_back(values[i], lengths[i]);
    }
    return result;
  }

  std::string string(const char* name) {
    const auto [count, bytes] = sizes(name);
    std::string value(static_cast<std::size_t>(bytes) + 1, '\0');
    api.TF_OpKernelConstruction_GetAttrString(construction_, name, value.data(), value.size(),
                                              status_.get());
    value.resize(static_cast<std::size_t>(bytes));
    return after(value);
  }

  /// Numbers travel as text, because an attribute of type float has 32 bits.
  double number(const char* name) { return std::strtod(string(name).c_str(), nullptr); }

  const OpFailure& failure() const { return failure_; }

 private:
  std::pair<std::int32_t, std::int32_t> sizes(const char* name) {
    std::int32_t count = 0;
    std::int32_t bytes = 0;
    api.TF_OpKernelConstruction_GetAttrSize(construction_, name, &count, &bytes, status_.get());
    after(0);
    return {count < 0 ? 0 : count, bytes < 0 ? 0 : bytes};
  }

  template <typename Value>
  Value after(Value value) {
    if (!status_.ok() && failure_.is_ok()) failure_ = OpFailure::of(status_);
    return value;
  }

  TF_OpKernelConstruction* construction_;
  Status status_;
  OpFailure failure_;
};

/// A dtype of TensorFlow that libhoro can move. A complex number is two real ones.
struct Movable {
  DataType type;
  horo_dtype dtype;
  int numbers = 1;
};

constexpr Movable kMovable[] = {
    {DataType::float32, HORO_FLOAT32},       {DataType::float64, HORO_FLOAT64},
    {DataType::float16, HORO_FLOAT16},       {DataType::bfloat16, HORO_BFLOAT16},
    {DataType::int32, HORO_INT32},           {DataType::int64, HORO_INT64},
    {DataType::int16, HORO_INT16},           {DataType::int8, HORO_INT8},
    {DataType::uint16, HORO_UINT16},         {DataType::uint8, HORO_UINT8},
    {DataType::boolean, HORO_BOOL},          {DataType::complex64, HORO_FLOAT32, 2},
    {DataType::complex128, HORO_FLOAT64, 2},
};

constexpr std::size_t bytes_of(horo_dtype dtype) {
  switch (dtype) {
    case HORO_UINT8:
    case HORO_INT8:
    case HORO_BOOL:
      return 1;
    case HORO_UINT16:
    case HORO_INT16:
    case HORO_FLOAT16:
    case HORO_BFLOAT16:
      return 2;
    case HORO_INT32:
    case HORO_FLOAT32:
      return 4;
    case HORO_INT64:
    case HORO_FLOAT64:
      return 8;
  }
  return 0;
}

}  // namespace

OpFailure Attributes::read(TF_OpKernelConstruction* construction, horo_kind kind,
                           Attributes& result) {
  Reader reader(construction);
  result.kind = kind;
  result.names = reader.strings("tensor_names");
  result.set = static_cast<horo_set>(reader.integer("process_set"));
  result.grouped = reader.integer("grouped") != 0;
  if (kind == HORO_BROADCAST) result.root_rank = static_cast<int>(reader.integer("root_rank"));
  if (result.reduces()) {
    result.op = static_cast<horo_reduce_op>(reader.integer("reduce_op"));
    result.prescale = reader.number("prescale");
    result.postscale = reader.number("postscale");
    result.wire_dtype = static_cast<horo_wire_dtype>(reader.integer("wire_dtype"));
    result.wire_feedback = static_cast<int>(reader.integer("wire_feedback"));
  }
  return reader.failure();
}

OpFailure Shape::of(DataType type, std::vector<std::int64_t> dims, Shape& result) {
  const auto* const found = std::ranges::find(kMovable, type, &Movable::type);
  if (found == std::end(kMovable))
    return OpFailure::invalid("TensorFlow's dtype " + std::to_string(static_cast<int>(type)) +
                              " cannot travel; cast the tensor to a number type");
  result.dtype = found->dtype;
  result.dims = std::move(dims);
  if (found->numbers > 1) result.dims.push_back(found->numbers);
  return {};
}

std::size_t Shape::row_bytes() const {
  if (dims.empty()) return bytes_of(dtype);
  const auto row =
      std::accumulate(dims.begin() + 1, dims.end(), std::int64_t{1}, std::multiplies<>());
  return static_cast<std::size_t>(row) * bytes_of(dtype);
}

/// A declared name of the process. Two nodes may have the same one: for example, two traces of a
/// function. The last one that declared it counts.
struct Name {
  std::uint64_t declared_by = 0;  ///< id of a node; 0: nobody
  horo_tensor handle = 0;
  Shape shape;
};

namespace {

/// Guards all names: a declaration must not come between another node's declaration and submission.
Mutex names_mutex;

std::vector<std::shared_ptr<Name>> names_of(const Attributes& attributes) {
  using Key = std::pair<horo_set, std::string>;
  static std::map<Key, std::weak_ptr<Name>> known;
  static std::size_t swept_size = 1024;
  const MutexLock lock(names_mutex);
  std::vector<std::shared_ptr<Name>> names;
  for (const auto& text : attributes.names) {
    auto& weak = known[{attributes.set, text}];
    auto name = weak.lock();
    if (name == nullptr) weak = name = std::make_shared<Name>();
    names.push_back(std::move(name));
  }
  if (known.size() > swept_size) {
    std::erase_if(known, [](const auto& one) { return one.second.expired(); });
    swept_size = 2 * known.size() + 1024;
  }
  return names;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Node::Node(Attributes attributes)
    : attributes_(std::move(attributes)),
      id_(next_id()),
      names_(names_of(attributes_)),
      rows_(attributes_.names.size()) {
  for (auto& rows : rows_) rows = -1;
}

horo_status Node::declare(std::size_t i, const Shape& shape) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = attributes_.names[i].c_str();
  desc.kind = attributes_.kind;
  desc.op = attributes_.op;
  desc.dtype = shape.dtype;
  desc.ndim = static_cast<int>(shape.dims.size());
  desc.shape = shape.dims.data();
  desc.root_rank = attributes_.root_rank;
  desc.prescale = attributes_.prescale;
  desc.postscale = attributes_.postscale;
  desc.process_set = attributes_.set;
  if (attributes_.grouped && size() > 1) {
    desc.group = attributes_.names[0].c_str();
    desc.group_size = static_cast<std::uint32_t>(size());
  }
  desc.wire_dtype = attributes_.wire_dtype;
  desc.wire_feedback = attributes_.wire_feedback;
  Name& name = *names_[i];
  name.declared_by = 0;
  const auto status = horo_declare(&desc, &name.handle);
  if (status == HORO_OK) {
    name.shape = shape;
    name.declared_by = id_;  // last, since the copy may throw
  }
  return status;
}

horo_status Node::declare_changed(const std::vector<Shape>& shapes) {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Name& name = *names_[i];
    if (name.declared_by == id_ && name.shape == shapes[i]) continue;
    if (const auto status = declare(i, shapes[i]); status != HORO_OK) return status;
  }
  return HORO_OK;
}

horo_status Node::submit_once(const std::vector<Shape>& shapes,
                              std::vector<horo_submission>& submissions, horo_op* ops) {
  if (const auto status = declare_changed(shapes); status != HORO_OK) return status;
  for (std::size_t i = 0; i < submissions.size(); ++i) submissions[i].tensor = names_[i]->handle;
  return horo_submit_all(submissions.data(), submissions.size(), ops);
}

OpFailure Node::submit(const std::vector<Shape>& shapes, std::vector<horo_submission>& submissions,
                       horo_op* ops) {
  const MutexLock lock(names_mutex);
  auto status = submit_once(shapes, submissions, ops);
  // The runtime forgets names in a new generation, and names that were not used for a long time.
  if (status == HORO_NOT_FOUND || status == HORO_INVALID_ARGUMENT) {
    for (const auto& name : names_) name->declared_by = 0;
    status = submit_once(shapes, submissions, ops);
  }
  return status == HORO_OK ? OpFailure{} : OpFailure::of_library(status);
}

}  // namespace horo::tensorflow
