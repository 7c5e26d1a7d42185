// SPDX-License-Identifier: Apache-2.0
#include "runtime/simulator/cluster/fiber.hpp"

#include <sys/mman.h>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace horo::runtime::sim {

namespace {

// Pages that a fiber does not touch cost nothing.
constexpr std::size_t kStack = std::size_t{128} << 10U;

Fiber* running = nullptr;

std::vector<std::byte*> unused;  ///< Stacks of fibers that have ended.

std::byte* make_stack() {
  if (!unused.empty()) {
    auto* const stack = unused.back();
    unused.pop_back();
    return stack;
  }
  void* const memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  HORO_CHECK(memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(make_stack()) {
  HORO_CHECK(getcontext(&own_) == 0);
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = kStack;
  own_.uc_link = &resumer_;
  makecontext(&own_, &Fiber::enter, 0);
}

Fiber::~Fiber() {
  if (ended_) {
    unused.push_back(stack_);
  } else {
    munmap(stack_, kStack);
  }
}

void Fiber::enter() {
  running->body_();
  running->ended_ = true;
}

void Fiber::resume() {
  HORO_CHECK(running == nullptr && !ended_);
  running = this;
  swapcontext(&resumer_, &own_);
  running = nullptr;
}

Fiber* Fiber::current() {
  return running;
}

void Fiber::pause() {
  auto* const me = running;
  swapcontext(&me->own_, &me->resumer_);
}

}  // namespace horo::runtime::sim
