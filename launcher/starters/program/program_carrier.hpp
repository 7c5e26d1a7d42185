// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/loop/loop.hpp"
#include "base/process/kept_program.hpp"
#include "launcher/starters/link/carrier.hpp"
#include "launcher/starters/link/resolver.hpp"

namespace horo::launcher {

/// A program of this machine that relays bytes to an agent on another host: ssh, srun.
struct ProgramWay {
  std::string host;                    ///< For messages.
  std::vector<std::string> arguments;  ///< The whole command line.
  std::string target;                  ///< Name whose address tells by which of ours it reaches us.
  std::shared_ptr<const void> kept{};  ///< Held while the program runs, such as a file it needs.
  std::string name{};                  ///< For messages; empty: the command line's first word.
};

/// `resolver` outlives the carrier. `ending` gets the program if the carrier is destroyed before it
/// has ended.
std::unique_ptr<Carrier> make_program_carrier(Loop& loop, Resolver& resolver,
                                              std::shared_ptr<EndingPrograms> ending,
                                              ProgramWay way);

}  // namespace horo::launcher
