// SPDX-License-Identifier: Apache-2.0
// Requests from many ranks to one, the collector, through the job's store: so the collector needs
// no address. Each request has a number of its own, so that an attempt that was given up disturbs
// no later one. The collector replies when it has the requests of all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"

namespace horo::runtime::bootstrap {

/// A connection to a store that may not be there yet. Blocks. Fails: as kv::Client::connect;
/// cancelled.
Result<kv::Client> connect_in_time(const JobStore& store, const WaitLimit& limit);

/// Waits for the collector to open, sends a request with `text`, and waits for the reply. Blocks:
/// as long as the open collector collects, which may be longer than the limit; its reply names the
/// ranks that are missing. Fails: timed_out; cancelled; with the error of a collector that refuses.
Result<std::string> send_request(kv::Client& client, std::string_view topic, std::string_view text,
                                 const WaitLimit& limit);

/// Thread: owner.
class RequestCollector {
 public:
  explicit RequestCollector(std::string topic) : topic_(std::move(topic)) {}

  const std::string& topic() const { return topic_; }

  struct Request {
    std::int64_t number = 0;
    std::string text;
  };

  /// Before next(): from now on ranks send requests, and wait for replies until `deadline`.
  Status open(kv::Client& client, const Deadline& deadline);

  /// All ranks have got their replies. Those that come now belong to a later collection.
  void close(kv::Client& client);

  /// The next request. Blocks. Fails: timed_out, cancelled.
  Result<Request> next(kv::Client& client, const WaitLimit& limit);

  Status reply(kv::Client& client, const Request& request, std::string_view text,
               const Deadline& deadline);

  /// Replies with `error` to all `requests`. Blocks: at most a second, until they have been read.
  void refuse(kv::Client& client, const std::vector<Request>& requests, const Error& error);

 private:
  const std::string topic_;
  std::int64_t taken_ = 0;
};

}  // namespace horo::runtime::bootstrap
