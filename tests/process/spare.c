/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into an agent: while the file HORO_SPARE exists, no process can be killed by SIGKILL,
 * as if all waited for a disk that hangs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((visibility("default"))) int kill(pid_t pid, int number) {
  static int (*real_kill)(pid_t, int);
  const char* file = getenv("HORO_SPARE");
  if (number == SIGKILL && file != NULL && access(file, F_OK) == 0) return 0;
  if (real_kill == NULL) *(void**)&real_kill = dlsym(RTLD_NEXT, "kill");
  return real_kill(pid, number);
}
