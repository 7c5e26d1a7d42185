// SPDX-License-Identifier: Apache-2.0
// A rank whose tensors are in the memory of a device. usage: gpu_rank SCENARIO ARGUMENTS
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>

#include "tests/device_path/drawn_ops.hpp"
#include "tests/device_path/timed_ops.hpp"
#include "tests/device_path/two_devices.hpp"

namespace {

using horo::tests::draw;
using horo::tests::DrawnOp;
using horo::tests::DrawnSet;
using horo::tests::Gpu;
using horo::tests::require;
using horo::tests::RunningOp;

void check(horo_status status, const char* call) {
  require(status == HORO_OK,
          std::string(call) + ": " + horo_status_name(status) + ": " + horo_last_error());
}

/// The part of a plan that says how many devices there are: nothing, or one for each rank of the
/// host; and which host it is.
std::string devices() {
  if (std::getenv("GPU_RANK_DEVICES") == nullptr) return {};
  return "devices=" + std::to_string(horo_local_size()) +
         " host=" + std::to_string(horo_cross_rank()) + " ";
}

DrawnSet set_of(horo_set id) {
  DrawnSet set{.id = id};
  set.ranks.resize(static_cast<std::size_t>(horo_process_set_size(id)));
  check(horo_process_set_ranks(id, set.ranks.data()), "horo_process_set_ranks");
  set.position = horo_process_set_rank(id);
  return set;
}

/// The world and, with several ranks, three sets that overlap in a ring, of which the first two
/// have all ranks but one.
std::vector<DrawnSet> make_sets() {
  std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  const int size = horo_size();
  if (size < 3) return sets;
  std::vector<std::vector<int>> members(2);
  for (int r = 0; r < size; ++r) {
    if (r != 0) members[0].push_back(r);
    if (r != size - 1) members[1].push_back(r);
  }
  members.push_back({0, size - 1});
  for (const auto& ranks : members) {
    horo_set id = 0;
    check(horo_add_process_set(ranks.data(), ranks.size(), &id), "horo_add_process_set");
    sets.push_back(set_of(id));
  }
  return sets;
}

void run_seed(const Gpu& gpu, const std::vector<DrawnSet>& sets, std::uint64_t seed) {
  gpu.plan(devices() +
           "seed=" + std::to_string(seed * 64 + static_cast<std::uint64_t>(horo_rank())) +
           " delay=" + std::to_string(seed % 3 * 20));
  std::mt19937_64 random(seed);
  const auto ops = draw(random, 10, sets);
  // From here on each rank draws for itself.
  std::mt19937_64 own(seed * 1000 + static_cast<std::uint64_t>(horo_rank()));
  std::vector<void*> streams(1 + own() % 3);
  for (auto& stream : streams) stream = gpu.stream();
  std::vector<std::unique_ptr<RunningOp>> running;
  for (std::size_t k = 0; k < ops.size(); ++k) {
    const auto& set = sets[ops[k].set];
    if (set.position < 0) continue;
    running.push_back(std::make_unique<RunningOp>(gpu, ops[k], set, streams[own() % streams.size()],
                                                  "op." + std::to_string(k)));
  }
  for (auto& op : running) op->finish(own() % 2 == 0);
  for (auto* const stream : streams) gpu.destroy(stream);
  const auto found = gpu.findings();
  require(found.empty(), "seed " + std::to_string(seed) + ": " + found);
}

int seeds(const Gpu& gpu, char** arguments) {
  const auto first = std::strtoull(arguments[0], nullptr, 10);
  const auto count = std::strtoull(arguments[1], nullptr, 10);
  const auto sets = make_sets();
  for (auto seed = first; seed < first + count; ++seed) run_seed(gpu, sets, seed);
  if (horo_rank() == 0) std::printf("%llu seeds agree\n", static_cast<unsigned long long>(count));
  return 0;
}

/// An operation that the plan `arguments[1]` makes fail on rank 0 fails everywhere, and the set
/// goes on.
int fault(const Gpu& gpu, char** arguments) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  DrawnOp op{.number = 1, .rows = 1000};
  RunningOp(gpu, op, sets[0], stream, "before").finish(false);
  if (horo_rank() == 0) gpu.plan(devices() + arguments[0]);
  RunningOp broken(gpu, op, sets[0], stream, "broken");
  const auto status = broken.end();
  const std::string message = horo_last_error();
  require(status == HORO_IO, std::string("ended with ") + horo_status_name(status));
  const char* const expected = horo_rank() == 0 ? "device 0 of host " : "rank 0 could not copy";
  require(message.find(expected) != std::string::npos, message);
  if (horo_rank() == 0) gpu.plan(devices());
  broken.release();
  RunningOp(gpu, op, sets[0], stream, "after").finish(true);
  return 0;
}

