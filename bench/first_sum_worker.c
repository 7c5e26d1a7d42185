/* SPDX-License-Identifier: Apache-2.0
 * A rank of bench/launch_hosts: the time of its first sum, and its file descriptors.
 *
 *   bench_first_sum_worker DIRECTORY
 *
 * Rank R writes three numbers to DIRECTORY/first.R: when its first sum, of 4 bytes, was done, on
 * the monotonic clock in nanoseconds; how many descriptors it had open then; and how many after
 * sums of 1 MiB and 16 MiB as well. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <horo/horo.h>

static int die(const char* what) {
  fprintf(stderr, "bench_first_sum_worker: %s: %s\n", what, horo_last_error());
  return 3;
}

static int descriptors(void) {
  int count = -3; /* ".", ".." and the one that reads them. */
  DIR* open = opendir("/proc/self/fd");
  if (open == NULL) return -1;
  while (readdir(open) != NULL) ++count;
  closedir(open);
  return count;
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static horo_status sum(const char* name, int64_t count) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = name;
  desc.ndim = 1;
  desc.shape = &count;
  horo_tensor tensor = 0;
  horo_op op = 0;
  float* const values = calloc((size_t)count, sizeof *values);
  if (values == NULL) return HORO_OUT_OF_MEMORY;
  horo_status status = horo_declare(&desc, &tensor);
  if (status == HORO_OK) status = horo_submit(tensor, values, values, &op);
  if (status == HORO_OK) status = horo_wait(op, -1);
  free(values);
  return status;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fputs("usage, under horo run: bench_first_sum_worker DIRECTORY\n", stderr);
    return 2;
  }
  if (horo_init() != HORO_OK) return die("horo_init");
  if (sum("first", 1) != HORO_OK) return die("the first sum");
  const int64_t done = now();
  const int first = descriptors();
  if (sum("small", 1 << 18) != HORO_OK || sum("large", 1 << 22) != HORO_OK) return die("a sum");
  char path[4096];
  snprintf(path, sizeof path, "%s/first.%d", argv[1], horo_rank());
  FILE* const out = fopen(path, "we");
  if (out == NULL) return 3;
  fprintf(out, "%lld %d %d\n", (long long)done, first, descriptors());
  if (fclose(out) != 0) return 3;
  return horo_shutdown() == HORO_OK ? 0 : die("horo_shutdown");
}
