// SPDX-License-Identifier: Apache-2.0
#include "bindings/mpi_abi/mpi_communicator.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "bindings/mpi_abi/departure.hpp"
#include "bindings/mpi_abi/horo_functions.hpp"

namespace horo::mpi_abi {

namespace {

thread_local std::string last_text;

Code failed() {
  return refuse(horo_functions()->last_error());
}

std::string key_of(const std::vector<int>& ranks) {
  std::string key;
  for (const int rank : ranks) key += std::to_string(rank) + ",";
  return key;
}

}  // namespace

Code refuse(std::string text) {
  last_text = "horo: " + std::move(text);
  return kOther;
}

const std::string& error_text() {
  return last_text;
}

int MpiCommunicator::rank() const {
  const auto found = std::ranges::find(ranks_, horo_functions()->rank());
  return found == ranks_.end() ? -1 : static_cast<int>(found - ranks_.begin());
}

horo_status MpiCommunicator::submit(const MpiCall& request, const std::string& name, horo_op& op) {
  const auto& horo = *horo_functions();
  horo_status status = HORO_OK;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto& tensor = declared_[name];
    if (tensor == 0 || attempt != 0) {
      horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
      desc.name = name.c_str();
      desc.kind = request.kind;
      desc.op = request.op;
      desc.dtype = request.dtype;
      desc.ndim = 1;
      desc.shape = &request.count;
      desc.root_rank = request.root;
      desc.process_set = set_;
      status = horo.declare(&desc, &tensor);
      if (status != HORO_OK) return status;
    }
    horo_submission submission = HORO_SUBMISSION_INIT;
    submission.tensor = tensor;
    submission.in = request.in;
    submission.out = request.out;
    submission.out_bytes = request.out_bytes;
    status = horo.submit_with(&submission, &op);
    if (status != HORO_NOT_FOUND) break;  // else the runtime has evicted the name
  }
  return status;
}

horo_status MpiCommunicator::complete(const MpiCall& request) {
  const auto name = "mpi." + request.label + "." + std::to_string(request.kind) + "." +
                    std::to_string(request.dtype) + "." + std::to_string(request.op) + "." +
                    std::to_string(request.count) + "." + std::to_string(request.root);
  const MutexLock lock(mutex_);
  horo_op op = 0;
  auto status = submit(request, name, op);
  const bool submitted = status == HORO_OK;
  if (submitted) status = horo_functions()->await(op, -1);
  if (status != HORO_OK) failed();
  if (submitted) horo_functions()->release(op);
  return status;
}

Code MpiCommunicator::run(const MpiCall& request) {
  auto& departure = Departure::instance();
  if (!departure.enter()) return refuse("this process has left the job, because jax ends it");
  const auto status = complete(request);
  departure.exit(status);
  return status == HORO_OK ? 0 : kOther;
}

Code MpiCommunicator::gather(std::int64_t own, std::vector<std::int64_t>& all) {
  all.assign(ranks_.size(), 0);
  return run({.kind = HORO_ALLGATHER,
              .dtype = HORO_INT64,
              .count = 1,
              .label = "gather",
              .in = &own,
              .out = all.data(),
              .out_bytes = all.size() * sizeof(own)});
}

MpiCommunicators& MpiCommunicators::instance() {
  static auto* const one = new MpiCommunicators();
  return *one;
}

Code MpiCommunicators::start() {
  const auto* horo = horo_functions();
  if (horo == nullptr) return refuse("cannot load libhoro");
  if (world_ != nullptr) return 0;
  if (horo->init() != HORO_OK) return failed();
  const int size = horo->size();
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  world_ = new MpiCommunicator(HORO_WORLD, ranks);
  made_[key_of(ranks)] = world_;
  if (size > kMostForMessages) return 0;
  for (int first = 0; first < size; ++first) {
    for (int second = first + 1; second < size; ++second) {
      MpiCommunicator* pair = nullptr;
      if (const Code code = find_or_add({first, second}, pair)) return code;
    }
  }
  return 0;
}

Code MpiCommunicators::find_or_add(const std::vector<int>& ranks, MpiCommunicator*& made) {
  auto& known = made_[key_of(ranks)];
  if (known == nullptr) {
    horo_set set = HORO_WORLD;
    if (horo_functions()->add_process_set(ranks.data(), ranks.size(), &set) != HORO_OK)
      return failed();
    known = new MpiCommunicator(set, ranks);
  }
  made = known;
  return 0;
}

Code MpiCommunicators::split(std::int64_t colour, std::int64_t key, MpiCommunicator*& made) {
  made = nullptr;
  if (world_ == nullptr) return refuse("MPI_Init has not been called");
  std::vector<std::int64_t> colours;
  std::vector<std::int64_t> keys;
  if (const Code code = world_->gather(colour, colours)) return code;
  if (const Code code = world_->gather(key, keys)) return code;
  std::map<std::int64_t, std::vector<int>> groups;
  for (std::size_t i = 0; i < colours.size(); ++i)
    if (colours[i] >= 0) groups[colours[i]].push_back(static_cast<int>(i));
  for (auto& [group_colour, ranks] : groups) {
    const auto by_key = [&](int a, int b) {
      return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    };
    if (!std::ranges::is_sorted(ranks, by_key))
      return refuse("MPI_Comm_split: the keys of a communicator must have the order of its ranks");
    MpiCommunicator* group = nullptr;
    if (const Code code = find_or_add(ranks, group)) return code;
    if (group_colour == colour) made = group;
  }
  return 0;
}

Code MpiCommunicators::message(int source, int target, void* data, std::int64_t bytes) {
  MpiCommunicator* pair = nullptr;
  const std::vector<int> ranks{std::min(source, target), std::max(source, target)};
  if (const auto found = made_.find(key_of(ranks)); found != made_.end()) pair = found->second;
  if (pair == nullptr) {
    return refuse("messages from rank to rank need a job of at most " +
                  std::to_string(kMostForMessages) + " ranks");
  }
  return pair->run({.kind = HORO_BROADCAST,
                    .count = bytes,
                    .root = source,
                    .label = "message",
                    .in = data,
                    .out = data});
}

}  // namespace horo::mpi_abi
