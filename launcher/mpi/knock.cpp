// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/knock.hpp"

#include <array>
#include <charconv>
#include <optional>

#include "base/kv/client.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kAttempt = 3s;  ///< An address that nobody answers at keeps us so long.

Result<kv::Secret> secret_from(std::string_view text) {
  kv::Secret secret{};
  if (text.size() == 2 * secret.size()) {
    bool good = true;
    for (std::size_t i = 0; i < secret.size() && good; ++i) {
      const char* begin = text.data() + 2 * i;
      const auto [end, error] = std::from_chars(begin, begin + 2, secret[i], 16);
      good = error == std::errc{} && end == begin + 2;
    }
    if (good) return secret;
  }
  return fail(Errc::invalid_argument, "{} is not 64 hexadecimal digits; horo run --mpi sets it",
              kDoorSecretVariable);
}

using Lookup = std::function<const char*(const char*)>;

Result<std::optional<int>> number_of(const Lookup& lookup, const char* variable) {
  const char* text = lookup(variable);
  if (text == nullptr || *text == '\0') return std::optional<int>{};
  const std::string_view view(text);
  int value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error == std::errc{} && end == view.data() + view.size() && value >= 0)
    return std::optional(value);
  return fail(Errc::invalid_argument, "{}='{}' must be a whole number from 0", variable, view);
}

struct Names {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr std::array kNames{
    Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE"},
    // Before PMI's: jsrun starts ranks of Spectrum MPI, and of nothing else.
    Names{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
          "JSM_NAMESPACE_LOCAL_SIZE"},
    Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

void put(std::string& to, int number) {
  const auto bits = static_cast<std::uint32_t>(number);
  for (unsigned i = 0; i < 4; ++i) to.push_back(static_cast<char>(bits >> (8U * i) & 0xffU));
}

int get(std::string_view from, std::size_t index) {
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 4; ++i)
    bits |= std::uint32_t{static_cast<unsigned char>(from[4 * index + i])} << (8U * i);
  return static_cast<int>(bits);
}

constexpr std::size_t kNumbers = 16;  ///< Bytes of the four numbers.

}  // namespace

kv::Secret door_key(const kv::Secret& secret) {
  return kv::derived_secret(secret, "agents", 0);
}

std::string encode(const MpiPlace& place) {
  std::string bytes;
  for (const int number : {place.rank, place.size, place.local_rank, place.local_size})
    put(bytes, number);
  return bytes + place.host;
}

Result<MpiPlace> decode_place(std::string_view bytes) {
  if (bytes.size() < kNumbers) return fail(Errc::protocol, "a place of {} bytes", bytes.size());
  MpiPlace place{.rank = get(bytes, 0),
                 .size = get(bytes, 1),
                 .local_rank = get(bytes, 2),
                 .local_size = get(bytes, 3),
                 .host = std::string(bytes.substr(kNumbers))};
  if (place.rank < 0 || place.rank >= place.size || place.host.find('\0') != std::string::npos)
    return fail(Errc::protocol, "rank {} of {}", place.rank, place.size);
  return place;
}

Result<UniqueFd> knock(const std::string& addresses, const std::string& secret,
                       const MpiPlace& place, Deadline deadline) {
  HORO_TRY(const auto known, secret_from(secret));
  const auto key = door_key(known);
  std::string tried;
  std::string_view rest = addresses;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto address = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto& clock = SteadyClock::instance();
    const auto limit = Deadline::in(clock, std::min(kAttempt, deadline.left(clock.now())));
    auto client = kv::Client::connect(address, key, limit);
    if (client) {
      HORO_TRY_STATUS(client->set("place", encode(place), deadline));
      return UniqueFd(std::move(*client).release());
    }
    tried += fmt::format("{}{}", tried.empty() ? "" : "; ", client.error().message);
  }
  return fail(Errc::unavailable, "rank {} on host '{}' cannot reach horo run: {}", place.rank,
              place.host, tried.empty() ? fmt::format("{} is empty", kDoorVariable) : tried);
}

Result<MpiPlace> read_mpi_place(const Lookup& lookup) {
  for (const auto& names : kNames) {
    HORO_TRY(const auto rank, number_of(lookup, names.rank));
    HORO_TRY(const auto size, number_of(lookup, names.size));
    if (!rank || !size) continue;
    HORO_TRY(const auto local_rank, number_of(lookup, names.local_rank));
    HORO_TRY(const auto local_size, number_of(lookup, names.local_size));
    return MpiPlace{.rank = *rank,
                    .size = *size,
                    .local_rank = local_rank.value_or(-1),
                    .local_size = local_size.value_or(-1),
                    .host = {}};
  }
  return fail(Errc::not_found,
              "neither OMPI_COMM_WORLD_RANK nor JSM_NAMESPACE_RANK nor PMI_RANK is set: no mpirun "
              "has started this process");
}

}  // namespace horo::launcher