/// Ends also with the loss of a rank that is through.
void barrier(horo_set set) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = "barrier";
  desc.kind = HORO_BARRIER;
  desc.process_set = set;
  horo_tensor tensor = 0;
  horo_op op = 0;
  check(horo_declare(&desc, &tensor), "horo_declare");
  check(horo_submit(tensor, nullptr, nullptr, &op), "horo_submit");
  const auto status = horo_wait(op, -1);
  if (status != HORO_PEER_LOST) check(status, "horo_wait");
}

/// Ends the process without a shutdown, which would wait for operations.
[[noreturn]] void leave(const char* word) {
  std::printf("rank %d %s\n", horo_rank(), word);
  std::fflush(stdout);
  std::_Exit(0);
}

/// Makes rank 0's device and its NCCL fail by these plans; "-": it does not.
void plant(const Gpu& gpu, const std::string& device, const std::string& nccl) {
  if (horo_rank() != 0) return;
  if (device != "-") gpu.plan(devices() + device);
  if (nccl != "-") Gpu::plan_nccl(nccl);
}

/// Work that the plans `arguments[0]` (of the device) and `arguments[1]` (of NCCL) make fail on
/// rank 0 ends the job's operations on all ranks, because ranks whose devices wait for each other
/// cannot go on without one. Rank 0's error has the text `arguments[2]`, and the others name rank
/// 0.
int breaks(const Gpu& gpu, char** arguments) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  DrawnOp op{.number = 1, .rows = 1000};
  RunningOp(gpu, op, sets[0], stream, "before").finish(false);
  plant(gpu, arguments[0], arguments[1]);
  // The result of an allgather needs memory of the runtime's.
  if (std::string(arguments[0]).find("cuMemAlloc") != std::string::npos) op.kind = HORO_ALLGATHER;
  // A fault behind an operation may leave that one right on the other ranks.
  for (int k = 0;
       RunningOp(gpu, op, sets[0], stream, "broken." + std::to_string(k)).end() == HORO_OK; ++k) {
  }
  const std::string message = horo_last_error();
  if (horo_rank() == 0) {
    require(message.find(arguments[2]) != std::string::npos, message);
    require(message.find("device 0 of host ") != std::string::npos, message);
    // The job's exit code, if the program takes the error for its end.
    if (const char* const code = std::getenv("BREAKS_CODE")) std::_Exit(std::atoi(code));
  } else {
    require(message.find("rank 0 ") != std::string::npos &&
                message.find("its GPU failed") != std::string::npos,
            message);
  }
  leave("was told");
}

/// With a fault planted on rank 0, as for `breaks`, before the other ranks submit, the operation
/// ends on all ranks, in whatever way.
int either(const Gpu& gpu, char** arguments) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  const DrawnOp op{.number = 1, .rows = 1000};
  RunningOp(gpu, op, sets[0], stream, "before").finish(false);
  if (horo_rank() != 0) barrier(HORO_WORLD);
  RunningOp ends(gpu, op, sets[0], stream, "either");
  plant(gpu, arguments[0], arguments[1]);
  if (horo_rank() == 0) barrier(HORO_WORLD);
  const auto status = ends.end();
  const std::string message = status == HORO_OK ? "" : horo_last_error();
  // A rank whose device fails only behind the operation is no loss for the others.
  const bool named = horo_rank() == 0 || message.find("rank 0 ") != std::string::npos;
  require(status == HORO_OK || named, message);
  leave("has ended");
}

