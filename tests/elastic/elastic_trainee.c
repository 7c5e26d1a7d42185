/* SPDX-License-Identifier: Apache-2.0
 * A training whose ranks come and go:
 *   elastic_trainee FOLDER STEPS MS
 * Each step sleeps MS and sums 1 over all ranks, so the sum is the number of ranks. A rank begins a
 * generation with the largest step of all. It writes FOLDER/pid.WORKER, and a line for each
 * generation:
 *   worker W: generation G, rank R of N, step S
 * STEPS 0: it runs until FOLDER/stop exists. A file FOLDER/WORD.WORKER has an effect on that
 * worker: bad: it ends with code 3 at once. hang: it sleeps in a step. leave: it ends with code 0
 * in a step, without horo_shutdown. return: it shuts down and ends with code 0 in a step. again:
 * after a loss, it calls a collective of the lost generation once more. FOLDER/bad.all is bad for
 * all workers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <horo/horo.h>

static const char* folder;
static const char* worker;

static int exists(const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

static int exists_of_worker(const char* name) {
  char own[64];
  snprintf(own, sizeof own, "%s.%s", name, worker);
  return exists(own);
}

static void write_pid(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/pid.%s", folder, worker);
  FILE* const file = fopen(path, "we");
  if (file == NULL) _exit(9);
  fprintf(file, "%d\n", (int)getpid());
  fclose(file);
}

static void rest(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void need(horo_status status) {
  if (status == HORO_OK) return;
  fprintf(stderr, "worker %s: %s: %s\n", worker, horo_status_name(status), horo_last_error());
  _exit(10 + (int)status);
}

/* The sum or maximum of two numbers over all ranks. */
static horo_status reduce(const char* name, horo_reduce_op kind, double values[2]) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  horo_tensor tensor;
  horo_op op;
  int64_t count = 2;
  desc.name = name;
  desc.dtype = HORO_FLOAT64;
  desc.op = kind;
  desc.ndim = 1;
  desc.shape = &count;
  horo_status status = horo_declare(&desc, &tensor);
  if (status == HORO_OK) status = horo_submit(tensor, values, values, &op);
  return status == HORO_OK ? horo_wait(op, -1) : status;
}

/* Trains in one generation. Returns HORO_OK at the end of the training, or why it stopped. */
static horo_status train(double* step, double steps, long ms) {
  double begin[2] = {*step, 0};
  horo_status status = reduce("begin", HORO_MAX, begin);
  if (status != HORO_OK) return status;
  *step = begin[0];
  printf("worker %s: generation %lld, rank %d of %d, step %.0f\n", worker,
         (long long)horo_generation(), horo_rank(), horo_size(), *step);
  fflush(stdout);
  /* Impossible numbers are refused; before the first generation nothing stood still. */
  if (horo_resumed(-1, 0) != HORO_INVALID_ARGUMENT || horo_resumed(0, -2) != HORO_INVALID_ARGUMENT)
    return HORO_IO;
  if (horo_generation() > 1) need(horo_resumed(0.25, horo_rank() == 0 ? 2 : 3));
  for (;;) {
    if (exists_of_worker("hang")) {
      printf("worker %s: hangs\n", worker);
      fflush(stdout);
      rest(3600000);
    }
    if (exists_of_worker("leave")) _exit(0);
    if (exists_of_worker("return")) return HORO_OK;
    rest(ms);
    uint64_t sequence = 0;
    uint32_t flags = 0;
    horo_pending_change(&sequence, &flags);
    const int ends = steps > 0 ? *step + 1 >= steps : exists("stop");
    double sums[2] = {1, (sequence != 0 ? 1000 : 0) + (ends ? 1 : 0)};
    status = reduce("step", HORO_SUM, sums);
    if (status != HORO_OK) return status;
    if (sums[0] != horo_size()) {
      fprintf(stderr, "worker %s: a sum over %d ranks is %.0f\n", worker, horo_size(), sums[0]);
      _exit(8);
    }
    *step += 1;
    if ((int)sums[1] % 1000 == horo_size()) return HORO_OK;
    if (sums[1] >= 1000) return HORO_IN_PROGRESS; /* the members are to change */
  }
}

int main(int argc, char** argv) {
  if (argc < 4 || getenv("HORO_WORKER") == NULL) return 7;
  folder = argv[1];
  worker = getenv("HORO_WORKER");
  write_pid();
  if (exists_of_worker("bad") || exists("bad.all")) return 3;
  double step = 0;
  for (;;) {
    const horo_status status = horo_init();
    if (status == HORO_REMOVED) {
      printf("worker %s: removed\n", worker);
      return 0;
    }
    need(status);
    const horo_status end = train(&step, atof(argv[2]), atol(argv[3]));
    if (end != HORO_OK && exists_of_worker("again")) {
      double sums[2] = {1, 0};
      const horo_status again = reduce("step", HORO_SUM, sums);
      printf("worker %s: again: %s\n", worker, horo_status_name(again));
      fflush(stdout);
    }
    if (end != HORO_OK && end != HORO_IN_PROGRESS && end != HORO_PEER_LOST && end != HORO_SHUT_DOWN)
      need(end);
    horo_shutdown();
    if (end == HORO_OK) break;
  }
  printf("worker %s: done at step %.0f\n", worker, step);
  return 0;
}
