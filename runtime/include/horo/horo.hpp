// SPDX-License-Identifier: Apache-2.0
/// The C++20 interface of libhoro: header-only RAII over horo.h, for trainings written in C++.
///
///   horo::Job job;                                       // joins the job that `horo run` started
///   horo::SharedBuffer<float> gradient(count);           // reduced in place by the host's ranks
///   auto reduce = horo::Tensor<float>::allreduce("grad.0", count);   // average over the ranks
///   horo::Op op = reduce.submit(gradient);               // returns at once: compute meanwhile
///   op.wait();                                           // gradient holds the average
///
/// Counts are elements, not bytes. Functions that fail throw horo::Error, whose what() names
/// object, value and remedy. Destructors do not throw. Any thread may call any function, but only
/// one thread at a time may use one object. Do not include this header together with headers of
/// Horo's own source tree: they use the same names.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <horo/elastic.hpp>        // elastic_loop, agreed_change, pending_change
#include <horo/element.hpp>        // Element
#include <horo/error.hpp>          // Error, ErrorDetail
#include <horo/job.hpp>            // Job, Gathered
#include <horo/op.hpp>             // Op, wait_all, submit_all
#include <horo/process_set.hpp>    // ProcessSet, Where
#include <horo/shared_buffer.hpp>  // SharedBuffer
#include <horo/tensor.hpp>         // Tensor, Reduction, ReduceOp
