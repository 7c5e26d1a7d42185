/* SPDX-License-Identifier: Apache-2.0
 * A training with a known fault, which records what it observed itself:
 *   trainee FOLDER STEPS late RANK MS   RANK sleeps MS longer than the others before each step
 *   trainee FOLDER STEPS exposed        each step waits for a large sum without computing
 *   trainee FOLDER STEPS hidden         the same sums, waited for only when they are done
 * Each rank R writes FOLDER/times.R. A line per step has the CLOCK_MONOTONIC time in nanoseconds at
 * which the step had computed, the time that the rank waited for the large sum, and the time that
 * it waited for the other ranks before the sum. Then it writes FOLDER/starved.R, the nanoseconds
 * for which its threads had work and no core, creates FOLDER/done.R and runs until FOLDER/stop
 * exists. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <horo/horo.h>

enum { kTensors = 4, kSmall = 16384, kLarge = 4 << 20 };

static float small_values[kTensors][kSmall];
static float* large_values;

static void need(horo_status status) {
  if (status == HORO_OK) return;
  fprintf(stderr, "rank %d: %s: %s\n", horo_rank(), horo_status_name(status), horo_last_error());
  _exit(10 + (int)status);
}

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void rest(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static horo_op submit(const char* name, float* values, int64_t count, const char* group) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  horo_tensor tensor;
  horo_op op;
  desc.name = name;
  desc.ndim = 1;
  desc.shape = &count;
  desc.group = group;
  desc.group_size = group != NULL ? kTensors : 0;
  need(horo_declare(&desc, &tensor));
  need(horo_submit(tensor, values, values, &op));
  return op;
}

static void small_sums(void) {
  horo_op ops[kTensors];
  for (int i = 0; i < kTensors; ++i) {
    char name[32];
    snprintf(name, sizeof name, "gradient.%d", i);
    ops[i] = submit(name, small_values[i], kSmall, "gradients");
  }
  need(horo_wait_all(ops, kTensors, -1));
}

/* Returns the time for which the rank waited for the sum alone. */
static long long large_sum(int hidden, long long* meeting) {
  const long long before = now();
  need(horo_wait(submit("ready", small_values[0], 1, NULL), -1)); /* all ranks begin together */
  *meeting = now() - before;
  const horo_op op = submit("embedding", large_values, kLarge, NULL);
  while (hidden && horo_poll(op) == HORO_IN_PROGRESS) rest(1);
  const long long begin = now();
  need(horo_wait(op, -1));
  return now() - begin;
}

static FILE* open_file(const char* folder, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.%d", folder, name, horo_rank());
  FILE* const file = fopen(path, "we");
  if (file == NULL) _exit(9);
  return file;
}

/* The nanoseconds for which this process's threads have waited for a core. */
static long long starved(void) {
  long long sum = 0;
  DIR* const threads = opendir("/proc/self/task");
  const struct dirent* thread;
  while (threads != NULL && (thread = readdir(threads)) != NULL) {
    char path[300];
    long long waited = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread->d_name);
    FILE* const file = fopen(path, "re");
    if (file == NULL) continue;
    if (fscanf(file, "%*d %lld", &waited) == 1) sum += waited;
    fclose(file);
  }
  if (threads != NULL) closedir(threads);
  return sum;
}

int main(int argc, char** argv) {
  if (argc < 4) return 8;
  need(horo_init());
  const int late = strcmp(argv[3], "late") == 0;
  const int hidden = strcmp(argv[3], "hidden") == 0;
  const int mine = late && argc > 5 && horo_rank() == atoi(argv[4]);
  large_values = calloc(kLarge, sizeof(float));
  FILE* const times = open_file(argv[1], "times");
  const long long before = starved();
  for (int step = 0; step < atoi(argv[2]); ++step) {
    rest(10 + (mine ? atol(argv[5]) : 0));
    const long long computed = now();
    long long waited = 0;
    long long meeting = 0;
    if (late) {
      small_sums();
    } else {
      waited = large_sum(hidden, &meeting);
    }
    fprintf(times, "%lld %lld %lld\n", computed, waited, meeting);
  }
  fclose(times);
  FILE* const delays = open_file(argv[1], "starved");
  fprintf(delays, "%lld\n", starved() - before);
  fclose(delays);
  fclose(open_file(argv[1], "done"));
  char stop[4096];
  snprintf(stop, sizeof stop, "%s/stop", argv[1]);
  while (access(stop, F_OK) != 0) rest(10);
  need(horo_shutdown());
  return 0;
}
