// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/board_header.hpp"
#include "base/kv/client.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "runtime/bootstrap/meeting/meeting_guard.hpp"

namespace horo::runtime::bootstrap {

/// Waits, in a thread of its own, for the launcher to give up a generation. A member that ends
/// before it has connected to anybody is missed by the launcher only. A store that goes away ends
/// the generation, too.
/// Thread: owner.
class GenerationGuard final : public MeetingGuard {
 public:
  /// `store`: a connection for this alone. Fails: unavailable (no descriptors), io.
  static Result<std::unique_ptr<GenerationGuard>> start(kv::Client store, std::uint64_t generation);

  ~GenerationGuard() override;

  /// Readable once the generation was given up.
  int cancel() const { return over_.value(); }

  /// From now on the board is poisoned when the generation is given up, or at once if it was.
  /// Fails: as map_board_header.
  Status protect(int board);

 private:
  GenerationGuard(kv::Client store, std::string key, UniqueFd stop, UniqueFd over);
  void run();
  void end();

  kv::Client store_;  ///< The thread's.
  const std::string key_;
  const UniqueFd stop_;
  const UniqueFd over_;
  Mutex mutex_;
  bool ended_ HORO_GUARDED_BY(mutex_) = false;
  BoardView board_ HORO_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace horo::runtime::bootstrap
