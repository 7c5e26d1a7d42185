/* SPDX-License-Identifier: Apache-2.0
 * A rank for the scripts in this folder. It sums ordinary and shared memory, then does what its
 * argument says. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <horo/horo.h>

static void need(horo_status status, const char* what) {
  if (status == HORO_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, horo_status_name(status), horo_last_error());
  exit(10 + (int)status);
}

static void sum(const char* name, float* values, int64_t count) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  horo_tensor tensor;
  horo_op op;
  desc.name = name;
  desc.ndim = 1;
  desc.shape = &count;
  for (int64_t i = 0; i < count; ++i) values[i] = 1;
  need(horo_declare(&desc, &tensor), "declare");
  need(horo_submit(tensor, values, values, &op), "submit");
  need(horo_wait(op, -1), "wait");
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] != (float)horo_size()) {
      fprintf(stderr, "%s[%lld] is %g\n", name, (long long)i, values[i]);
      exit(3);
    }
  }
}

/* Signals belong to the program: no other thread of this process may take one, SIGPIPE in
 * particular. */
static int threads_leave_signals_alone(void) {
  int others = 0, right = 1;
  char path[300], line[200];
  DIR* tasks = opendir("/proc/self/task");
  struct dirent* entry;
  while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == (int)getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    FILE* status = fopen(path, "r");
    unsigned long long blocked = 0;
    char name[64] = "";
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
      sscanf(line, "Name: %63s", name);
      sscanf(line, "SigBlk: %llx", &blocked);
    }
    if (status != NULL) fclose(status);
    ++others;
    for (int i = 0; i < 3; ++i) {
      const int signals[] = {SIGPIPE, SIGTERM, SIGINT};
      if ((blocked >> (signals[i] - 1) & 1) != 0) continue;
      fprintf(stderr, "thread %s takes signal %d\n", name, signals[i]);
      right = 0;
    }
  }
  if (tasks != NULL) closedir(tasks);
  return right && others > 0;
}

/* Prints the cores of each other thread of this process. */
static void print_cores_of_threads(void) {
  char path[300], line[200];
  DIR* tasks = opendir("/proc/self/task");
  struct dirent* entry;
  while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == (int)getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    FILE* status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
      if (strncmp(line, "Cpus_allowed_list:", 18) == 0) printf("cores %s", line + 19);
    }
    if (status != NULL) fclose(status);
  }
  if (tasks != NULL) closedir(tasks);
}

int main(int argc, char** argv) {
  const int64_t count = 300000;
  const char* what = argc > 1 ? argv[1] : "";
  need(horo_init(), "init");
  float* own = malloc((size_t)count * sizeof(float));
  void* shared = NULL;
  need(horo_alloc((size_t)count * sizeof(float), &shared), "alloc");
  sum("own", own, count);
  sum("shared", shared, count);
  if (strcmp(what, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0)
      _exit(horo_poll(1) == HORO_FORKED && horo_init() == HORO_FORKED && horo_rank() == -1 ? 0 : 1);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) return 4;
    sum("own", own, count); /* the parent must still work */
  }
  if (strcmp(what, "leave") == 0 && horo_rank() == 2) _exit(0);
  if (strcmp(what, "leave") == 0) sum("own", own, count);
  if (strcmp(what, "all leave") == 0) {
    sleep(1); /* Wait until every rank has its sum: a rank still in the sum would fail when this one
                 leaves. */
    _exit(0);
  }
  if (strcmp(what, "threads") == 0 && horo_rank() == 0)
    return threads_leave_signals_alone() ? 0 : 5;
  if (strcmp(what, "cores") == 0) print_cores_of_threads();
  if (strcmp(what, "too much") == 0) {
    void* huge = NULL;
    const horo_status status = horo_alloc((size_t)1 << 50, &huge);
    printf("%s: %s\n", horo_status_name(status), horo_last_error());
  }
  need(horo_free(shared), "free");
  need(horo_shutdown(), "shutdown");
  free(own);
  puts("fine");
  return 0;
}
