// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/cuda_device.hpp"

#include <algorithm>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "runtime/device/cuda/copy_kernels.hpp"

namespace horo::runtime {

namespace {

Status cuda_status(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());  // Else the next launch reports it again.
  const auto kind = code == cudaErrorMemoryAllocation ? Errc::out_of_memory : Errc::io;
  return fail(kind, "{}: {}", call, cudaGetErrorString(code));
}

cudaStream_t as_stream(StreamHandle stream) {
  return static_cast<cudaStream_t>(stream);
}

cudaEvent_t as_event(EventHandle event) {
  return static_cast<cudaEvent_t>(event);
}

class CudaDevice final : public Device, public Packer {
 public:
  explicit CudaDevice(int index) : index_(index) {}

  int index() const override { return index_; }

  Packer* packer() override { return this; }

  Result<void*> allocate(std::uint64_t bytes) override {
    HORO_TRY_STATUS(enter());
    void* memory = nullptr;
    HORO_TRY_STATUS(cuda_status(cudaMalloc(&memory, bytes), "cudaMalloc"));
    return memory;
  }

  Result<void*> allocate_host(std::uint64_t bytes) override {
    HORO_TRY_STATUS(enter());
    void* memory = nullptr;
    HORO_TRY_STATUS(cuda_status(cudaMallocHost(&memory, bytes), "cudaMallocHost"));
    return memory;
  }

  void free(void* memory) override { cudaFree(memory); }

  void free_host(void* memory) override { cudaFreeHost(memory); }

  Result<StreamHandle> make_stream() override {
    HORO_TRY_STATUS(enter());
    cudaStream_t stream = nullptr;
    // Work of the legacy default stream is no reason to wait.
    HORO_TRY_STATUS(cuda_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                "cudaStreamCreateWithFlags"));
    return static_cast<StreamHandle>(stream);
  }

  void destroy_stream(StreamHandle stream) override { cudaStreamDestroy(as_stream(stream)); }

  Result<EventHandle> make_event() override {
    HORO_TRY_STATUS(enter());
    cudaEvent_t event = nullptr;
    HORO_TRY_STATUS(cuda_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                "cudaEventCreateWithFlags"));
    return static_cast<EventHandle>(event);
  }

  void destroy_event(EventHandle event) override { cudaEventDestroy(as_event(event)); }

  Result<bool> is_capturing(StreamHandle stream) override {
    auto status = cudaStreamCaptureStatusNone;
    HORO_TRY_STATUS(
        cuda_status(cudaStreamIsCapturing(as_stream(stream), &status), "cudaStreamIsCapturing"));
    return status != cudaStreamCaptureStatusNone;
  }

  Status record(EventHandle event, StreamHandle stream) override {
    return cuda_status(cudaEventRecord(as_event(event), as_stream(stream)), "cudaEventRecord");
  }

  Status wait(StreamHandle stream, EventHandle event) override {
    return cuda_status(cudaStreamWaitEvent(as_stream(stream), as_event(event), 0),
                       "cudaStreamWaitEvent");
  }

  Result<bool> done(EventHandle event) override {
    const auto code = cudaEventQuery(as_event(event));
    if (code == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    HORO_TRY_STATUS(cuda_status(code, "cudaEventQuery"));
    return true;
  }

  Status copy(void* to, const void* from, std::uint64_t bytes, StreamHandle stream) override {
    return cuda_status(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, as_stream(stream)),
                       "cudaMemcpyAsync");
  }

  Status pack(void* buffer, std::span<const DeviceSpan> parts, const Conversion& how,
              StreamHandle stream) override {
    return run(parts, buffer, CopyWay::into_buffer, how, stream);
  }

  Status unpack(std::span<const DeviceSpan> parts, const void* buffer, const Conversion& how,
                StreamHandle stream) override {
    return run(parts, const_cast<void*>(buffer), CopyWay::out_of_buffer, how, stream);
  }

 private:
  /// The current device belongs to the calling thread.
  Status enter() const { return cuda_status(cudaSetDevice(index_), "cudaSetDevice"); }

  Status run(std::span<const DeviceSpan> parts, void* buffer, CopyWay way, const Conversion& how,
             StreamHandle stream) {
    HORO_TRY_STATUS(enter());
    std::uint64_t offset = 0;
    for (std::size_t next = 0; next < parts.size();) {
      CopyTable table{};
      for (; next < parts.size() && table.count < CopyTable::kMost; ++next) {
        const auto& part = parts[next];
        if (part.elements == 0) continue;
        const auto row = table.count++;
        table.memory[row] = part.memory;
        table.elements[row] = part.elements;
        table.offset[row] = offset;
        table.first_tile[row] = table.tiles;
        table.tiles +=
            static_cast<std::uint32_t>((part.elements + CopyTable::kTile - 1) / CopyTable::kTile);
        offset += part.elements;
      }
      if (table.count == 0) continue;
      if (!launch_copy(table, buffer, way, how.from, how.to, how.scale, stream)) {
        return fail(Errc::unsupported, "no kernel converts {} to {} with a factor of {}",
                    name(how.from), name(how.to), how.scale);
      }
      HORO_TRY_STATUS(cuda_status(cudaGetLastError(), "the copy kernel"));
    }
    return {};
  }

  const int index_;
};

}  // namespace

Status probe_cuda() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) {
    return fail(
        Errc::unavailable,
        "no CUDA driver: libcuda.so.1 is missing; it comes with NVIDIA's driver, where there "
        "is a GPU");
  }
  dlclose(driver);
  int count = 0;
  if (const auto code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return fail(Errc::unavailable, "CUDA cannot be used: {}", cudaGetErrorString(code));
  }
  if (count == 0) return fail(Errc::unavailable, "no CUDA device; is CUDA_VISIBLE_DEVICES empty");
  return {};
}

Result<std::unique_ptr<Device>> open_cuda_device(int index) {
  HORO_TRY_STATUS(probe_cuda());
  int count = 0;
  HORO_TRY_STATUS(cuda_status(cudaGetDeviceCount(&count), "cudaGetDeviceCount"));
  if (index < 0 || index >= count)
    return fail(Errc::not_found, "no CUDA device {}: this process sees {}", index, count);
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(index));
}

}  // namespace horo::runtime
