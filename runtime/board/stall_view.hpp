// SPDX-License-Identifier: Apache-2.0
// Reads from a set's tables which tensors and log entries do not complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/board/directory/groups.hpp"
#include "runtime/board/marks.hpp"
#include "runtime/host/set_region.hpp"

namespace horo::runtime {

/// A tensor that some members have marked and that is in no entry.
struct Unfinished {
  /// The event that the tensor waits for.
  enum class Wait : std::uint8_t {
    marks,        ///< `missing` have neither marked it nor joined.
    group,        ///< It is complete. `missing` have not marked the group's other tensors.
    cutter,       ///< It is ready. `missing` is the member that is putting it into an entry.
    other_hosts,  ///< It is complete on this host.
  };

  TensorId id;
  Wait wait = Wait::marks;
  bool is_join = false;      ///< It is the set's join tensor.
  std::uint64_t since = 0;   ///< Time of the first mark, by the marker's `last_call`.
  std::vector<int> missing;  ///< Members; ascending.
  GroupRef group;            ///< The group that it waits for; else none.
};

/// Entries that are in the log and that not all members have done.
struct UnderWay {
  std::uint64_t entries = 0;
  std::uint64_t progress = 0;      ///< Changes when a member advances or an entry is added.
  std::vector<int> behind;         ///< Members with entries to do.
  std::vector<int> last;           ///< Those of them that have done least.
  std::vector<std::string> names;  ///< Tensors of the first of these entries, at most 64.
};

/// Reads the board for stall reports, while ranks go on; owns nothing and takes no lock. Thread:
/// any.
class StallView {
 public:
  /// The party that continues once a tensor is complete on this host.
  enum class CompletedBy : std::uint8_t { cutter, other_hosts };

  StallView(const SetRegion& region, const Directory& directory, const Marks& marks,
            CompletedBy completed_by)
      : region_(region), directory_(directory), marks_(marks), completed_by_(completed_by) {}

  /// Ascending by id.
  std::vector<Unfinished> unfinished() const;

  UnderWay under_way() const;

 private:
  std::optional<Unfinished> inspect(TensorId id) const;
  bool read_marks(Unfinished& found) const;
  bool find_wait(Unfinished& found) const;
  void add_missing_of_group(Unfinished& waiting, const std::vector<Unfinished>& all) const;
  std::vector<std::string> names_of_entry(std::uint64_t number) const;

  const SetRegion& region_;
  const Directory& directory_;
  const Marks& marks_;
  const CompletedBy completed_by_;
};

}  // namespace horo::runtime
