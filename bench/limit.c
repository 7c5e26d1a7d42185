/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's limit: P pinned processes sum P buffers in shared memory with the least traffic
 * that such a sum can cause. There are no names and no agreement, and no process is late.
 *
 *   bench_limit PROCESSES OUT NAME:BYTES...     appends one JSON object per case to OUT
 *
 * Process p reduces its share of every other buffer into its own, chunk by chunk so that a chunk
 * stays in the cache, and writes the sum back to the others. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMostProcesses = 64, kPasses = 9 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)core % (size_t)sysconf(_SC_NPROCESSORS_ONLN), &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void* shm(size_t n) {
  void* p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) {
    perror("bench_limit: mmap");
    exit(1);
  }
  return p;
}

static int cmp(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

typedef struct {
  _Alignas(64) atomic_int count;
  _Alignas(64) atomic_int gen;
  double t[kPasses][kMostProcesses];
} bar_t;

static void barrier(bar_t* b, int n) {
  int g = atomic_load(&b->gen);
  if (atomic_fetch_add(&b->count, 1) == n - 1) {
    atomic_store(&b->count, 0);
    atomic_fetch_add(&b->gen, 1);
    return;
  }
  for (int i = 0; atomic_load(&b->gen) == g; i++)
    if (i > 1000) sched_yield();
}

static float pattern(int p, size_t i) {
  return (float)((size_t)(p + 1) * (i % 13));
}

/* Every pass sums buffers that already contain the sum: at the end, element i is its first sum
 * times P^passes. */
static int wrong(int P, const float* v, size_t n) {
  double grown = P * (P + 1) / 2;
  for (int r = 0; r < kPasses; r++) grown *= P;
  for (size_t i = 0; i < n; i++) {
    double want = grown * (double)(i % 13), off = v[i] - want;
    if (off > 1e-4 * want || -off > 1e-4 * want) return 1;
  }
  return 0;
}

static void measure(int P, size_t n, int p, float** v, bar_t* b) {
  size_t share = n / (size_t)P;
  pin(p);
  for (size_t i = 0; i < n; i++) v[p][i] = pattern(p, i);
  /* This loop is the reference for figures of other days and programs. Its statements must not
   * change. */
  for (int r = -1; r < 9; r++) {
    barrier(b, P);
    double t0 = now();
    const size_t blk = 16384; /* 64 KiB */
    for (size_t o = p * share; o < (p + 1) * share; o += blk) {
      size_t m = o + blk < (p + 1) * share ? blk : (p + 1) * share - o;
      for (int q = 0; q < P; q++)
        if (q != p) {
          float* restrict d = v[p] + o;
          const float* restrict s = v[q] + o;
          for (size_t i = 0; i < m; i++) d[i] += s[i];
        }
      for (int q = 0; q < P; q++)
        if (q != p) memcpy(v[q] + o, v[p] + o, m * 4);
    }
    barrier(b, P);
    if (r >= 0) b->t[r][p] = now() - t0;
  }
}

static int shmreduce(int P, const char* name, size_t bytes, const char* out) {
  size_t n = bytes / 4;
  float* v[kMostProcesses];
  bar_t* b = shm(sizeof *b);
  for (int p = 0; p < P; p++) v[p] = shm(n * 4);
  for (int p = 0; p < P; p++)
    if (fork() == 0) {
      measure(P, n, p, v, b);
      _exit(wrong(P, v[p], n / (size_t)P * (size_t)P));
    }
  int how, bad = 0;
  while (wait(&how) > 0) bad |= how;
  for (int p = 0; p < P; p++) munmap(v[p], n * 4);
  if (bad) {
    fprintf(stderr, "bench_limit: case %s: a sum is wrong or a process died\n", name);
    return 1;
  }
  double t[kPasses];
  for (int r = 0; r < kPasses; r++) {
    t[r] = 0;
    for (int p = 0; p < P; p++)
      if (b->t[r][p] > t[r]) t[r] = b->t[r][p];
  }
  munmap(b, sizeof *b);
  qsort(t, kPasses, sizeof *t, cmp);
  FILE* file = fopen(out, "a");
  if (!file) {
    perror("bench_limit: opening the result file");
    return 1;
  }
  fprintf(file,
          "{\"case\": \"%s\", \"bytes\": %zu, \"reps\": %d, \"median_us\": %.2f, \"min_us\": %.2f, "
          "\"p95_us\": %.2f}\n",
          name, bytes, kPasses, t[kPasses / 2] * 1e6, t[0] * 1e6,
          t[(int)(0.95 * (kPasses - 1))] * 1e6);
  return fclose(file) != 0;
}

int main(int argc, char** argv) {
  int P = argc > 1 ? atoi(argv[1]) : 0;
  if (argc < 4 || P < 1 || P > kMostProcesses) {
    fprintf(stderr, "usage: bench_limit PROCESSES(1..%d) OUT NAME:BYTES...\n", kMostProcesses);
    return 2;
  }
  for (int i = 3; i < argc; i++) {
    char* colon = strchr(argv[i], ':');
    size_t bytes = colon ? strtoul(colon + 1, NULL, 10) : 0;
    if (bytes < 4) {
      fprintf(stderr, "bench_limit: '%s' is not NAME:BYTES with 4 bytes or more\n", argv[i]);
      return 2;
    }
    *colon = '\0';
    if (shmreduce(P, argv[i], bytes, argv[2])) return 1;
  }
  return 0;
}
