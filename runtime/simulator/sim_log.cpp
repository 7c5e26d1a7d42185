// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/sim_log.hpp"

#include <algorithm>

namespace horo::runtime::sim {

std::uint32_t SimSignatures::number_of(const Signature& signature) {
  const auto [at, fresh] = numbers_.try_emplace(signature, static_cast<std::uint32_t>(all_.size()));
  if (fresh) all_.push_back(signature);
  return at->second;
}

SimLog::SimLog(std::vector<Rank> members, SimSignatures& signatures, std::size_t room)
    : members_(std::move(members)),
      all_(~std::uint64_t{0} >> (64 - members_.size())),
      signatures_(signatures),
      room_(room) {}

std::size_t SimLog::index_of(Rank rank) const {
  return static_cast<std::size_t>(std::lower_bound(members_.begin(), members_.end(), rank) -
                                  members_.begin());
}

std::size_t SimLog::add(const std::string& name) {
  const auto [at, fresh] = numbers_.try_emplace(name, tensors_.size());
  if (fresh) {
    tensors_.push_back({.name = name});
    submissions_.resize(submissions_.size() + members_.size());
  }
  return at->second;
}

bool SimLog::submit(Rank rank, const std::string& name, const Signature& signature) {
  const auto index = add(name);
  const auto member = index_of(rank);
  auto& tensor = tensors_[index];
  const auto bit = std::uint64_t{1} << member;
  if ((tensor.marks & bit) != 0 || ((joined_ & bit) != 0)) return false;
  tensor.marks |= bit;
  tensor.last = rank;
  auto& mine = submission(index, member);
  mine.signature = signatures_.number_of(signature);
  tensor.changed = tensor.changed || mine.signature != mine.agreed;
  complete_if_all(index);
  return true;
}

void SimLog::complete_if_all(std::size_t index) {
  auto& tensor = tensors_[index];
  if (tensor.taken || tensor.marks == 0 || (tensor.marks | joined_) != all_) return;
  tensor.taken = true;
  completed_.push_back({.id = TensorId{static_cast<std::uint32_t>(index)},
                        .changed = tensor.changed || tensor.marks != all_});
}

void SimLog::join(Rank rank) {
  joined_ |= std::uint64_t{1} << index_of(rank);
  joining_.add(rank);
  for (std::size_t i = 0; i < tensors_.size(); ++i) complete_if_all(i);
}

void SimLog::take_completed(std::vector<tree::Completed>& out) {
  out.insert(out.end(), completed_.begin(), completed_.end());
  completed_.clear();
}

tree::RankRanges SimLog::take_joined() {
  return std::exchange(joining_, {});
}

tree::LastSubmission SimLog::last_submission(TensorId id) {
  return {.rank = tensors_[id.index()].last};
}

void SimLog::show_arrivals(TensorId id, std::span<const tree::LastSubmission> others) {
  arrivals_[tensors_[id.index()].name] = {others.begin(), others.end()};
}

tree::Declaration SimLog::describe(TensorId id) {
  tree::Declaration declaration{.name = tensors_[id.index()].name, .variants = {}};
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if ((tensors_[id.index()].marks >> m & 1U) == 0) continue;
    declaration.variants[signatures_.at(submission(id.index(), m).signature)].add(members_[m]);
  }
  return declaration;
}

std::optional<std::string> SimLog::inputs(TensorId id) {
  if (!tensors_[id.index()].name.starts_with("tiny")) return std::nullopt;
  std::string all;
  for (const auto rank : members_) all.append(sizeof(float), static_cast<char>(rank.value()));
  return all;
}

Result<std::optional<TensorId>> SimLog::define(std::string_view name,
                                               const Signature& /*signature*/) {
  return std::optional(TensorId{static_cast<std::uint32_t>(add(std::string(name)))});
}

Result<bool> SimLog::publish(const tree::HostEntry& entry) {
  if (published_ - done_ >= room_) return false;
  in_flight_.emplace_back(entry.ids.begin(), entry.ids.end());
  kinds_.push_back(entry.kind);
  SimRecord record{.kind = entry.kind,
                   .names = {},
                   .rows = {entry.rows.begin(), entry.rows.end()},
                   .inputs = {entry.inputs.begin(), entry.inputs.end()},
                   .text = std::string(entry.text),
                   .ranks = *entry.ranks,
                   .tuning = entry.tuning};
  for (const auto id : entry.ids) record.names.push_back(tensors_[id.index()].name);
  records_.push_back(std::move(record));
  const auto number = published_++;
  if (on_publish_) on_publish_(number);
  return true;
}

void SimLog::finish_next() {
  const auto ids = std::move(in_flight_.front());
  const auto kind = kinds_.front();
  in_flight_.erase(in_flight_.begin());
  kinds_.erase(kinds_.begin());
  ++done_;
  if (kind == tree::LogKind::join) joined_ = 0;
  for (const auto id : ids) {
    auto& tensor = tensors_[id.index()];
    for (std::size_t m = 0; m < members_.size(); ++m) {
      auto& mine = submission(id.index(), m);
      if (tree::runs(kind) && (tensor.marks >> m & 1U) != 0) mine.agreed = mine.signature;
    }
    tensor.marks = 0;
    tensor.taken = false;
    tensor.changed = false;
  }
  if (on_finish_) on_finish_(done_ - 1);
}

std::size_t SimLog::bytes() const {
  std::size_t names = 0;
  for (const auto& tensor : tensors_) names += 2 * tensor.name.capacity() + 64;
  return tensors_.capacity() * sizeof(Tensor) + submissions_.capacity() * sizeof(Submission) +
         names;
}

}  // namespace horo::runtime::sim
