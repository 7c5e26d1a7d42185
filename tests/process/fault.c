/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into an agent: of the calls below the one with number HORO_FAULT_AT fails, counted over
 * guard, sweeper, agent and their children until these execute. Its name goes to HORO_FAULT_LOG. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static atomic_int* calls; /* Shared by all that descend from the first process. */
static int fault_at;
static const char* log_path;
static int (*real_open)(const char*, int, ...);

__attribute__((used)) static int due(const char* name) {
  if (calls == NULL || atomic_fetch_add(calls, 1) != fault_at) return 0;
  const int file = real_open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const ssize_t put = write(file, name, strlen(name));
  (void)put;
  close(file);
  return 1;
}

/* X(type, name, parameters, arguments, errno, what a failure returns) */
#define CALLS(X)                                                                                \
  X(int, pipe2, (int ends[2], int flags), (ends, flags), EMFILE, -1)                            \
  X(int, memfd_create, (const char* name, unsigned flags), (name, flags), EMFILE, -1)           \
  X(int, dup2, (int from, int to), (from, to), EBUSY, -1)                                       \
  X(int, dup3, (int from, int to, int flags), (from, to, flags), EMFILE, -1)                    \
  X(int, epoll_create1, (int flags), (flags), EMFILE, -1)                                       \
  X(int, eventfd, (unsigned start, int flags), (start, flags), EMFILE, -1)                      \
  X(int, timerfd_create, (clockid_t clock, int flags), (clock, flags), EMFILE, -1)              \
  X(void*, mmap, (void* at, size_t size, int protection, int flags, int fd, off_t offset),      \
    (at, size, protection, flags, fd, offset), ENOMEM, MAP_FAILED)                              \
  X(ssize_t, getrandom, (void* to, size_t size, unsigned flags), (to, size, flags), EIO, -1)    \
  X(int, mkdir, (const char* path, mode_t mode), (path, mode), ENOSPC, -1)                      \
  X(DIR*, opendir, (const char* path), (path), EMFILE, NULL)                                    \
  X(int, setrlimit, (__rlimit_resource_t what, const struct rlimit* to), (what, to), EPERM, -1) \
  X(int, chdir, (const char* path), (path), EACCES, -1)                                         \
  X(pid_t, fork, (void), (), EAGAIN, -1)

#define DEFINE(type, name, parameters, arguments, error, failure) \
  static __typeof__(name)* real_##name;                           \
  EXPORTED type name parameters {                                 \
    if (due(#name "\n")) {                                        \
      errno = error;                                              \
      return failure;                                             \
    }                                                             \
    return real_##name arguments;                                 \
  }
CALLS(DEFINE)

static int (*real_fcntl)(int, int, ...);
static long (*real_syscall)(long, ...);

EXPORTED int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  if (due("open\n")) {
    errno = EMFILE;
    return -1;
  }
  return real_open(path, flags, mode);
}

EXPORTED int fcntl(int fd, int what, ...) {
  va_list list;
  va_start(list, what);
  const long argument = va_arg(list, long);
  va_end(list);
  if (what == F_DUPFD_CLOEXEC && due("fcntl\n")) {
    errno = EMFILE;
    return -1;
  }
  return real_fcntl(fd, what, argument);
}

EXPORTED long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long word[6];
  for (int i = 0; i < 6; ++i) word[i] = va_arg(list, long);
  va_end(list);
  if ((number == SYS_clone3 && due("clone3\n")) ||
      (number == SYS_pidfd_open && due("pidfd_open\n"))) {
    errno = EAGAIN;
    return -1;
  }
  return real_syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

#ifdef __x86_64__
/* It returns twice, so no frame of ours may lie above the real one's. */
__attribute__((used)) static pid_t (*real_vfork)(void);

__attribute__((used)) static int vfork_due(void) {
  if (!due("vfork\n")) return 0;
  errno = EAGAIN;
  return 1;
}

EXPORTED __attribute__((naked)) pid_t vfork(void) {
  __asm__(
      "subq $8, %rsp\n\t"
      "call vfork_due\n\t"
      "addq $8, %rsp\n\t"
      "testl %eax, %eax\n\t"
      "jnz 1f\n\t"
      "jmp *real_vfork(%rip)\n"
      "1:\tmovl $-1, %eax\n\t"
      "ret");
}
#endif

__attribute__((constructor)) static void begin(void) {
#define RESOLVE(type, name, parameters, arguments, error, failure) \
  *(void**)&real_##name = dlsym(RTLD_NEXT, #name);
  CALLS(RESOLVE)
  *(void**)&real_open = dlsym(RTLD_NEXT, "open");
  *(void**)&real_fcntl = dlsym(RTLD_NEXT, "fcntl");
  *(void**)&real_syscall = dlsym(RTLD_NEXT, "syscall");
#ifdef __x86_64__
  *(void**)&real_vfork = dlsym(RTLD_NEXT, "vfork");
#endif
  const char* number = getenv("HORO_FAULT_AT");
  log_path = getenv("HORO_FAULT_LOG");
  if (number == NULL || log_path == NULL) return;
  fault_at = atoi(number);
  void* shared =
      real_mmap(NULL, sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared != MAP_FAILED) calls = shared;
}
