// SPDX-License-Identifier: Apache-2.0
// The loop's Asio executor, lent to launcher/process, launcher/starters/ssh and
// runtime/control/tcp. Nobody else includes this: Asio's headers take seconds to compile.
#pragma once

#include <boost/asio/io_context.hpp>

#include "base/loop/loop.hpp"

namespace horo {

/// Thread: the loop's. Never run or stop it directly.
boost::asio::io_context& asio_context(Loop& loop);

}  // namespace horo
