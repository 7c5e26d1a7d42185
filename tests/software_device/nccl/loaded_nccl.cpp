// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/nccl/loaded_nccl.hpp"

#include <dlfcn.h>
#include <exception>
#include <thread>
#include <type_traits>

#include <catch2/catch.hpp>

namespace horo::tests {

std::string SoftwareNccl::path() {
  return HORO_TEST_SOFTWARE_NCCL;
}

SoftwareNccl::SoftwareNccl(const std::string& plan) {
  void* const library = dlopen(HORO_TEST_SOFTWARE_NCCL, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    REQUIRE(function != nullptr);
  };
  find(get_version, "ncclGetVersion");
  find(get_unique_id, "ncclGetUniqueId");
  find(init, "ncclCommInitRank");
  find(init_with_config, "ncclCommInitRankConfig");
  find(abort, "ncclCommAbort");
  find(destroy, "ncclCommDestroy");
  find(async_error, "ncclCommGetAsyncError");
  find(group_start, "ncclGroupStart");
  find(group_end, "ncclGroupEnd");
  find(all_reduce, "ncclAllReduce");
  find(reduce, "ncclReduce");
  find(broadcast, "ncclBroadcast");
  find(all_gather, "ncclAllGather");
  find(reduce_scatter, "ncclReduceScatter");
  find(send, "ncclSend");
  find(receive, "ncclRecv");
  find(plan_, "horo_software_nccl_plan");
  find(findings_, "horo_software_nccl_findings");
  this->plan(plan);
}

void SoftwareNccl::plan(const std::string& text) const {
  REQUIRE(plan_(text.c_str()) == 0);
}

std::string SoftwareNccl::findings() const {
  std::string text(findings_(nullptr, 0) * 600 + 1, '\0');
  findings_(text.data(), text.size());
  return text.c_str();
}

NcclRank::NcclRank(const SoftwareDevice& software, int own_rank, int index)
    : rank(own_rank), device(software.open(index)), driver_(software.driver()) {
  runtime::cuda::Context context = nullptr;
  HORO_CHECK(driver_.device_get(&handle_, index) == 0);
  HORO_CHECK(driver_.retain_primary_context(&context, handle_) == 0);
  HORO_CHECK(driver_.push_context(context) == 0);
  stream = *device->make_stream();
}

NcclRank::~NcclRank() {
  device->destroy_stream(stream);
  runtime::cuda::Context own = nullptr;
  static_cast<void>(driver_.pop_context(&own));
  static_cast<void>(driver_.release_primary_context(handle_));
}

void* NcclRank::allocate(std::size_t bytes) {
  return *device->allocate(bytes);
}

bool NcclRank::idle() {
  const auto event = *device->make_event();
  HORO_CHECK(device->record(event, stream).has_value());
  const auto done = device->done(event);
  device->destroy_event(event);
  return done && *done;
}

void NcclRank::drain() {
  const auto event = device->make_event();
  if (!event) return;  // A broken device runs nothing any more.
  static_cast<void>(device->record(*event, stream));
  for (auto done = device->done(*event); done && !*done; done = device->done(*event))
    std::this_thread::yield();
  device->destroy_event(*event);
}

void run_ranks(const SoftwareDevice& software, const SoftwareNccl& nccl, int ranks,
               const std::function<void(NcclRank&)>& body) {
  NcclId id;
  REQUIRE(nccl.get_unique_id(&id) == 0);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        NcclRank own(software, r, r);
        HORO_CHECK(nccl.init(&own.comm, ranks, id, r) == 0);
        body(own);
        if (own.comm != nullptr) nccl.destroy(own.comm);
      } catch (...) {
        failures[static_cast<std::size_t>(r)] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
}

}  // namespace horo::tests
