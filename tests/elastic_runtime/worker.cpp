// SPDX-License-Identifier: Apache-2.0
// A worker of an elastic job that does what its standard input says, one line after the other, and
// says on its standard output how that ended.
//
//   init          horo_init: "in GENERATION RANK SIZE SURVIVORS" or "failed STATUS MESSAGE"
//   shutdown      horo_shutdown: "out", then the milliseconds that it took
//   sum           an allreduce of rank + 1: "sum VALUE" or "failed ..."
//   train         sums until one fails, enters the next generation, and sums once: "in ...", then
//                 "sum VALUE"
//   serve         the same for ever, until it is killed
//   pend N        submits N operations that no other rank submits: "pending N"
//   ends          waits for them: "ended STATUS" of the first
//   stale         waits for an operation of an earlier session, and submits a tensor of it
//   set           adds a process set of ranks 0 and 1, with a sum in it
//   join          submits a join and does not wait
//   alloc         memory of horo_alloc with a known content; "held N" counts what is intact
//   change        "change SEQUENCE FLAGS"
//   counts        "counts DESCRIPTORS THREADS MAPPINGS PRIVATE-KIB"
//   nap MS        does nothing for so long: "rested"
//   end CODE      ends at once
//   quit          another thread calls horo_init, and this one ends the process by exit(0)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <horo/horo.h>

namespace {

std::vector<horo_op> pending;
std::vector<float*> memory;
horo_tensor old_tensor = 0;
constexpr std::size_t kFloats = 1000;

bool failed(horo_status status) {
  if (status == HORO_OK) return false;
  std::cout << "failed " << horo_status_name(status) << ' ' << horo_last_error() << std::endl;
  return true;
}

horo_status submit(const std::string& name, horo_kind kind, float* value, horo_op* op,
                   horo_set set = HORO_WORLD) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = name.c_str();
  desc.kind = kind;
  desc.op = HORO_SUM;
  desc.process_set = set;
  horo_tensor tensor = 0;
  const auto status = horo_declare(&desc, &tensor);
  if (status != HORO_OK) return status;
  old_tensor = tensor;
  return horo_submit(tensor, value, value, op);
}

horo_status sum(float& value, horo_set set = HORO_WORLD) {
  value = static_cast<float>(horo_rank()) + 1;
  horo_op op = 0;
  const auto status = submit("sum", HORO_ALLREDUCE, &value, &op, set);
  return status == HORO_OK ? horo_wait(op, -1) : status;
}

void say_sum() {
  float value = 0;
  if (!failed(sum(value))) std::cout << "sum " << value << std::endl;
}

bool init() {
  if (failed(horo_init())) return false;
  std::cout << "in " << horo_generation() << ' ' << horo_rank() << ' ' << horo_size() << ' '
            << horo_survivors() << std::endl;
  return true;
}

/// False if it does not come into the next generation.
bool train() {
  float value = 0;
  while (sum(value) == HORO_OK) {
  }
  horo_shutdown();
  if (!init()) return false;
  say_sum();
  return true;
}

void serve() {
  if (!init()) return;
  say_sum();
  while (train()) {
  }
}

void pend(int count) {
  static std::vector<float> values(1000);
  for (int i = 0; i < count; ++i) {
    horo_op op = 0;
    const auto name = "mine." + std::to_string(getpid()) + "." + std::to_string(i);
    if (failed(submit(name, HORO_ALLREDUCE, &values[static_cast<std::size_t>(i)], &op))) return;
    pending.push_back(op);
  }
  std::cout << "pending " << count << std::endl;
}

void stale() {
  float value = 0;
  horo_op op = 0;
  const auto waited = horo_wait(pending.at(0), 0);
  const auto submitted = horo_submit(old_tensor, &value, &value, &op);
  std::cout << "stale " << horo_status_name(waited) << ' ' << horo_status_name(submitted)
            << std::endl;
}

void add_set() {
  const int ranks[] = {0, 1};
  horo_set set = 0;
  if (failed(horo_add_process_set(ranks, 2, &set))) return;
  float value = 0;
  if (horo_process_set_rank(set) >= 0 && failed(sum(value, set))) return;
  std::cout << "set " << value << std::endl;
}

void allocate() {
  void* block = nullptr;
  if (failed(horo_alloc(kFloats * sizeof(float), &block))) return;
  auto* const floats = static_cast<float*>(block);
  for (std::size_t i = 0; i < kFloats; ++i) floats[i] = static_cast<float>(i + memory.size());
  memory.push_back(floats);
  std::size_t held = 0;
  for (std::size_t m = 0; m < memory.size(); ++m) {
    bool intact = true;
    for (std::size_t i = 0; i < kFloats; ++i)
      intact = intact && memory[m][i] == static_cast<float>(i + m);
    held += intact ? 1 : 0;
  }
  std::cout << "held " << held << std::endl;
}

int entries(const char* folder) {
  int count = 0;
  DIR* const open = opendir(folder);
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

/// Memory of this process that no other shares.
long private_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::strtol(line.c_str() + 8, nullptr, 10);
  }
  return 0;
}

void shut_down() {
  const auto before = std::chrono::steady_clock::now();
  horo_shutdown();
  const auto took = std::chrono::steady_clock::now() - before;
  std::cout << "out " << std::chrono::duration_cast<std::chrono::milliseconds>(took).count()
            << std::endl;
}

void say_change() {
  std::uint64_t sequence = 0;
  std::uint32_t flags = 0;
  if (!failed(horo_pending_change(&sequence, &flags)))
    std::cout << "change " << sequence << ' ' << flags << std::endl;
}

void act(const std::string& word, int number) {
  if (word == "init") init();
  if (word == "shutdown") shut_down();
  if (word == "sum") say_sum();
  if (word == "train") train();
  if (word == "serve") serve();
  if (word == "pend") pend(number);
  if (word == "ends")
    std::cout << "ended " << horo_status_name(horo_wait(pending.at(0), -1)) << std::endl;
  if (word == "stale") stale();
  if (word == "set") add_set();
  if (word == "alloc") allocate();
  if (word == "change") say_change();
  if (word == "end") _exit(number);
  if (word == "quit") {
    std::thread(horo_init).detach();
    std::string answered;
    std::getline(std::cin, answered);
    std::exit(0);
  }
  if (word == "join") {
    horo_op op = 0;
    if (!failed(submit("join", HORO_JOIN, nullptr, &op))) std::cout << "joining" << std::endl;
  }
  if (word == "counts") {
    std::cout << "counts " << entries("/proc/self/fd") << ' ' << entries("/proc/self/task") << ' '
              << mappings() << ' ' << private_kib() << std::endl;
  }
  if (word == "nap") {
    std::this_thread::sleep_for(std::chrono::milliseconds(number));
    std::cout << "rested" << std::endl;
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    int number = 0;
    words >> word >> number;
    act(word, number);
  }
  return 0;
}
