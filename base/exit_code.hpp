// SPDX-License-Identifier: Apache-2.0
// Exit codes of our programs. The code of a failed job is that of the first failing rank
// (128 + signal for a signal); these are for everything else.
#pragma once

namespace horo::exit_code {

inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;          ///< A cause that has no code of its own.
inline constexpr int kUsage = 2;            ///< A flag, value, config file or plan that is wrong.
inline constexpr int kQueueAgain = 75;      ///< The batch system's notice came: EX_TEMPFAIL.
inline constexpr int kStartTimeout = 124;   ///< Ranks did not start in time, or --timeout passed.
inline constexpr int kHostLost = 125;       ///< A host or its agent was lost.
inline constexpr int kNotExecutable = 126;  ///< The command exists but cannot be executed.
inline constexpr int kCommandNotFound = 127;
inline constexpr int kSignalBase = 128;  ///< 128 + n: ended by signal n, ours or the rank's.

}  // namespace horo::exit_code
