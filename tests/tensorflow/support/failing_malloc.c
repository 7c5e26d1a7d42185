/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a test: one allocation of one shared object fails, as if there were no memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static _Atomic uintptr_t begin, end; /* addresses of the object's code */
static atomic_long left = -1;

/* Notes the addresses of the object whose path ends with `wanted`. */
static int find(struct dl_phdr_info* info, size_t size, void* wanted) {
  const char* const path = info->dlpi_name;
  const size_t length = strlen(path), tail = strlen(wanted);
  (void)size;
  if (length < tail || strcmp(path + length - tail, wanted) != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0) continue;
    atomic_store(&begin, info->dlpi_addr + part->p_vaddr);
    atomic_store(&end, info->dlpi_addr + part->p_vaddr + part->p_memsz);
  }
  return 1;
}

/* The allocation of the shared object at a path that ends with `object` fails once, after `number`
 * others. -1: none does. Returns how many were still to come before the one that was to fail; -1:
 * it has failed, or none was to. */
__attribute__((visibility("default"))) long fail_allocation(char* object, long number) {
  const long before = atomic_exchange(&left, -1);
  if (number < 0) return before;
  dl_iterate_phdr(find, object);
  atomic_store(&left, number);
  return before;
}

static int is_of_object(const void* caller) {
  const uintptr_t place = (uintptr_t)caller;
  return place >= atomic_load(&begin) && place < atomic_load(&end);
}

__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  static void* (*_Atomic real)(size_t);
  void* (*function)(size_t) = atomic_load(&real);
  if (function == NULL) {
    function = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
    atomic_store(&real, function);
  }
  if (atomic_load(&left) >= 0 && is_of_object(__builtin_return_address(0)) &&
      atomic_fetch_sub(&left, 1) == 0) {
    errno = ENOMEM;
    return NULL;
  }
  return function(bytes);
}
