// SPDX-License-Identifier: Apache-2.0
// One process set's agreement on one host, in shared memory: members mark tensors, the mark that
// completes a tensor makes it ready, the holder of the combiner word cuts ready tensors into
// entries of one log, and every member executes the log in order. Sets share nothing but the host's
// bells and arenas, so none waits for another. Nothing here sleeps, polls or reads a clock.
//
// The protocol, with its memory orders and the reasons for them, is docs/design/board.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/board_header.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/coordinator/board_layout.hpp"
#include "runtime/coordinator/host_memory.hpp"
#include "runtime/fusion/plan.hpp"

namespace horo::runtime {

/// What a group is called in the directory begins with this, which no tensor's name does.
inline constexpr std::string_view kGroupPrefix = "\x01";

/// A declared name: where it is, and how many names were there before it.
struct TensorHandle {
  TensorId id;
  std::uint32_t incarnation = 0;

  friend bool operator==(const TensorHandle&, const TensorHandle&) = default;
};

inline constexpr std::size_t kSignatureWords = (sizeof(Signature) + 7) / 8;

/// One log entry as read from the board; the spans point into shared memory and stay valid until
/// this rank's cursor passes the entry.
struct Entry {
  EntryKind kind = EntryKind::work;
  Placement placement = Placement::staged;
  std::span<const std::uint64_t> ids;
  /// Of each tensor, if ranks that have joined take part: they may not know it. Else empty.
  std::span<const std::uint64_t> signatures;
  std::span<const std::uint64_t> rows;  ///< allgather: extent 0, tensor by tensor, rank by rank.
  Rank last_joined{-1};                 ///< join: the rank that joined last.
  Rank left{-1};                        ///< left: the rank, or the lowest of them.
  std::string_view text;                ///< mismatch: the message.
  std::uint64_t bytes = 0;
};

/// Tensors of a group become ready together; no group: an empty name.
struct GroupName {
  std::string_view name;
  std::uint32_t size = 0;
};

/// What a mark says about this submission.
struct Offer {
  std::uint64_t in_offset = 0;  ///< From the start of the mapping; 0: not in an arena.
  std::uint64_t out_offset = 0;
  bool direct = false;   ///< In the arena as far as the peers read and write it.
  bool in_line = false;  ///< The payload lies in the inline slot.
  bool changed = false;  ///< Signature differs from the agreed one, or is new.
};

/// An entry that all hosts of a set agree on, for the log of this one.
struct AgreedEntry {
  EntryKind kind = EntryKind::work;
  std::span<const TensorId> ids;
  std::span<const std::uint64_t> rows;  ///< Of the members on all hosts.
  std::string_view text;
  Rank rank{-1};  ///< join, left.
};

/// A tensor that some members have marked and that is in no entry.
struct Unfinished {
  TensorId id;
  std::uint64_t since = 0;   ///< Of the first mark, by the marker's `last_call`.
  std::vector<int> missing;  ///< Members that have neither marked it nor joined.
  GroupRef group;            ///< That it waits for, being complete itself; or none.
  bool join = false;         ///< It is the set's join.
  bool ready = false;        ///< It is complete: `missing` is who is putting it into an entry.
  bool elsewhere = false;    ///< It is complete on this host, and its set has others.
};

/// Entries that are in the log and that not all members have done.
struct UnderWay {
  std::uint64_t entries = 0;
  std::uint64_t progress = 0;      ///< Changes when a member moves on or an entry is added.
  std::vector<int> behind;         ///< Members with entries to do.
  std::vector<int> last;           ///< Those of them that have done least.
  std::vector<std::string> names;  ///< Tensors of the first of these entries, at most 64.
};

/// A set's members on this host, ascending; `LocalRank` values of the host.
using Members = std::vector<LocalRank>;

/// What a region of the host's memory is for.
enum class BoardUse : std::uint8_t {
  whole,      ///< A set on this host: agreement, and rings for what moves.
  agreement,  ///< A set with members on other hosts: its bytes move elsewhere.
  rings,      ///< A step of such a set's backend inside this host: nothing is agreed here.
};

/// Members are counted from 0 in the order of their ranks: where a function takes or gives a
/// `member`, that is meant. Thread: any, but for the token's: next, advance.
class Board {
 public:
  /// Maps region `region` of the host's memory, for a set whose members on this host are `members`
  /// (the calling rank among them, unless it only leads); the first to come lays it out. Blocks:
  /// while another does that. Fails: out_of_memory, peer_lost.
  static Result<std::unique_ptr<Board>> attach(HostMemory& host, std::size_t region,
                                               Members members, BoardUse use = BoardUse::whole);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// The host's, but for local_size: the number of members.
  const BoardParams& params() const { return params_; }