/// An operation that never ends on rank 1's device is named, and ends by `stall.shutdown.time`.
int hangs(const Gpu& gpu, char** /*arguments*/) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  const DrawnOp op{.number = 1, .rows = 1000};
  RunningOp(gpu, op, sets[0], stream, "before").finish(false);
  if (horo_rank() == 1) Gpu::plan_nccl("hang=1");
  RunningOp hung(gpu, op, sets[0], stream, "hung");
  require(hung.end() == HORO_PEER_LOST, "another status");
  const std::string message = horo_last_error();
  require(message.find("'hung'") != std::string::npos, message);
  leave("was told");
}

/// A program that writes a tensor on another stream than the one that it gives, or frees it while
/// it is in use, is found.
int misuse(const Gpu& gpu, char** arguments) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  auto* const other = gpu.stream();
  const DrawnOp op{.number = 1, .rows = 1000, .in_place = true};
  RunningOp(gpu, op, sets[0], stream, "before").finish(false);
  std::atomic<bool> open{false};
  const bool frees = std::string(arguments[0]) == "frees";
  // The work of this stream, and what comes behind it, is not done before the misuse.
  gpu.gate(stream, open);
  RunningOp misused(gpu, op, sets[0], stream, "misused");
  misused.await_launch(gpu.stream());
  if (frees) {
    misused.release();
  } else {
    gpu.put(misused.input(), std::vector<std::uint8_t>(100), other);
  }
  open = true;
  open.notify_all();
  static_cast<void>(misused.end());
  const auto found = gpu.findings();
  require(found.find(frees ? "freed in use" : "not ordered") != std::string::npos,
          "found: " + found);
  leave("was found");
}

/// Rank 0 starts the operations of a communicator, or of two, in another order than the others.
int swaps(const Gpu& gpu, char** arguments) {
  std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  if (std::string(arguments[0]) == "communicators") {
    const std::array<int, 2> ranks = {0, 1};
    horo_set id = 0;
    check(horo_add_process_set(ranks.data(), ranks.size(), &id), "horo_add_process_set");
    sets.push_back(set_of(id));
  }
  const auto& second = sets.back();
  const DrawnOp op{.number = 1, .rows = 1000};
  const DrawnOp next{.number = 2, .kind = HORO_BROADCAST, .dtype = HORO_INT64, .rows = 1000};
  for (const auto& set : sets) {
    if (set.position >= 0) RunningOp(gpu, op, set, stream, "before").finish(false);
  }
  if (horo_rank() == 0) Gpu::plan_nccl("swap=1");
  RunningOp one(gpu, op, sets[0], stream, "one");
  one.await_launch(gpu.stream());
  if (second.position >= 0) {
    RunningOp two(gpu, next, second, stream, "two");
    require(two.end() != HORO_OK || one.end() != HORO_OK, "the operations have not failed");
  } else {
    static_cast<void>(one.end());
  }
  leave("was told");
}

/// The same plan where another way is there.
int other_version(const Gpu& gpu, char** arguments) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  if (horo_rank() == 1) Gpu::plan_nccl(arguments[0]);
  auto* const stream = gpu.stream();
  RunningOp(gpu, {.number = 1, .rows = 1000}, sets[0], stream, "staged").finish(true);
  return 0;
}

/// NCCL that cannot be used is named: `arguments[0]` is rank 1's plan, `arguments[1]` the text.
int unusable(const Gpu& gpu, char** arguments) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  if (horo_rank() == 1 && std::string(arguments[0]) != "-") Gpu::plan_nccl(arguments[0]);
  RunningOp refused(gpu, {.number = 1, .rows = 1000}, sets[0], gpu.stream(), "refused");
  require(refused.end() != HORO_OK, "the operation has not failed");
  const std::string message = horo_last_error();
  require(message.find(arguments[1]) != std::string::npos, message);
  refused.release();
  return 0;
}

/// Rank 1's device is busy for longer than `gloo.timeout`, before its tensor is ready.
int busy(const Gpu& gpu, char** /*arguments*/) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  const DrawnOp op{.number = 1, .rows = 1000};
  RunningOp(gpu, op, sets[0], stream, "before").finish(false);
  if (horo_rank() == 1) gpu.plan(devices() + "delay=100000");
  for (int k = 0; k < 2; ++k)
    RunningOp(gpu, op, sets[0], stream, "busy." + std::to_string(k)).finish(false);
  return 0;
}

