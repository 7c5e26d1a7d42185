/* SPDX-License-Identifier: Apache-2.0
 * A rank for the scripts in this folder: joins, sums, and runs its arguments in order.
 *
 *   sum            an allreduce whose result is checked
 *   large=N        the same of N MiB
 *   identity       prints rank, size and place on the host
 *   rounds=N       shuts down and joins again N times, with a sum each time; nothing may grow
 *   only=R WORD    the other ranks skip the next word
 *   kill, exit=N   ends at once, without leaving
 *   stop           sends SIGSTOP to itself
 *   nap=N          sleeps for N seconds
 *   loader         forks a child that keeps all descriptors for 20 s
 *   lose           waits for an allreduce that cannot complete; prints how it ends
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <horo/horo.h>

static void need(horo_status status, const char* what) {
  if (status == HORO_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, horo_status_name(status), horo_last_error());
  exit(10 + (int)status);
}

static horo_status reduce(const char* name, float* value) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  horo_tensor tensor;
  horo_op op;
  desc.name = name;
  const horo_status declared = horo_declare(&desc, &tensor);
  if (declared != HORO_OK) return declared;
  const horo_status submitted = horo_submit(tensor, value, value, &op);
  return submitted != HORO_OK ? submitted : horo_wait(op, -1);
}

static void lost(horo_status status) {
  printf("rank %d: %s: %s\n", horo_rank(), horo_status_name(status), horo_last_error());
  exit(status == HORO_PEER_LOST ? 0 : 5);
}

static void sum(void) {
  float value = (float)horo_rank() + 1;
  const horo_status status = reduce("sum", &value);
  if (status == HORO_PEER_LOST)
    lost(status); /* A peer that has its result may have ended already. */
  need(status, "sum");
  const int ranks = horo_size();
  const float wanted = (float)(ranks * (ranks + 1) / 2);
  if (value != wanted) {
    fprintf(stderr, "the sum is %g, not %g\n", value, wanted);
    exit(3);
  }
}

static void large(int mib) {
  const int64_t count = (int64_t)mib << 18;
  float* values = malloc((size_t)count * sizeof *values);
  if (values == NULL) exit(6);
  for (int64_t i = 0; i < count; ++i) values[i] = (float)horo_rank() + 1;
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  horo_tensor tensor;
  horo_op op;
  desc.name = "large";
  desc.ndim = 1;
  desc.shape = &count;
  need(horo_declare(&desc, &tensor), "declare");
  need(horo_submit(tensor, values, values, &op), "submit");
  need(horo_wait(op, -1), "a large sum");
  const int ranks = horo_size();
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] == (float)(ranks * (ranks + 1) / 2)) continue;
    fprintf(stderr, "an element of the large sum is %g\n", values[i]);
    exit(3);
  }
  free(values);
}

static int entries(const char* folder) {
  int count = 0;
  DIR* open = opendir(folder);
  while (readdir(open) != NULL) ++count;
  closedir(open);
  return count;
}

static int mappings(void) {
  int count = 0;
  FILE* maps = fopen("/proc/self/maps", "re");
  for (int c = fgetc(maps); c != EOF; c = fgetc(maps)) count += c == '\n';
  fclose(maps);
  return count;
}

static void rounds(int count) {
  int descriptors = 0, threads = 0, mapped = 0;
  for (int i = 0; i < count; ++i) {
    need(horo_shutdown(), "shutdown");
    need(horo_init(), "init again");
    sum();
    if (i == 4) { /* The C library has allocated its buffers by now. */
      descriptors = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
      mapped = mappings();
    }
  }
  if (count < 5) return;
  const int grown[] = {entries("/proc/self/fd") - descriptors, entries("/proc/self/task") - threads,
                       mappings() - mapped};
  if (grown[0] > 0 || grown[1] > 0 || grown[2] > 4) {
    fprintf(stderr, "after %d rounds: %d descriptors, %d threads, %d mappings more\n", count,
            grown[0], grown[1], grown[2]);
    exit(4);
  }
}

static void lose(void) {
  float value = 1;
  lost(reduce("never", &value));
}

static void act(const char* word) {
  if (strcmp(word, "sum") == 0) sum();
  if (strncmp(word, "large=", 6) == 0) large(atoi(word + 6));
  if (strcmp(word, "identity") == 0) {
    printf("rank %d of %d, local %d of %d, cross %d of %d\n", horo_rank(), horo_size(),
           horo_local_rank(), horo_local_size(), horo_cross_rank(), horo_cross_size());
    fflush(stdout);
  }
  if (strncmp(word, "rounds=", 7) == 0) rounds(atoi(word + 7));
  if (strcmp(word, "kill") == 0) raise(SIGKILL);
  if (strncmp(word, "nap=", 4) == 0) sleep((unsigned)atoi(word + 4));
  if (strncmp(word, "exit=", 5) == 0) _exit(atoi(word + 5));
  if (strcmp(word, "stop") == 0) raise(SIGSTOP);
  if (strcmp(word, "loader") == 0 && fork() == 0) {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    sleep(20);
    _exit(0);
  }
  if (strcmp(word, "lose") == 0) lose();
}

int main(int argc, char** argv) {
  need(horo_init(), "init");
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "only=", 5) == 0) {
      if (horo_rank() != atoi(argv[i] + 5)) ++i; /* others skip the next one */
    } else {
      act(argv[i]);
    }
  }
  need(horo_shutdown(), "shutdown");
  return 0;
}