  const BoardLayout& layout() const { return layout_; }

  /// Its place in the host's memory: the number of its process set.
  std::size_t region() const { return region_; }

  /// What the timeline calls the set: timeline/record.hpp. Before it is used.
  void record_as(std::uint16_t set) { recorded_set_ = set; }

  std::uint16_t recorded_set() const { return recorded_set_; }

  int local_size() const { return static_cast<int>(params_.local_size); }

  /// The calling rank's number among the members; -1: it is none, but leads the set here.
  int me() const { return me_; }

  HostMemory& host() { return host_; }

  BoardHeader& header() { return host_.header(); }

  BoardBody& body() { return *body_; }

  RankArea& area(int member) { return ranks_[member]; }

  RankSlot& rank_slot(int member) const {
    return host_.slot(members_[static_cast<std::size_t>(member)]);
  }

  Rank global_rank(int member) const {
    return host_.global_rank(members_[static_cast<std::size_t>(member)]);
  }

  /// The member that has this rank of the job; -1: none.
  int member_of(Rank rank) const;

  // -- Directory ------------------------------------------------------------------------------

  /// The tensor of `name`, new or known, with this rank's signature noted and, for small tensors,
  /// an inline slot. Where all slots are taken the name that was not used for longest, about, loses
  /// its own, unless it is in use. Pinned: unpin() follows. Blocks: on the directory's lock.
  /// Fails: resource_exhausted, peer_lost.
  Result<TensorHandle> declare(std::string_view name, const Signature& signature,
                               const GroupName& group = {});

  /// Keeps the tensor where it is until unpin(); false when its slot is another's by now.
  bool pin(TensorHandle tensor);
  void unpin(TensorId id);

  bool is_pinned(TensorId id, int member) const {
    return rank_tensor(id, member).pins.load(std::memory_order_seq_cst) != 0;
  }

  bool is_current(TensorHandle handle) const {
    return tensor(handle.id).incarnation.load(std::memory_order_seq_cst) == handle.incarnation;
  }

  /// The tensor of `name`, if there is one; it may give way at once. Blocks and fails as declare.
  Result<std::optional<TensorHandle>> handle_of(std::string_view name);

  /// The group that a member has declared the tensor in.
  GroupRef group_of(TensorId id, int member) const;

  std::string_view tensor_name(TensorId id) const;

  /// What a member has declared; its number means the same to all, as long as anybody has it.
  const Signature& signature(TensorId id, int member) const {
    return signature_of(signature_number(id, member));
  }

  std::uint32_t signature_number(TensorId id, int member) const {
    return rank_tensor(id, member).signature.load(std::memory_order_relaxed);
  }

  /// What all agreed on last, or what the first declared.
  const Signature& agreed_signature(TensorId id) const {
    return signature_of(tensor(id).signature.load(std::memory_order_relaxed));
  }

  /// Where this rank's payload of the given generation goes; null when the tensor has no slot that
  /// holds `bytes`.
  std::byte* inline_slot(TensorId id, int member, std::uint64_t generation, std::uint64_t bytes);

  /// An alltoall's rows for each rank that `local_rank` gives in the given generation; null when
  /// the tensor was never declared as one.
  std::uint64_t* splits(TensorId id, int member, std::uint64_t generation);

  // -- Agreement ------------------------------------------------------------------------------

  /// Marks the tensor for this rank; true when that completed it. At most once per generation.
  bool mark(TensorId id, const Offer& offer);

  /// Marks the set's join tensor, and from now until all members have joined, others' tensors
  /// become ready without this rank's mark. True when any became so.
  bool join(TensorId id);

  /// Entries that the tensor was in: tells payload slots of one from those of the next.
  std::uint32_t generation(TensorId id) const {
    return tensor(id).generation.load(std::memory_order_acquire);
  }

  /// Takes a mark back if the tensor is not complete; false when it is too late.
  bool unmark(TensorId id);

  /// Makes those of the tensor's group ready that only wait for the others.
  void dissolve_group(TensorId id);

  bool has_marked(TensorId id, int member) const;

  /// Cuts what can be cut now; true when entries were published (wake the sleepers then).
  /// `ticks`: of timeline/ticks.hpp, now; needed with a cycle time only.
  bool cut(std::uint64_t ticks);

  /// Something waits to be cut, now or when entries in flight have ended.
  bool has_ready() const;

  /// What is ready could be cut now, and nobody is at it.
  bool can_cut() const;

  /// Entry number `cursor`, if it is published. Fails: protocol (poison the board then).
  Result<std::optional<Entry>> next(std::uint64_t cursor);

  /// This rank is done with all entries before `cursor`.
  void advance(std::uint64_t cursor);

