// SPDX-License-Identifier: Apache-2.0
// A backend whose buckets are complete as soon as they are started, as a real one's without
// elements are. It moves no data and rings nobody.
#pragma once

#include "runtime/bucket/backend.hpp"

namespace horo::test {

class InstantBackend final : public runtime::Backend {
 public:
  runtime::BackendCaps caps() const override { return {.name = "instant"}; }

  Status start(runtime::Bucket /*bucket*/) override {
    ++started_;
    return {};
  }

  bool progress() override { return false; }

  std::uint64_t completed() const override { return started_; }

  std::uint64_t started() const override { return started_; }

  runtime::CopyTimes copied() const override { return {}; }

  Status health() const override { return {}; }

  void abort() override {}

 private:
  std::uint64_t started_ = 0;
};

}  // namespace horo::test
