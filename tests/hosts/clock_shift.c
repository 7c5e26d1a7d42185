/* SPDX-License-Identifier: Apache-2.0
 * Shifts the wall clock of the processes that preload this library, as CLOCK_SHIFT says: "h2=2500"
 * is 2.5 s ahead on host h2. All hosts share one kernel, and time namespaces do not cover the wall
 * clock. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift_ms(void) {
  static long shift;
  static int known;
  if (known) return shift;
  char host[256] = "";
  const char* const text = getenv("CLOCK_SHIFT");
  const size_t size = gethostname(host, sizeof host - 1) == 0 ? strlen(host) : 0;
  if (text != NULL && size != 0 && strncmp(text, host, size) == 0 && text[size] == '=')
    shift = atol(text + size + 1);
  known = 1;
  return shift;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  if (syscall(SYS_clock_gettime, clock, time) != 0) return -1;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    const long long ns = time->tv_nsec + shift_ms() % 1000 * 1000000LL;
    time->tv_sec += shift_ms() / 1000 + ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
  }
  return 0;
}

int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != NULL) *to = now.tv_sec;
  return now.tv_sec;
}