  const RankTensor& rank_tensor(TensorId id, int member) const {
    return rank_tensors_[static_cast<std::size_t>(member) * params_.capacity + id.index()];
  }

  // -- A set with members on other hosts (board_span.cpp) -----------------------------------------

  /// Nobody here cuts: the host's first rank, member or not, leads: it hands what is ready to the
  /// other hosts and publishes what all agree on.
  bool spans() const { return use_ == BoardUse::agreement; }

  bool leads() const { return spans() && host_.me() == LocalRank{0}; }

  /// The leader would find something: tensors while fewer than `depth` entries are to be run here,
  /// members that join or leave, room for entries that wait, entries that have been run. Thread:
  /// any.
  bool needs_leader() const;

  /// Wakes the leader unless somebody drives it. Thread: any.
  void wake_leader();

  /// This rank submits nothing more; of a leader that is no member, nobody on this host does.
  void leave();

  /// The log has said that somebody left: nothing is appended any more. Thread: any.
  bool closed() const { return body_->closed.load(std::memory_order_acquire) != 0; }

  // By the leader, one thread at a time.

  /// Takes what is ready, in the order in which it became so.
  void take_ready(std::vector<TensorId>& out);

  /// Not all members have marked it: those who have not have joined.
  bool is_partial(TensorId id) const;

  /// A member's signature is new, or not what it agreed to last.
  bool is_changed(TensorId id) const;

  /// The id of a tensor that the other hosts agreed on while all members here had joined; it keeps
  /// its slot until an entry with it is published. None: there is one when entries have been run.
  /// Blocks and fails as declare.
  Result<std::optional<TensorId>> define(std::string_view name, const Signature& signature);

  /// Entries that the first member here has run.
  std::uint64_t take_done();

  /// Members that have joined, or leave, and were not taken yet.
  std::vector<Rank> take_joined();
  std::vector<Rank> take_leaving();

  /// Appends to the log; false when there is no room now: needs_leader() says when there is.
  bool publish(const AgreedEntry& agreed);

  /// The most words (ids, row counts) and tensors that an entry may have.
  std::size_t most_words() const { return layout_.word_count / (2 * params_.depth); }

  std::size_t most_tensors() const { return most_words() / (1 + kSignatureWords); }

  // -- Stalls -----------------------------------------------------------------------------------

  /// As of now, while others go on; ascending by id.
  std::vector<Unfinished> unfinished() const;
  UnderWay under_way() const;

  /// The tensor of that name. Takes no lock, which a stopped rank could hold: looks at all. Thread:
  /// any.
  std::optional<TensorId> find(std::string_view name) const;

  bool has_joined(int member) const {
    const auto m = static_cast<std::size_t>(member);
    return (body_->joined[m / 64].load(std::memory_order_relaxed) >> (m % 64) & 1U) != 0;
  }

  bool has_declared(TensorId id, int member) const { return signature_number(id, member) != 0; }

  /// What the group was called when it was declared; empty when there is no such group.
  std::string_view group_name(GroupRef group) const;

  /// Process, drive and calls of a member.
  HostRank& host_rank(int member) { return host_.rank(members_[static_cast<std::size_t>(member)]); }

  const HostRank& host_rank(int member) const {
    return host_.rank(members_[static_cast<std::size_t>(member)]);
  }

  // -- Memory and wake-ups ----------------------------------------------------------------------

  /// The region's first byte; offsets of the layout count from here.
  std::byte* base() { return base_; }

  /// Backs `bytes` at `offset` of the region with memory. Fails: out_of_memory.
  Status allocate(std::uint64_t offset, std::uint64_t bytes);

  /// A peer's arena memory at an offset it wrote; null when it does not lie there.
  std::byte* peer_memory(int member, std::uint64_t offset, std::uint64_t bytes) {
    return host_.peer_memory(members_[static_cast<std::size_t>(member)], offset, bytes);
  }

  enum class Self { too, spared };

  /// Wakes members that sleep for any of `what`; no system call when none does. Returns how many.
  int wake(std::uint32_t what, Self self = Self::too);

  /// Ranks of this host sleep inside an entry.
  bool any_inside() const {
    return host_.body().chunk_sleepers.load(std::memory_order_seq_cst) != 0;
  }

  /// The member does, and all that it wrote before is visible.
  bool sleeps_inside(int member) const;

  /// Wakes members that nobody drives although the log has entries that they have not done: others
  /// lack their share. Returns how many.
  int wake_laggards();

