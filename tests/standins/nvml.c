/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for NVIDIA's management library in tests; nothing loads it unless HORO_NVML_LIBRARY
 * names its path. HORO_NVML_STANDIN says what the machine is like: "gpus=4 mig=1 lost=2 ecc=3
 * init=9 links=1 xid=1": four GPUs, of which number 1 is in MIG mode with two slices, number 2 has
 * fallen off the bus, and number 3 has 5 uncorrected memory errors; nvmlInit returns 9; each GPU
 * has two links to the next; GPU 1 reports Xid 79. "hang=1 mute=0 pid0=42": a question for the use
 * of GPU 1 is never answered, that of GPU 0 fails, and process 42 computes on GPU 0. "cpu1=3": GPU
 * 1 is near to hardware thread 3. Numbers that are not named: none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ENTRY __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, TIMEOUT = 10, LOST = 15 };

struct pci {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};

struct process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

struct event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

static int planned(const char* key, int otherwise) {
  const char* text = getenv("HORO_NVML_STANDIN");
  char word[32];
  const char* found;
  snprintf(word, sizeof word, "%s=", key);
  found = text == NULL ? NULL : strstr(text, word);
  return found == NULL ? otherwise : atoi(found + strlen(word));
}

/* A GPU's handle is one more than its number; a slice's is 1000 and more. */
static int number_of(void* device) {
  return (int)((size_t)device - 1);
}

static int is_lost(void* device) {
  return number_of(device) == planned("lost", -1);
}

static void address_of(struct pci* pci, int number) {
  memset(pci, 0, sizeof *pci);
  snprintf(pci->address, sizeof pci->address, "00000000:%02X:00.0", 16 + number);
}

ENTRY int nvmlInit_v2(void) {
  return planned("init", SUCCESS);
}

ENTRY int nvmlShutdown(void) {
  return SUCCESS;
}

ENTRY const char* nvmlErrorString(int code) {
  return code == LOST ? "GPU is lost" : "an error of the stand-in";
}

ENTRY int nvmlSystemGetDriverVersion(char* text, unsigned room) {
  snprintf(text, room, "580.65.06");
  return SUCCESS;
}

ENTRY int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = planned("cuda", 13000);
  return SUCCESS;
}

ENTRY int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = (unsigned)planned("gpus", 0);
  return SUCCESS;
}

ENTRY int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = (void*)(size_t)(index + 1);
  return SUCCESS;
}

ENTRY int nvmlDeviceGetName(void* device, char* text, unsigned room) {
  (void)device;
  snprintf(text, room, "NVIDIA Stand-in");
  return SUCCESS;
}

ENTRY int nvmlDeviceGetUUID(void* device, char* text, unsigned room) {
  snprintf(text, room, number_of(device) >= 999 ? "MIG-standin-%d" : "GPU-standin-%d",
           number_of(device));
  return SUCCESS;
}

ENTRY int nvmlDeviceGetPciInfo_v3(void* device, struct pci* pci) {
  address_of(pci, number_of(device));
  return SUCCESS;
}

ENTRY int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  if (is_lost(device)) return LOST;
  memory[0] = 80ULL << 30;
  memory[1] = 60ULL << 30;
  memory[2] = 20ULL << 30;
  return SUCCESS;
}

ENTRY int nvmlDeviceGetUtilizationRates(void* device, unsigned* use) {
  while (number_of(device) == planned("hang", -1)) pause();
  if (number_of(device) == planned("mute", -1)) return NOT_SUPPORTED;
  if (is_lost(device)) return LOST;
  use[0] = 42;
  use[1] = 7;
  return SUCCESS;
}

ENTRY int nvmlDeviceGetCpuAffinity(void* device, unsigned words, unsigned long* set) {
  char key[32];
  int cpu;
  snprintf(key, sizeof key, "cpu%d", number_of(device));
  cpu = planned(key, -1);
  if (cpu < 0) return NOT_SUPPORTED;
  memset(set, 0, words * sizeof *set);
  set[cpu / 64] |= 1UL << cpu % 64;
  return SUCCESS;
}

ENTRY int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (sensor != 0 || number_of(device) == planned("mute", -1)) return NOT_SUPPORTED;
  if (is_lost(device)) return LOST;
  *celsius = 61;
  return SUCCESS;
}

ENTRY int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                                  struct process* processes) {
  char key[32];
  int pid;
  snprintf(key, sizeof key, "pid%d", number_of(device));
  pid = planned(key, 0);
  if (is_lost(device)) return LOST;
  if (pid != 0 && *count < 1) return INSUFFICIENT_SIZE;
  *count = pid != 0;
  if (pid != 0) processes[0] = (struct process){.pid = (unsigned)pid, .used = 1ULL << 30};
  return SUCCESS;
}

ENTRY int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* pending) {
  *now = *pending = number_of(device) == planned("mig", -1);
  return SUCCESS;
}

ENTRY int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* most) {
  (void)device;
  *most = 7;
  return SUCCESS;
}

ENTRY int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** slice) {
  (void)device;
  *slice = (void*)(size_t)(1000 + index);
  return index < 2 ? SUCCESS : 6;
}

ENTRY int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  (void)device;
  *active = planned("links", 0) != 0 && link < 2;
  return link < 4 ? SUCCESS : 2;
}

ENTRY int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, struct pci* pci) {
  (void)link;
  address_of(pci, (number_of(device) + 1) % planned("gpus", 1));
  return SUCCESS;
}

ENTRY int nvmlDeviceGetTotalEccErrors(void* device, int kind, int counter,
                                      unsigned long long* count) {
  (void)counter;
  *count = kind == 1 && number_of(device) == planned("ecc", -1) ? 5 : 0;
  return SUCCESS;
}

ENTRY int nvmlEventSetCreate(void** set) {
  *set = calloc(1, sizeof(int));
  return SUCCESS;
}

ENTRY int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* set) {
  (void)device;
  (void)types;
  (void)set;
  return SUCCESS;
}

ENTRY int nvmlEventSetWait_v2(void* set, struct event* event, unsigned timeout_ms) {
  const struct timespec pause = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
  int* const told = set;
  if (planned("xid", -1) >= 0 && !*told) {
    *told = 1;
    memset(event, 0, sizeof *event);
    event->device = (void*)(size_t)(planned("xid", -1) + 1);
    event->type = 8;
    event->data = 79;
    return SUCCESS;
  }
  nanosleep(&pause, NULL);
  return TIMEOUT;
}

ENTRY int nvmlEventSetFree(void* set) {
  free(set);
  return SUCCESS;
}
