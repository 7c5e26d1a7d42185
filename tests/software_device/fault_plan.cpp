// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/fault_plan.hpp"

#include <charconv>

namespace horo::software_device {

namespace {

constexpr int kUnknownError = 999;

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return !text.empty() && read.ec == std::errc() && read.ptr == end;
}

/// "12:719"; "12".
bool read_error(std::string_view text, PlannedError& error) {
  const auto colon = text.find(':');
  std::uint64_t code = kUnknownError;
  if (colon != std::string_view::npos && !read_number(text.substr(colon + 1), code)) return false;
  error.code = static_cast<int>(code);
  return read_number(text.substr(0, colon), error.at);
}

/// "copy:20000"; "launch:500".
bool read_slow(std::string_view text, FaultPlan& plan) {
  const auto colon = std::min(text.find(':'), text.size() - 1);
  const auto kind = text.substr(0, colon);
  auto& pause = kind == "copy" ? plan.slow_copy_us : plan.slow_launch_us;
  return (kind == "copy" || kind == "launch") && read_number(text.substr(colon + 1), pause);
}

bool read_word(std::string_view key, std::string_view value, FaultPlan& plan) {
  std::uint64_t number = 0;
  if (key == "fail") {
    const auto at = value.find('@');
    if (at == std::string_view::npos) return false;
    return read_error(value.substr(at + 1), plan.calls[std::string(value.substr(0, at))]);
  }
  if (key == "async") return read_error(value, plan.async);
  if (key == "slow") return !value.empty() && read_slow(value, plan);
  if (!read_number(value, number)) return false;
  if (key == "seed") {
    plan.seed = number;
  } else if (key == "delay") {
    plan.delay_us = number;
  } else if (key == "drift") {
    plan.drift_ppm = static_cast<std::int64_t>(number);
  } else if (key == "devices") {
    plan.devices = static_cast<int>(number);
  } else if (key == "host") {
    plan.host = static_cast<int>(number);
  } else if (key == "hang") {
    plan.hang_at = number;
  } else if (key == "cuda") {
    plan.cuda = static_cast<int>(number);
  } else if (key == "capturing") {
    plan.capturing = number != 0;
  } else if (key == "capture") {
    plan.captures = number != 0;
  } else {
    return false;
  }
  return true;
}

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31U);
}

}  // namespace

std::uint64_t FaultPlan::pause_us(std::uint64_t stream, std::uint64_t number) const {
  if (delay_us == 0) return 0;
  const auto drawn = mix(seed * 0x9e3779b97f4a7c15ULL + mix(stream * 0x10001U + number));
  const auto usual = (drawn >> 8U) % (delay_us + 1);
  return drawn % 8 == 0 ? usual * 8 : usual;
}

FaultPlan parse_plan(std::string_view text, std::string& fault) {
  FaultPlan plan;
  fault.clear();
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const auto equals = word.find('=');
    const bool read = equals != std::string_view::npos &&
                      read_word(word.substr(0, equals), word.substr(equals + 1), plan);
    if (!read && fault.empty()) fault = word;
  }
  return plan;
}

std::vector<int> visible_devices(const char* variable, int devices) {
  std::vector<int> seen;
  if (variable == nullptr) {
    for (int device = 0; device < devices; ++device) seen.push_back(device);
    return seen;
  }
  constexpr std::string_view kUuid = "GPU-SOFTWARE-";
  for (std::string_view rest = variable;;) {
    const auto end = std::min(rest.find(','), rest.size());
    auto word = rest.substr(0, end);
    if (word.starts_with(kUuid)) word.remove_prefix(kUuid.size());
    std::uint64_t device = 0;
    if (!read_number(word, device) || device >= static_cast<std::uint64_t>(devices)) return seen;
    seen.push_back(static_cast<int>(device));
    if (end == rest.size()) return seen;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace horo::software_device
