// SPDX-License-Identifier: Apache-2.0
#include "bindings/jax/names.hpp"

#include <utility>

namespace horo::jax {

namespace {

constexpr std::size_t kMostEntries = 65536;  ///< A program that makes names without end.

/// A barrier has this in place of data.
constexpr xla::Buffer kNothing{.size = sizeof(xla::Buffer),
                               .extensions = nullptr,
                               .dtype = xla::ElementType::u8,
                               .data = nullptr,
                               .rank = 0,
                               .dims = nullptr};

template <typename Value>
void append(std::string& text, const Value& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// All that a declaration depends on besides the name, as bytes.
std::string signature_of(const Collective& collective) {
  std::string text;
  append(text, collective.kind);
  append(text, collective.op);
  append(text, collective.root);
  append(text, collective.wire);
  append(text, collective.feedback);
  append(text, collective.prescale);
  append(text, collective.postscale);
  for (const auto& part : collective.parts) text += part + "\n";
  for (const auto* buffer : collective.inputs) {
    append(text, buffer->dtype);
    append(text, buffer->rank);
    for (std::int64_t i = 0; i < buffer->rank; ++i) append(text, buffer->dims[i]);
  }
  return text;
}

CallError unsupported(const Collective& collective, const std::string& name) {
  const bool integer = collective.inputs.front()->dtype == xla::ElementType::u32 ||
                       collective.inputs.front()->dtype == xla::ElementType::u64;
  return {.code = xla::XlaCode::unimplemented,
          .message = "horo: unsupported: " + name +
                     (integer ? ": unsigned integers of 32 and 64 bits reduce by Sum or Product "
                                "without factors; convert the array first"
                              : ": the ranks cannot exchange arrays of this dtype; convert it "
                                "first, for example to float32 or bfloat16")};
}

horo_submission submission_of(const xla::Buffer& input, const xla::Buffer& output,
                              horo_tensor tensor) {
  horo_submission submission = HORO_SUBMISSION_INIT;
  submission.tensor = tensor;
  submission.in = input.data;
  submission.out = output.data;
  submission.out_bytes = bytes_of(output);
  return submission;
}

}  // namespace

std::uint32_t Tickets::next(std::string_view site, std::optional<std::int64_t> execution) {
  const MutexLock lock(mutex_);
  auto& count = counts_[std::string(site)];
  if (execution && count.execution != *execution) count = {.execution = *execution, .next = 0};
  return count.next++;
}

std::optional<CallError> Declared::declare(const Collective& collective, const std::string& name,
                                           std::vector<horo_tensor>& tensors, horo_status& status) {
  const auto count = collective.operations();
  tensors.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& input = collective.kind == HORO_BARRIER ? kNothing : *collective.inputs[i];
    const auto dtype = dtype_of(input.dtype, collective);
    if (!dtype) return unsupported(collective, name);
    const auto member = count == 1 ? name : collective.member(name, i);
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.name = member.c_str();
    desc.kind = collective.kind;
    desc.op = collective.op;
    desc.dtype = *dtype;
    desc.ndim = static_cast<int>(input.rank);
    desc.shape = input.dims;
    desc.root_rank = collective.root;
    desc.prescale = collective.prescale;
    desc.postscale = collective.postscale;
    desc.process_set = collective.set;
    desc.group = count == 1 ? nullptr : name.c_str();
    desc.group_size = count == 1 ? 0 : static_cast<std::uint32_t>(count);
    desc.wire_dtype = collective.wire;
    desc.wire_feedback = collective.feedback;
    status = horo_declare(&desc, &tensors[i]);
    if (status != HORO_OK) return last_failure(status);
  }
  return std::nullopt;
}

void Declared::forget() {
  const MutexLock lock(mutex_);
  entries_.clear();
}

std::optional<CallError> Declared::submit(const Collective& collective, const std::string& name,
                                          std::vector<horo_op>& ops, horo_status& status) {
  const auto count = collective.operations();
  ops.assign(count, 0);
  const auto key = name + "\n" + std::to_string(collective.set);
  auto signature = signature_of(collective);
  const MutexLock lock(mutex_);
  if (entries_.size() >= kMostEntries) entries_.clear();
  auto& entry = entries_[key];
  bool fresh = false;
  for (;;) {
    if (entry.signature != signature) {
      entry.signature.clear();
      if (auto failure = declare(collective, name, entry.tensors, status)) return failure;
      entry.signature = signature;
      fresh = true;
    }
    std::vector<horo_submission> submissions;
    submissions.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
      submissions.push_back(
          collective.kind == HORO_BARRIER
              ? submission_of(kNothing, kNothing, entry.tensors[i])
              : submission_of(*collective.inputs[i], *collective.outputs[i], entry.tensors[i]));
    status = horo_submit_all(submissions.data(), count, ops.data());
    if (status == HORO_OK) return std::nullopt;
    // The runtime has evicted the name, or the job has a new generation.
    if (status != HORO_NOT_FOUND || fresh) return last_failure(status);
    entry.signature.clear();
  }
}

}  // namespace horo::jax
