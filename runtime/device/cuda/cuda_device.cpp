// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/cuda_device.hpp"

#include "runtime/device/driver/driver_device.hpp"

namespace horo::runtime {

Status probe_cuda() {
  HORO_TRY([[maybe_unused]] const auto* driver, cuda::load_driver(cuda::kCuda.files.front()));
  return {};
}

Result<std::unique_ptr<Device>> open_cuda_device(int index) {
  HORO_TRY(const auto* driver, cuda::load_driver(cuda::kCuda.files.front()));
  return open_driver_device(*driver, index);
}

Status enter_cuda_device(int index) {
  HORO_TRY(const auto* driver, cuda::load_driver(cuda::kCuda.files.front()));
  int handle = 0;
  cuda::Context context = nullptr;
  HORO_TRY_STATUS(driver->status(driver->device_get(&handle, index), driver->names().device_get));
  HORO_TRY_STATUS(driver->status(driver->retain_primary_context(&context, handle),
                                 driver->names().retain_primary_context));
  return driver->status(driver->push_context(context), driver->names().push_context);
}

}  // namespace horo::runtime
