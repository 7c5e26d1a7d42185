// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/nccl/plan.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace horo::software_nccl {

namespace {

constexpr int kUsualVersion = 22809;

/// Takes `key=NUMBER ` out of `text`; -1: it is not there.
int take(std::string& text, std::string_view key) {
  const auto at = text.find(key);
  if (at == std::string::npos) return -1;
  const auto end = std::min(text.find(' ', at), text.size());
  int number = -1;
  std::from_chars(text.data() + at + key.size(), text.data() + end, number);
  text.erase(at, end - at);
  return number;
}

}  // namespace

Plan& Plan::instance() {
  static auto* const plan = new Plan;  // Threads may use it until the process ends.
  return *plan;
}

Plan::Plan() {
  const char* text = std::getenv("HORO_SOFTWARE_NCCL");
  if (!set(text == nullptr ? "" : text)) std::abort();
}

bool Plan::set(std::string_view text) {
  std::string rest(text);
  const int version = take(rest, "version=");
  const int remote = take(rest, "remote=");
  const int room = take(rest, "room=");
  const int swap = take(rest, "swap=");
  std::string fault;
  auto read = software_device::parse_plan(rest, fault);
  if (!fault.empty()) {
    std::fprintf(stderr, "horo-software-nccl: '%s' is not known\n", fault.c_str());
    return false;
  }
  const std::lock_guard lock(mutex_);
  faults_ = std::move(read);
  version_ = version < 0 ? kUsualVersion : version;
  remote_ = remote == 1;
  room_ = std::max(room, 0);
  swap_at_ = static_cast<std::uint64_t>(std::max(swap, 0));
  starts_ = 0;
  calls_.clear();
  launches_ = 0;
  findings_.clear();
  return true;
}

int Plan::version() {
  const std::lock_guard lock(mutex_);
  return version_;
}

bool Plan::peers_are_remote() {
  const std::lock_guard lock(mutex_);
  return remote_;
}

bool Plan::swaps() {
  const std::lock_guard lock(mutex_);
  return ++starts_ == swap_at_;
}

int Plan::room() {
  const std::lock_guard lock(mutex_);
  return room_;
}

int Plan::begin_call(const char* name) {
  const std::lock_guard lock(mutex_);
  const auto count = ++calls_[name];
  const auto planned = faults_.calls.find(std::string_view(name));
  if (planned == faults_.calls.end()) return kSuccess;
  const auto& [at, code] = planned->second;
  return at == 0 || at == count ? code : kSuccess;
}

Fate Plan::begin_launch() {
  const std::lock_guard lock(mutex_);
  const auto number = ++launches_;
  return {.async = faults_.async.at == number ? faults_.async.code : kSuccess,
          .hangs = faults_.hang_at == number};
}

void Plan::find(std::string finding) {
  const std::lock_guard lock(mutex_);
  std::fprintf(stderr, "horo-software-nccl: finding: %s\n", finding.c_str());
  findings_.push_back(std::move(finding));
}

std::string Plan::findings(std::size_t& count) {
  const std::lock_guard lock(mutex_);
  count = findings_.size();
  std::string text;
  for (const auto& finding : findings_) text += finding + "\n";
  return text;
}

}  // namespace horo::software_nccl
