// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/snapshot_files.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/unique_fd.hpp"

namespace horo::apps {

namespace {

constexpr std::size_t kHeadBytes = 12;  ///< Before each file: the rank (4 bytes), the size (8).

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i)
    number |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8U * i);
  return number;
}

}  // namespace

Status SnapshotFiles::take(std::string_view bytes) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      const auto count = std::min(kHeadBytes - head_.size(), bytes.size());
      head_.append(bytes.substr(0, count));
      bytes.remove_prefix(count);
      if (head_.size() < kHeadBytes) break;
      HORO_TRY_STATUS(open_file());
      continue;
    }
    const auto count = std::min<std::uint64_t>(left_, bytes.size());
    file_.write(bytes.data(), static_cast<std::streamsize>(count));
    bytes.remove_prefix(count);
    left_ -= count;
    if (left_ == 0) file_.close();
    if (!file_) return fail(Errc::io, "'{}' cannot be written", path_);
    if (left_ == 0) ++ranks_;
  }
  return {};
}

Status SnapshotFiles::open_file() {
  const auto rank = static_cast<int>(number_at(head_, 0, 4));
  left_ = number_at(head_, 4, 8);
  head_.clear();
  if (std::find(from_.ranks.begin(), from_.ranks.end(), rank) == from_.ranks.end() || left_ == 0)
    return fail(Errc::protocol, "host {} sent data that is not a file of its ranks", from_.host);
  path_ = fmt::format("{}/rank.{}.timeline", folder_, rank);
  // Records tell what a program computes, so they are for their owner only.
  const UniqueFd made(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                           S_IRUSR | S_IWUSR));
  if (!made || fchmod(made.value(), S_IRUSR | S_IWUSR) != 0)
    return fail_errno(errno, fmt::format("'{}'", path_));
  file_.open(path_, std::ios::binary);
  if (!file_) return fail(Errc::io, "'{}' cannot be written", path_);
  return {};
}

}  // namespace horo::apps
