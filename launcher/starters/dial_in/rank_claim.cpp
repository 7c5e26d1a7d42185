// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/rank_claim.hpp"

#include <array>
#include <charconv>
#include <optional>

namespace horo::launcher {

namespace {

using Lookup = std::function<const char*(const char*)>;

constexpr std::size_t kNumberBytes = 16;  ///< Four numbers of four bytes each, little endian.

struct VariableNames {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

/// The first row whose rank and size are set counts.
constexpr std::array kNames{
    VariableNames{"HORO_DIAL_IN_RANK", "HORO_DIAL_IN_SIZE", "HORO_DIAL_IN_LOCAL_RANK",
                  "HORO_DIAL_IN_LOCAL_SIZE"},
    VariableNames{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                  "OMPI_COMM_WORLD_LOCAL_SIZE"},
    // Before PMI's: jsrun starts ranks of Spectrum MPI, which may set PMI's variables too.
    VariableNames{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
                  "JSM_NAMESPACE_LOCAL_SIZE"},
    VariableNames{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

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

}  // namespace

std::string encode(const RankClaim& claim) {
  std::string bytes;
  for (const int number : {claim.rank, claim.size, claim.local_rank, claim.local_size})
    put(bytes, number);
  return bytes + claim.host;
}

Result<RankClaim> decode_claim(std::string_view bytes) {
  if (bytes.size() < kNumberBytes)
    return fail(Errc::protocol, "a rank's claim has {} bytes, at least {} are needed", bytes.size(),
                kNumberBytes);
  RankClaim claim{.rank = get(bytes, 0),
                  .size = get(bytes, 1),
                  .local_rank = get(bytes, 2),
                  .local_size = get(bytes, 3),
                  .host = std::string(bytes.substr(kNumberBytes))};
  if (claim.rank < 0 || claim.rank >= claim.size || claim.host.find('\0') != std::string::npos)
    return fail(Errc::protocol, "an agent claims to own rank {} of {}", claim.rank, claim.size);
  return claim;
}

Result<RankClaim> read_rank_claim(const Lookup& lookup) {
  for (const auto& names : kNames) {
    HORO_TRY(const auto rank, number_of(lookup, names.rank));
    HORO_TRY(const auto size, number_of(lookup, names.size));
    if (!rank || !size) continue;
    HORO_TRY(const auto local_rank, number_of(lookup, names.local_rank));
    HORO_TRY(const auto local_size, number_of(lookup, names.local_size));
    return RankClaim{.rank = *rank,
                     .size = *size,
                     .local_rank = local_rank.value_or(-1),
                     .local_size = local_size.value_or(-1),
                     .host = {}};
  }
  return fail(Errc::not_found,
              "none of HORO_DIAL_IN_RANK, OMPI_COMM_WORLD_RANK, JSM_NAMESPACE_RANK and PMI_RANK is "
              "set, so this agent does not know its rank; start it with mpirun or jsrun, or set "
              "HORO_DIAL_IN_RANK and HORO_DIAL_IN_SIZE");
}

}  // namespace horo::launcher
