// SPDX-License-Identifier: Apache-2.0
// One process set at one leader: collects what is ready on its own host and in the subtrees of its
// children until all of them have it, and takes entries from above into its host's log.
// No sockets, no clock, no threads.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "runtime/coordinator/tree/host_log.hpp"
#include "runtime/coordinator/tree/wire.hpp"

namespace horo::runtime::tree {

/// What goes up, or, at the root, into the agreement.
struct News {
  Ids ready;
  std::vector<Declaration> declared;
  RankRanges joined;
  RankRanges leaving;

  bool empty() const {
    return ready.empty() && declared.empty() && joined.empty() && leaving.empty();
  }
};

/// Thread: owner.
class Relay {
 public:
  static constexpr std::size_t kOwn = 0;  ///< Source 0 is this host, 1 + i its i-th child.

  /// `members` of the set by source; `host` is null when this host has none.
  Relay(SetId set, std::vector<RankRanges> members, HostLog* host);

  // From below. Fails: protocol (a source that says what it cannot; it is out of step).

  Status ready(std::size_t source, const Ids& ids);
  Status declare(std::size_t source, std::vector<Declaration>&& tensors);
  Status joined(std::size_t source, const RankRanges& ranks);
  Status leave(std::size_t source, const RankRanges& ranks);

  /// Takes what this host has completed, unless `depth` entries are still to be run here: what
  /// becomes ready meanwhile travels together.
  Status look(std::uint64_t depth);

  /// What has become complete in the whole subtree since the last call.
  News take_news();

  /// From above. Fails: protocol, or why the host's log takes no more.
  Status accept(const LogEntry& entry);

  /// Moves accepted entries into the host's log, as far as there is room.
  Status publish();

  /// The number that the next entry must have.
  std::uint64_t next_sequence() const { return next_; }

  const RankRanges& members(std::size_t source) const { return sources_[source].members; }

  HostLog* host() const { return host_; }

 private:
  struct Source {
    RankRanges members;
    RankRanges joined;
    std::uint32_t owes = 0;  ///< Tensors that it said by a number, and will say again by name.
  };

  /// A tensor on its way: who has it (bits of sources, kGone), and what was said of it.
  struct Said {
    std::uint64_t by = 0;
    Variants variants;
  };

  struct Fresh {
    std::uint64_t marks = 0;
    std::uint64_t owed = 0;  ///< By sources that said it before its number gave way.
    bool again = false;      ///< Told above by that number.
    bool whole = false;      ///< All members here say what it is, none has joined.
    Variants variants;
    TensorId own;
  };

  /// Comes after what is owed: who joins or leaves has said everything else before.
  struct Deferred {
    std::size_t source = 0;
    RankRanges ranks;
    bool leaves = false;
  };

  /// A name that has a number.
  struct Agreed {
    std::uint32_t number = kNoNumber;
    TensorId own;  ///< On this host, as it was when somebody here submitted it last.
    std::uint64_t marks = 0;
    bool whole = false;                 ///< As in Fresh.
    const std::string* name = nullptr;  ///< Key of `numbers_`.
  };

  /// Nobody here has submitted it: the host learns of it when its entry has room.
  struct Foreign {
    std::size_t position = 0;
    std::string name;
    Signature signature;
  };

  struct Waiting {
    LogKind kind = LogKind::work;
    std::vector<TensorId> ids;
    std::vector<Foreign> foreign;
    std::vector<std::uint64_t> rows;
    std::string text;
    RankRanges ranks;
  };

  bool complete(std::uint64_t marks) const;
  /// Its tensor; null: that gave way before the source knew, and the source says so again by name.
  Result<Agreed*> find(std::size_t source, std::uint32_t number);
  Status mark(std::size_t source, std::uint32_t number);
  void mark(std::size_t source, Agreed& tensor);
  Status look_at(const Completed& completed);
  Status declare_own(TensorId id);
  Status pay(std::size_t source, Fresh& fresh);
  Status settle();
  Status declare_one(std::size_t source, Declaration&& tensor);
  Status declare_agreed(std::size_t source, Declaration&& tensor);
  void send(Agreed& tensor);
  void send_if_complete(const std::string& name, Fresh& fresh);
  void look_again();
  Status define(const Definition& definition);
  Status give_way(Agreed& tensor);
  Status translate(const LogEntry& entry, Waiting& waiting);
  Result<bool> provide(Waiting& waiting);
  Failure out_of_step(std::size_t source, std::string_view what) const;

  const SetId set_;
  HostLog* const host_;
  std::vector<Source> sources_;
  std::uint64_t all_ = 0;     ///< Sources that have members.
  std::uint64_t absent_ = 0;  ///< Those of which all have joined.
  std::uint64_t next_ = 0;

  std::vector<Agreed> tensors_;                   ///< By the place of their number.
  std::unordered_map<std::uint32_t, Said> said_;  ///< By number.
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::unordered_map<std::string, Fresh> fresh_;  ///< Names without a number.
  /// By this host's number: the agreed number under which the root knows what all members here
  /// agreed to last; kNoNumber: there is none.
  std::vector<std::uint32_t> agreed_;
  std::uint32_t owed_ = 0;  ///< By all sources.
  std::vector<Deferred> deferred_;

  News news_;
  std::deque<Waiting> waiting_;
  std::vector<Completed> completed_;
};

}  // namespace horo::runtime::tree
