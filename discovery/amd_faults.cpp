// SPDX-License-Identifier: Apache-2.0
#include "discovery/amd_faults.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/text/printable.hpp"
#include "discovery/text_file.hpp"

namespace horo::discovery {

namespace {

constexpr std::size_t kMostMessage = 160;
constexpr std::size_t kMostRest = 8192;

struct Sign {
  std::string_view words;
  std::string_view meaning;
};

constexpr std::array kSigns{
    Sign{"device lost from bus", "it has fallen off the bus"},
    Sign{"GPU reset begin", "it is reset"},
    Sign{" timeout, signaled seq", "its work does not end"},
    Sign{" page fault (src_id", "a kernel has used an address that is not mapped"},
};
constexpr std::string_view kUncorrectable = "uncorrectable hardware errors detected";

/// "2 new uncorrectable hardware errors detected in umc block", but not "no uncorrectable ...".
bool counts_errors(std::string_view message) {
  const auto at = message.find(kUncorrectable);
  if (at == std::string_view::npos) return false;
  auto before = words(message.substr(0, at), " ");
  if (!before.empty() && before.back() == "new") before.pop_back();
  std::uint64_t count = 0;
  if (!before.empty())
    std::from_chars(before.back().data(), before.back().data() + before.back().size(), count);
  return count != 0;
}

std::string named(const AmdGpu& gpu) {
  return fmt::format("GPU {}{}", gpu.index, gpu.uuid.empty() ? "" : fmt::format(" ({})", gpu.uuid));
}

}  // namespace

std::string_view meaning_of(std::string_view message) {
  if (counts_errors(message)) return "an uncorrectable error of its hardware";
  for (const auto& sign : kSigns) {
    if (message.find(sign.words) != std::string_view::npos) return sign.meaning;
  }
  return {};
}

AmdFaults::AmdFaults(const std::string& root) {
  for (auto& gpu : amd_gpus(root)) {
    auto folder = pci_folder(root, gpu.pci);
    if (access(folder.c_str(), F_OK) != 0) folder.clear();
    watched_.push_back({.gpu = std::move(gpu), .folder = std::move(folder)});
  }
  const auto path = root + "/dev/kmsg";
  log_ = UniqueFd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  // Without a place at the end all old failures would count.
  if (!log_ || lseek(log_.value(), 0, SEEK_END) < 0) {
    opened_ = fail_errno(errno, path);
    log_.reset();
  }
}

std::vector<std::string> AmdFaults::look() {
  std::vector<std::string> faults;
  if (log_) read_log(faults);
  look_for_files(faults);
  return faults;
}

/// A read returns one record, which begins with "6,1234,5678,-;" and has further lines, each behind
/// a blank, with the names of its device.
void AmdFaults::read_log(std::vector<std::string>& faults) {
  std::array<char, 8192> bytes{};
  for (;;) {
    const auto count = read(log_.value(), bytes.data(), bytes.size());
    if (count < 0 && (errno == EPIPE || errno == EINTR)) continue;  // Records were overwritten.
    if (count <= 0) return;
    rest_.append(bytes.data(), static_cast<std::size_t>(count));
    for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
      take_line(std::string_view(rest_).substr(0, end), faults);
      rest_.erase(0, end + 1);
    }
    if (rest_.size() > kMostRest) rest_.clear();
  }
}

void AmdFaults::take_line(std::string_view line, std::vector<std::string>& faults) const {
  if (line.starts_with(' ')) return;
  const auto message =
      line.substr(line.find(';') == std::string_view::npos ? 0 : line.find(';') + 1);
  const auto meaning = meaning_of(message);
  if (meaning.empty()) return;
  for (const auto& watched : watched_) {
    const auto driver = fmt::format("amdgpu {}: ", watched.gpu.pci);
    const auto at = message.find(driver);
    if (at == std::string_view::npos) continue;
    auto said = message.substr(at + driver.size());
    if (said.starts_with("amdgpu: ")) said.remove_prefix(std::string_view("amdgpu: ").size());
    faults.push_back(fmt::format("{}: the kernel's log says '{}' ({})", named(watched.gpu),
                                 printable(said.substr(0, kMostMessage)), meaning));
    return;
  }
}

void AmdFaults::look_for_files(std::vector<std::string>& faults) {
  for (auto& watched : watched_) {
    if (watched.folder.empty() || access(watched.folder.c_str(), F_OK) == 0) continue;
    faults.push_back(
        fmt::format("{} has no files in /sys any more (it has fallen off the bus, or "
                    "was removed)",
                    named(watched.gpu)));
    watched.folder.clear();
  }
}

}  // namespace horo::discovery
