// SPDX-License-Identifier: Apache-2.0
// Gives the loop's Asio executor to launcher/process, launcher/starters/ssh and
// runtime/control/tcp. No other code may include this header, because Asio's headers take seconds
// to compile.
#pragma once

#include <boost/asio/io_context.hpp>

#include "base/loop/loop.hpp"

namespace horo {

/// Thread: the loop's. Callers must never run or stop it directly.
boost::asio::io_context& asio_context(Loop& loop);

}  // namespace horo
