/* SPDX-License-Identifier: Apache-2.0
 * A rank that keeps others waiting, or is kept waiting. Each argument is one action, in order:
 *   only=R WORD       the other ranks skip the next word
 *   reduce=NAME       allreduces one number and waits for it
 *   large=NAME        the same with 64 MiB
 *   begin=NAME        as reduce, but `finish` waits for it
 *   finish            waits for everything that was begun
 *   poll              the same by polling
 *   set=A,B           makes a process set of two ranks; its members use it for later operations
 *   stop              sends SIGSTOP to itself
 *   until=FILE        sleeps until FILE exists
 *   touch=FILE        creates FILE
 *   spin=FILE         computes until FILE exists
 *   lose=NAME         as reduce; prints how and when it ends
 *   steps=N           runs N allreduces of one number, with a millisecond between them
 *   exit=N, kill      ends at once */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <horo/horo.h>

enum { kMost = 64, kLarge = 16 << 20 };

static horo_op begun[kMost];
static float values[kMost];
static int begun_count;
static horo_set set = HORO_WORLD;

static void need(horo_status status) {
  if (status == HORO_OK) return;
  fprintf(stderr, "rank %d: %s: %s\n", horo_rank(), horo_status_name(status), horo_last_error());
  _exit(10 + (int)status);
}

static void begin(const char* name, float* value, int64_t count, horo_op* op) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  horo_tensor tensor;
  desc.name = name;
  desc.ndim = 1;
  desc.shape = &count;
  desc.process_set = set;
  need(horo_declare(&desc, &tensor));
  need(horo_submit(tensor, value, value, op));
}

static horo_status reduce(const char* name, int64_t count) {
  float* const value = calloc((size_t)count, sizeof(float));
  horo_op op;
  begin(name, value, count, &op);
  const horo_status status = horo_wait(op, -1);
  free(value);
  return status;
}

static void finish(int poll) {
  const struct timespec moment = {0, 1000000};
  for (int i = 0; i < begun_count; ++i) {
    while (poll && horo_poll(begun[i]) == HORO_IN_PROGRESS) nanosleep(&moment, NULL);
    need(horo_wait(begun[i], -1));
  }
  begun_count = 0;
}

static void add_set(const char* text) {
  int ranks[2];
  if (sscanf(text, "%d,%d", ranks, ranks + 1) != 2) _exit(9);
  need(horo_add_process_set(ranks, 2, &set));
}

static void lose(const char* name) {
  const horo_status status = reduce(name, 1);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  printf("rank %d: %s: %s\n", horo_rank(), horo_status_name(status), horo_last_error());
  printf("rank %d at %lld.%06ld\n", horo_rank(), (long long)now.tv_sec, now.tv_nsec / 1000);
  fflush(stdout);
  _exit(status == HORO_PEER_LOST ? 7 : 5);
}

static void take_steps(int count) {
  const struct timespec moment = {0, 1000000};
  for (int i = 0; i < count; ++i) {
    need(reduce("step", 1));
    nanosleep(&moment, NULL);
  }
}

static void need_known(const char* word) {
  static const char* const known[] = {"reduce", "large", "begin", "finish", "poll",
                                      "set",    "stop",  "until", "spin",   "touch",
                                      "lose",   "steps", "exit",  "kill"};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp(word, known[i]) == 0) return;
  fprintf(stderr, "stall_rank: no such word: %s\n", word);
  _exit(9);
}

static void act(const char* word, const char* value) {
  const struct timespec moment = {0, 10000000};
  need_known(word);
  if (strcmp(word, "reduce") == 0) need(reduce(value, 1));
  if (strcmp(word, "large") == 0) need(reduce(value, kLarge));
  if (strcmp(word, "begin") == 0 && begun_count < kMost) {
    begin(value, values + begun_count, 1, begun + begun_count);
    ++begun_count;
  }
  if (strcmp(word, "finish") == 0) finish(0);
  if (strcmp(word, "poll") == 0) finish(1);
  if (strcmp(word, "set") == 0) add_set(value);
  if (strcmp(word, "stop") == 0) raise(SIGSTOP);
  if (strcmp(word, "until") == 0)
    while (access(value, F_OK) != 0) nanosleep(&moment, NULL);
  if (strcmp(word, "spin") == 0)
    while (access(value, F_OK) != 0) continue;
  if (strcmp(word, "touch") == 0) fclose(fopen(value, "we"));
  if (strcmp(word, "lose") == 0) lose(value);
  if (strcmp(word, "steps") == 0) take_steps(atoi(value));
  if (strcmp(word, "exit") == 0) _exit(atoi(value));
  if (strcmp(word, "kill") == 0) raise(SIGKILL);
}

int main(int argc, char** argv) {
  need(horo_init());
  for (int i = 1; i < argc; ++i) {
    char* const equals = strchr(argv[i], '=');
    char* const value = equals != NULL ? equals + 1 : argv[i] + strlen(argv[i]);
    if (equals != NULL) *equals = '\0';
    if (strcmp(argv[i], "only") == 0) {
      if (horo_rank() != atoi(value)) ++i; /* others skip the next one */
    } else {
      act(argv[i], value);
    }
  }
  need(horo_shutdown());
  return 0;
}
