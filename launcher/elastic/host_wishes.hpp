// SPDX-License-Identifier: Apache-2.0
// The numbers of slots that the user gave to hosts of a running elastic job, on top of what the
// source of the hosts offers.
#pragma once

#include <map>
#include <string>

#include "discovery/host.hpp"

namespace horo::launcher {

class HostWishes {
 public:
  /// The source offers these hosts from now on.
  void take(discovery::HostSet offered) { offered_ = std::move(offered); }

  /// At most so many slots of the host are used, whatever its source offers.
  void limit(const std::string& host, int slots);

  /// So many slots of the host are used, even if its source offers fewer. A host that its source
  /// does not offer now is added.
  void set(const std::string& host, int slots);

  /// The host has the slots that its source offers.
  void forget(const std::string& host) { wishes_.erase(host); }

  /// The slots that the source offers; 0: it does not offer the host.
  int offered_slots(const std::string& host) const;

  /// All hosts with their slots: those of the source in its order, then the added ones.
  discovery::HostSet hosts() const;

 private:
  struct Wish {
    int slots = 0;
    bool exact = false;  ///< Otherwise it is a limit.
    bool added = false;  ///< The source did not offer the host when the wish came.
  };

  discovery::HostSet offered_;
  std::map<std::string, Wish> wishes_;  ///< By host.
};

}  // namespace horo::launcher
