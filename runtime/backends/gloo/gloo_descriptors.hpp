// SPDX-License-Identifier: Apache-2.0
// Gloo opens its sockets without close-on-exec. A program that a rank has started would keep the
// rank's connections open when the rank has ended, and its peers would wait for it.
#pragma once

#include <vector>

namespace horo::runtime {

/// Marks descriptors that are opened while it lives as close-on-exec: sockets and epoll instances.
/// Those of other threads are among them; a program that wants to hand a socket to a child removes
/// the mark in the child. Thread: one at a time.
class CloseOnExec {
 public:
  CloseOnExec();
  ~CloseOnExec();
  CloseOnExec(const CloseOnExec&) = delete;
  CloseOnExec& operator=(const CloseOnExec&) = delete;

 private:
  const std::vector<int> before_;  ///< Descriptors that were open, ascending.
};

}  // namespace horo::runtime
