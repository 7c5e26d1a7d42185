// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/board_header.hpp"
#include "launcher/agent/rank_descriptors.hpp"
#include "launcher/process/unique_fd.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// A host's board as its agent sees it: the header only. Thread: owner.
class RankBoard {
 public:
  /// Fails: unavailable (descriptor limit), out_of_memory, io.
  static Result<std::unique_ptr<RankBoard>> make(const AgentSpec& spec);
  ~RankBoard();
  RankBoard(const RankBoard&) = delete;
  RankBoard& operator=(const RankBoard&) = delete;

  int descriptor() const { return fd_.value(); }

  std::uint64_t nonce() const { return nonce_; }

  /// Has attached, and may have detached since.
  bool joined_by(LocalRank rank) const;
  /// Still may touch its peers' memory after the poison.
  bool lacks_ack(LocalRank rank) const;

  struct Membership {
    bool joined = false;  ///< At any time.
    bool in_use = false;  ///< To the end.
    Rank heard{-1};       ///< Whose loss it had told its program; -1: nobody's.
  };

  /// Marks a rank that has ended; what it was until then.
  Membership bury(LocalRank rank);

  void poison(const Poison& cause, std::string_view host) { poison_board(*header_, cause, host); }

 private:
  /// Between attaching and detaching: its death leaves others waiting.
  bool in_use_by(LocalRank rank) const;

  RankBoard(UniqueFd fd, BoardHeader* header, std::uint64_t nonce)
      : fd_(std::move(fd)), header_(header), nonce_(nonce) {}

  UniqueFd fd_;
  BoardHeader* header_;
  std::uint64_t nonce_;
};

}  // namespace horo::launcher
