// SPDX-License-Identifier: Apache-2.0
// Exit codes of our programs. A failed job ends with the code of the first rank that failed (128 +
// signal number for a signal); these codes are for all other cases.
#pragma once

namespace horo::exit_code {

inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;  ///< A failure without a code of its own.
inline constexpr int kUsage = 2;    ///< A flag, value, config file or plan is wrong.
/// The batch system's notice came, so the job asks to be queued again: EX_TEMPFAIL.
inline constexpr int kQueueAgain = 75;
inline constexpr int kStartTimeout = 124;   ///< Ranks did not start in time, or --timeout passed.
inline constexpr int kHostLost = 125;       ///< A host or its agent was lost.
inline constexpr int kNotExecutable = 126;  ///< The command exists but cannot be executed.
inline constexpr int kCommandNotFound = 127;
inline constexpr int kSignalBase = 128;  ///< 128 + n: signal n ended the program or the rank.

}  // namespace horo::exit_code
