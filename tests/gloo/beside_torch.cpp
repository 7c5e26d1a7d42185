// SPDX-License-Identifier: Apache-2.0
// Gives beside_torch.py the module gloo behind one C function. The ranks meet through files in a
// folder.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

#include "runtime/backends/module.hpp"

using namespace horo;
using namespace horo::runtime;

namespace {

class Folder final : public RendezvousStore {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  Status set(std::string_view key, std::string_view value, Deadline) override {
    const auto name = file_of(key);
    std::ofstream(name + ".new", std::ios::binary) << value;
    if (rename((name + ".new").c_str(), name.c_str()) != 0) return fail_errno(errno, name);
    return {};
  }

  Result<std::string> get(std::string_view key, Deadline deadline) override {
    while (!deadline.expired(SteadyClock::instance().now())) {
      if (std::ifstream file(file_of(key), std::ios::binary); file) {
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
      }
      usleep(2000);
    }
    return fail(Errc::timed_out, "the key '{}' was never set", key);
  }

 private:
  std::string file_of(std::string_view key) const {
    std::string name(key);
    for (auto& c : name) c = c == '/' ? '_' : c;
    return path_ + "/" + name;
  }

  const std::string path_;
};

Status sum(int rank, int size, const char* folder, float* values, std::uint64_t count) {
  Folder place(folder);
  Communicator communicator{.position = rank,
                            .name = "horo",
                            .meeting = &place,
                            .start_timeout = std::chrono::seconds(30),
                            .timeout = std::chrono::seconds(30)};
  for (int r = 0; r < size; ++r) communicator.members.push_back(r);
  communicator.address = "127.0.0.1";
  HORO_TRY(const auto* module, load_usable_module("gloo", HORO_TEST_MODULES));
  HORO_TRY(const auto backend, module->make(communicator));
  Bucket bucket{.like = {.elements = count}};
  bucket.parts.push_back({.in = values, .out = values, .elements = count});
  HORO_TRY_STATUS(backend->start(std::move(bucket)));
  while (backend->completed() == 0 && backend->health()) usleep(200);
  return backend->health();
}

}  // namespace

/// Returns 0, or 1 after printing the error on standard error.
extern "C" __attribute__((visibility("default"))) int horo_test_gloo_sum(int rank, int size,
                                                                         const char* folder,
                                                                         float* values,
                                                                         std::uint64_t count) {
  const auto status = sum(rank, size, folder, values, count);
  if (!status) std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