/// An operation whose tensor is late does not hold up the next one, which is on another stream.
int overlap(const Gpu& gpu, char** /*arguments*/) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const late = gpu.stream();
  auto* const early = gpu.stream();
  const DrawnOp first{.number = 1, .rows = 1000};
  const DrawnOp second{.number = 2, .dtype = HORO_INT64, .rows = 1000};
  RunningOp(gpu, first, sets[0], late, "before").finish(false);
  std::atomic<bool> open{false};
  gpu.gate(late, open);
  RunningOp waits(gpu, first, sets[0], late, "waits");
  RunningOp goes_on(gpu, second, sets[0], early, "goes on");
  goes_on.check_on_stream();
  open = true;
  open.notify_all();
  waits.finish(false);
  goes_on.finish(false);
  return 0;
}

/// Sets of rank 1 and one other rank each, whose barriers do not wait for operations of the world.
std::vector<horo_set> pairs_with_rank_1() {
  std::vector<horo_set> pairs;
  for (const int other : {0, 2}) {
    const std::array<int, 2> ranks = {other, 1};
    check(horo_add_process_set(ranks.data(), 2, &pairs.emplace_back()), "horo_add_process_set");
  }
  return pairs;
}

/// Rank 1 returns after both others have called it.
void meet(const std::vector<horo_set>& pairs) {
  for (const auto pair : pairs) {
    if (horo_process_set_rank(pair) >= 0) barrier(pair);
  }
}

/// Rank 1 dies in the middle of an operation. The devices, or the operation of NCCL itself, are
/// busy with work that never ends: `arguments[0]` is "device" or "nccl".
int loss(const Gpu& gpu, char** arguments) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  const auto pairs = pairs_with_rank_1();
  const DrawnOp op{.number = 1, .rows = 300'000};
  RunningOp(gpu, op, sets[0], stream, "before").finish(false);
  if (std::string(arguments[0]) == "nccl") {
    Gpu::plan_nccl("hang=1");
  } else {
    gpu.plan(devices() + "hang=1");
  }
  RunningOp waiting(gpu, op, sets[0], stream, "waiting");
  meet(pairs);
  if (horo_rank() == 1) std::_Exit(3);
  const auto status = waiting.end();
  require(status == HORO_PEER_LOST, std::string("ended with ") + horo_status_name(status));
  leave("was told");
}

/// Rank 1 dies while the devices of the others are busy. A stream that has waited for the operation
/// may use the tensor again, although the device still has work for it.
int busy_loss(const Gpu& gpu, char** /*arguments*/) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  const auto pairs = pairs_with_rank_1();
  auto* const stream = gpu.stream();
  auto* const other = gpu.stream();
  const DrawnOp op{.number = 1, .rows = 1000, .in_place = true};
  RunningOp(gpu, op, sets[0], stream, "before").finish(false);
  std::atomic<bool> open{false};
  if (horo_rank() != 1) gpu.gate(stream, open);
  RunningOp late(gpu, op, sets[0], stream, "late");
  const auto handle = late.handle();
  // Behind the gate are the rank's copy and event; the rest is the runtime's.
  while (horo_rank() != 1 && gpu.pending() <= 3) static_cast<void>(horo_poll(handle));
  meet(pairs);
  if (horo_rank() == 1) std::_Exit(3);
  static_cast<void>(horo_await(handle, -1));
  require(horo_wait_stream(&handle, 1, other, -1) == HORO_PEER_LOST, "another status");
  gpu.put(late.input(), std::vector<std::uint8_t>(100), other);
  open = true;
  open.notify_all();
  gpu.synchronize(other);
  const auto found = gpu.findings();
  require(found.empty(), found);
  leave("was told");
}

/// Blocks: until the launcher knows that the host has only two slots left.
void lose_slot(const char* file) {
  std::FILE* const slots = std::fopen(file, "w");
  require(slots != nullptr && std::fputs("2", slots) >= 0 && std::fclose(slots) == 0,
          "the slots cannot be written");
  std::uint64_t sequence = 0;
  std::uint32_t flags = 0;
  while (sequence == 0) {
    check(horo_pending_change(&sequence, &flags), "horo_pending_change");
    std::this_thread::yield();
  }
}

