// SPDX-License-Identifier: Apache-2.0
#include "discovery/text_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace horo::discovery {

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "re"));
  if (!file) return fail_errno(errno, "opening it");
  std::string text;
  std::array<char, 4096> block{};
  while (const auto n = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block.data(), n);
    if (text.size() > kMostHostText)
      return fail(Errc::resource_exhausted, "it is larger than {} bytes", kMostHostText);
  }
  if (std::ferror(file.get()) != 0) return fail_errno(errno, "reading it");
  return text;
}

std::vector<std::string_view> words(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> found;
  for (auto first = text.find_first_not_of(separators); first != std::string_view::npos;) {
    const auto end = text.find_first_of(separators, first);
    found.push_back(text.substr(first, end - first));
    first = text.find_first_not_of(separators, end);
  }
  return found;
}

}  // namespace horo::discovery
