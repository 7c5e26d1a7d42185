/* SPDX-License-Identifier: Apache-2.0
 * Preloaded: a wall clock that is an hour late. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

enum { kLate = 3600 };

EXPORTED int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int code = real(clock, now);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec -= kLate;
  return code;
}

EXPORTED int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec precise;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

EXPORTED time_t time(time_t* to) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (to != NULL) *to = precise.tv_sec;
  return precise.tv_sec;
}
