// SPDX-License-Identifier: Apache-2.0
// A rendezvous store behind Gloo's interface.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gloo/common/error.h>
#include <gloo/rendezvous/store.h>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runtime/backends/rendezvous_store.hpp"

namespace horo::runtime {

/// Carries an Error through Gloo as an exception; connect_mesh catches it.
class GlooStoreError final : public gloo::IoException {
 public:
  explicit GlooStoreError(Error error)
      : gloo::IoException(error.message), error_(std::move(error)) {}

  const Error& error() const { return error_; }

 private:
  Error error_;
};

/// Keys are `prefix` + "/" + Gloo's. Gloo waits for each key before it gets it; a wait fetches the
/// value, and the next get of that key takes it, so that it crosses the network once. Everything
/// but a wait with a time of its own ends after `timeout`. Thread: one at a time, as the place,
/// which outlives the store. Fails: throws GlooStoreError.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(RendezvousStore& place, std::string prefix, Duration timeout);

  void set(const std::string& key, const std::vector<char>& data) override;
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  std::string full(const std::string& key) const;

  RendezvousStore& place_;
  const std::string prefix_;
  const Duration timeout_;
  std::map<std::string, std::string> fetched_;  ///< By full key; awaited, and not got yet.
};

}  // namespace horo::runtime