/// Trains in one generation of an elastic job after the other. Rank 1 of the first generation dies
/// in the middle of an operation, when all others have started it, and its slot goes with it.
int elastic(const Gpu& gpu, char** arguments) {
  for (;;) {
    gpu.plan(devices() + "delay=20");
    const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
    auto* const stream = gpu.stream();
    bool lost = false;
    for (int step = 0; step < 6 && !lost; ++step) {
      const DrawnOp op{.number = step, .rows = 1000 * (step + 1)};
      std::atomic<bool> open{false};
      const bool dies = horo_generation() == 1 && horo_rank() == 1 && step == 3;
      if (dies) gpu.gate(stream, open);
      RunningOp running(gpu, op, sets[0], stream, "step." + std::to_string(step));
      if (dies) {
        running.await_launch(gpu.stream());
        lose_slot(arguments[0]);
        std::raise(SIGKILL);
      }
      lost = !running.finish_unless_lost();
    }
    gpu.destroy(stream);
    const auto found = gpu.findings();
    require(found.empty(), found);
    if (!lost) break;
    check(horo_shutdown(), "horo_shutdown");
    check(horo_init(), "horo_init");
  }
  if (horo_rank() == 0) {
    std::printf("generation %d: %d ranks agree, %d of them from before\n",
                static_cast<int>(horo_generation()), horo_size(), horo_survivors());
  }
  return 0;
}

/// Adasum has the same bits in device memory and in host memory, in sets within a host and between
/// hosts.
int adasum(const Gpu& gpu, char** /*arguments*/) {
  auto* const stream = gpu.stream();
  int number = 0;
  for (const auto& set : make_sets()) {
    for (const auto dtype : {HORO_FLOAT32, HORO_FLOAT64}) {
      for (const std::int64_t rows : {1, 100, 20'000, 300'000}) {
        DrawnOp op{.number = ++number, .op = HORO_ADASUM, .dtype = dtype, .rows = rows};
        if (set.position < 0) continue;
        const auto name = "adasum." + std::to_string(number);
        RunningOp device(gpu, op, set, stream, name);
        op.on_device = false;
        RunningOp host(gpu, op, set, stream, name + ".host");
        require(device.take() == host.take(), "another result: " + name);
      }
    }
  }
  const auto found = gpu.findings();
  require(found.empty(), found);
  return 0;
}

/// Host memory on rank 0, device memory on the others.
int mixed(const Gpu& gpu, char** /*arguments*/) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  auto* const stream = gpu.stream();
  const DrawnOp op{.number = 1, .rows = 100, .on_device = horo_rank() != 0};
  RunningOp differs(gpu, op, sets[0], stream, "differs");
  require(differs.end() == HORO_MISMATCH, "the ranks agree");
  const std::string message = horo_last_error();
  require(message.find("host memory") != std::string::npos &&
              message.find("device memory") != std::string::npos,
          message);
  horo_error_detail detail{};
  detail.size = sizeof detail;
  check(horo_last_error_detail(&detail), "horo_last_error_detail");
  require(detail.subject == HORO_SUBJECT_MEMORY, "another subject");
  gpu.synchronize(stream);
  differs.release();
  if (horo_rank() == 0) std::printf("%s\n", message.c_str());
  return 0;
}

horo_tensor declare_sum(const char* name, std::int64_t count) {
  horo_tensor_desc like = HORO_TENSOR_DESC_INIT;
  like.name = name;
  like.ndim = 1;
  like.shape = &count;
  like.memory = HORO_MEMORY_DEVICE;
  horo_tensor tensor = 0;
  check(horo_declare(&like, &tensor), "horo_declare");
  return tensor;
}

/// In place, as memory of the device.
horo_submission in_place(const Gpu& gpu, horo_tensor tensor, void* memory, void* stream) {
  horo_submission given = HORO_SUBMISSION_INIT;
  given.tensor = tensor;
  given.in = given.out = memory;
  given.memory = HORO_MEMORY_DEVICE;
  given.device = gpu.device();
  given.stream = stream;
  return given;
}

