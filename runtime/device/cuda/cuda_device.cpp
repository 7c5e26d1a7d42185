// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/cuda_device.hpp"

#include "runtime/device/driver/driver_device.hpp"

namespace horo::runtime {

Result<const cuda::DeviceApi*> machine_api() {
  HORO_TRY(const auto* driver, cuda::load_driver(cuda::kAutomatic));
  return driver->api;
}

Result<std::unique_ptr<Device>> open_machine_device(int index) {
  HORO_TRY(const auto* driver, cuda::load_driver(cuda::kAutomatic));
  return open_driver_device(*driver, index);
}

Status enter_machine_device(int index) {
  HORO_TRY(const auto* driver, cuda::load_driver(cuda::kAutomatic));
  int handle = 0;
  cuda::Context context = nullptr;
  HORO_TRY_STATUS(driver->status(driver->device_get(&handle, index), driver->names().device_get));
  HORO_TRY_STATUS(driver->status(driver->retain_primary_context(&context, handle),
                                 driver->names().retain_primary_context));
  return driver->status(driver->push_context(context), driver->names().push_context);
}

}  // namespace horo::runtime
