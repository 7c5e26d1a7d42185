// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/board_header.hpp"
#include "base/unique_fd.hpp"
#include "launcher/ranks/rank_descriptors.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher {

/// A host's board, of which its agent uses the header only. Thread: owner.
class RankBoard {
 public:
  /// Also puts it at kBoardDescriptor, until clear_rank_descriptors(). Fails: unavailable
  /// (descriptor limit), out_of_memory, io.
  static Result<std::unique_ptr<RankBoard>> make(const AgentSpec& spec);
  ~RankBoard();
  RankBoard(const RankBoard&) = delete;
  RankBoard& operator=(const RankBoard&) = delete;

  int descriptor() const { return fd_.value(); }

  std::uint64_t nonce() const { return nonce_; }

  /// True once the rank has attached, also when it has detached since.
  bool joined_by(LocalRank rank) const;
  /// True while the rank may still touch its peers' memory after the poison.
  bool lacks_ack(LocalRank rank) const;

  struct Membership {
    bool joined = false;  ///< It had attached at any time.
    bool in_use = false;  ///< It was attached when it ended.
    Rank heard{-1};       ///< The rank whose loss it had reported to its program; -1: none.
  };

  /// Marks a rank as ended, and returns what it was before.
  Membership mark_ended(LocalRank rank);

  /// A further rank may attach to this slot, whose last one has ended.
  void reset(LocalRank rank);

  void notify(const Notice& notice) { post_notice(board_, notice); }

  void poison(const Poison& cause, std::string_view host) { poison_board(board_, cause, host); }

 private:
  /// True between attaching and detaching: its peers wait for a rank that ends then.
  bool in_use_by(LocalRank rank) const;

  RankBoard(UniqueFd fd, const BoardView& board, std::uint64_t nonce)
      : fd_(std::move(fd)), board_(board), nonce_(nonce) {}

  const UniqueFd fd_;
  const BoardView board_;
  const std::uint64_t nonce_;
};

}  // namespace horo::launcher