/// A sum in device memory in which rank 0 takes part without data.
void sum_of_the_others(const Gpu& gpu) {
  auto* const stream = gpu.stream();
  const auto tensor = declare_sum("partial", 1000);
  const std::vector<float> ones(1000, 1.0F);
  std::vector<std::uint8_t> bytes(4000);
  std::copy_n(reinterpret_cast<const std::uint8_t*>(ones.data()), bytes.size(), bytes.begin());
  void* const memory = gpu.allocate(bytes.size());
  gpu.put(memory, bytes, stream);
  const auto given = in_place(gpu, tensor, memory, stream);
  horo_op sum = 0;
  check(horo_submit_with(&given, &sum), "horo_submit_with");
  check(horo_wait(sum, -1), "horo_wait");
  const auto got = gpu.fetch(memory, bytes.size(), stream);
  require(reinterpret_cast<const float*>(got.data())[999] == static_cast<float>(horo_size() - 1),
          "the joined rank has changed the sum");
}

/// Managed memory is summed as memory of the device. Host memory is refused by its kind, with the
/// way out.
int memory_kinds(const Gpu& gpu, char** /*arguments*/) {
  constexpr std::size_t kCount = 300'000;
  auto* const stream = gpu.stream();
  const auto tensor = declare_sum("managed", kCount);
  horo_op op = 0;
  std::vector<float> ordinary(kCount);
  const auto refuse = [&](void* memory, const std::string& kind) {
    const auto given = in_place(gpu, tensor, memory, stream);
    require(horo_submit_with(&given, &op) == HORO_INVALID_ARGUMENT, kind + " is not refused");
    const std::string message = horo_last_error();
    require(message.find(" is " + kind + ", not memory of device") != std::string::npos &&
                message.find("HORO_MEMORY_HOST") != std::string::npos,
            message);
  };
  refuse(ordinary.data(), "host memory");
  refuse(gpu.allocate_pinned(kCount * sizeof(float)), "pinned host memory");
  auto* const managed = static_cast<float*>(gpu.allocate_managed(kCount * sizeof(float)));
  std::fill_n(managed, kCount, 1.0F);
  const auto summed = in_place(gpu, tensor, managed, stream);
  check(horo_submit_with(&summed, &op), "horo_submit_with");
  check(horo_wait(op, -1), "horo_wait");
  require(managed[0] == static_cast<float>(horo_size()) && managed[kCount - 1] == managed[0],
          "another sum in managed memory");
  require(gpu.findings().empty(), gpu.findings());
  return 0;
}

/// Rank 0 has joined: without any tensor in device memory, or after the first with `arguments[0]`
/// "later".
int joins(const Gpu& gpu, char** arguments) {
  const std::vector<DrawnSet> sets = {set_of(HORO_WORLD)};
  const DrawnOp before{.number = 1, .rows = 1000};
  if (std::string(arguments[0]) == "later")
    RunningOp(gpu, before, sets[0], gpu.stream(), "before").finish(true);
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.kind = HORO_JOIN;
  horo_tensor join = 0;
  horo_op joined = 0;
  if (horo_rank() != 0) sum_of_the_others(gpu);
  check(horo_declare(&desc, &join), "horo_declare");
  check(horo_submit(join, nullptr, nullptr, &joined), "horo_submit");
  check(horo_await(joined, -1), "horo_await");
  check(horo_release(joined), "horo_release");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string, int (*)(const Gpu&, char**)> scenarios = {
      {"seeds", seeds},
      {"fault", fault},
      {"breaks", breaks},
      {"busy", busy},
      {"loss", loss},
      {"mixed", mixed},
      {"joins", joins},
      {"overlap", overlap},
      {"misuse", misuse},
      {"swaps", swaps},
      {"unusable", unusable},
      {"other_version", other_version},
      {"elastic", elastic},
      {"adasum", adasum},
      {"hangs", hangs},
      {"either", either},
      {"times", horo::tests::times},
      {"untimed", horo::tests::untimed},
      {"two_devices", horo::tests::two_devices},
      {"second_device", horo::tests::second_device},
      {"memory_kinds", memory_kinds},
      {"busy_loss", busy_loss}};
  require(count >= 2, "usage: gpu_rank SCENARIO ARGUMENTS");
  const char* const driver = std::getenv("HORO_GPU_DRIVER");
  require(driver != nullptr, "HORO_GPU_DRIVER is not set");
  check(horo_init(), "horo_init");
  const Gpu gpu(driver, devices().empty() ? 0 : horo_local_rank());
  const int code = scenarios.at(arguments[1])(gpu, arguments + 2);
  if (horo_rank() == 0) std::printf("all is well\n");
  check(horo_shutdown(), "horo_shutdown");
  return code;
}