 private:
  Board(HostMemory& host, std::size_t region, Members members, BoardUse use);
  void leave(int member);
  Status meet_layout();
  Result<std::optional<TensorId>> look_up(std::string_view name, std::uint32_t hash) const;
  Result<TensorId> find_or_add(std::string_view name, const Signature& signature);
  Result<TensorId> find_slot(std::string_view name);
  Result<TensorHandle> declare_in(std::string_view name, const Signature& signature,
                                  std::uint32_t group);
  Result<std::uint32_t> find_group(const GroupName& group);
  void move_to_group(std::atomic<std::uint32_t>& member, std::uint32_t group);
  const Signature& signature_of(std::uint32_t number) const;
  Result<std::uint32_t> intern(const Signature& signature, std::uint32_t likely);
  Result<std::uint32_t> take_signature();
  void free_signatures();
  Status back_tensors(std::uint32_t first);
  std::optional<TensorId> take_idle();
  bool retire(TensorId id, std::uint64_t least_cursor);
  bool is_pinned(TensorId id) const;
  void forget_name(TensorId id);
  std::uint64_t least_cursor() const;
  Status lock_directory();
  void unlock_directory();
  Result<std::uint64_t> take_heap(std::uint64_t bytes, std::uint64_t unit = kHeapUnit);
  Status put_name(TensorSlot& slot, std::string_view name);
  Result<TensorId> add_tensor(std::string_view name, std::uint32_t hash, const Signature& s);
  Status provide_inline(TensorSlot& slot, const Signature& signature);
  Status provide_splits(TensorSlot& slot, const Signature& signature);
  Result<TensorAside*> provide_aside(TensorSlot& slot);
  bool complete_without_joined(TensorId id);
  void make_ready(TensorId id, bool changed);
  bool same_group(TensorId id) const;
  void push_ready(TensorId id);
  void push_parked(std::uint32_t last);
  bool drain_ready();
  PendingSlot inspect(TensorId id);
  bool resolve(TensorId id, TensorSlot& slot, bool changed);
  int first_marked(TensorId id) const;
  std::uint64_t in_flight() const;
  /// Nobody is in the middle of putting a tensor on the ready list.
  bool ready_is_settled() const;
  std::vector<Rank> take_new(std::array<std::uint64_t, kMaskWords>& seen,
                             const std::array<std::atomic<std::uint64_t>, kMaskWords>& now) const;
  void cut_one();
  void publish(LogSlot entry, std::span<const std::uint64_t> words);
  std::string mismatch_text(TensorId id) const;
  std::string group_text(GroupRef group) const;

  TensorSlot& tensor(TensorId id) { return tensors_[id.value()]; }

  const TensorSlot& tensor(TensorId id) const { return tensors_[id.value()]; }

  RankTensor& mine(TensorId id) {
    return rank_tensors_[static_cast<std::size_t>(me_) * params_.capacity + id.index()];
  }

  /// Null: it has none.
  TensorAside* aside(TensorId id) const;

  /// Of a group's own slot, by its id + 1; null: there is no such group.
  TensorAside* group_aside(std::uint32_t group) const;

  std::atomic<std::uint64_t>& marked(TensorId id, std::size_t word) const {
    return word == 0 ? tensors_[id.value()].members
                     : more_members_[id.index() * (kMaskWords - 1) + word - 1];
  }

  std::size_t mask_words() const { return (params_.local_size + 63) / 64; }

  std::optional<Unfinished> inspect_unfinished(TensorId id) const;

  // Constant after attach.
  HostMemory& host_;
  const std::size_t region_;
  std::uint16_t recorded_set_ = 0;
  const Members members_;
  int me_ = -1;
  const BoardUse use_;
  bool counted_ = false;
  BoardParams params_;
  std::uint64_t cycle_;  ///< Ticks of timeline/ticks.hpp.
  BoardLayout layout_;
  std::byte* base_ = nullptr;
  BoardBody* body_ = nullptr;
  RankArea* ranks_ = nullptr;
  TensorSlot* tensors_ = nullptr;
  std::atomic<std::uint64_t>* more_members_ = nullptr;
  RankTensor* rank_tensors_ = nullptr;
  Signature* signatures_ = nullptr;
  std::atomic<std::uint32_t>* ready_ = nullptr;
  PendingSlot* pending_ = nullptr;
  LogSlot* log_ = nullptr;
  std::uint64_t* words_ = nullptr;
  std::uint32_t* buckets_ = nullptr;

  // Guarded by the directory's lock: what may give way, the first last, with its last entry.
  std::vector<std::pair<std::uint64_t, TensorId>> idle_;

  // The leader's, in this process.
  std::array<std::uint64_t, kMaskWords> joined_seen_{};
  std::array<std::uint64_t, kMaskWords> leaving_seen_{};

  // The combiner's, in this process.
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> taken_;
  std::vector<std::uint64_t> scratch_;
};

}  // namespace horo::runtime
