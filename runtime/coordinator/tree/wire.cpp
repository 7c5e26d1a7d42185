// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/tree/wire.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "runtime/coordinator/tree/ids.hpp"
#include "runtime/coordinator/tree/wire_questions.hpp"

// GCC 12 takes a variant's unused alternatives for uninitialised when it inlines its move.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace horo::runtime::tree {

namespace {

// -- Signatures ---------------------------------------------------------------------------------

enum Flags : std::uint8_t { kScaled = 1, kRooted = 2, kDeep = 4, kKnownFlags = 7 };

void put(Writer& writer, const Signature& s) {
  const auto shown = static_cast<std::size_t>(std::min<int>(s.ndim, Signature::kDims));
  const bool scaled = s.prescale != 1 || s.postscale != 1;
  const bool deep = s.ndim > Signature::kDims;
  writer.fixed(static_cast<std::uint8_t>(s.kind))
      .fixed(static_cast<std::uint8_t>(s.op))
      .fixed(static_cast<std::uint8_t>(s.dtype))
      .fixed(s.ndim)
      .fixed(static_cast<std::uint8_t>((scaled ? kScaled : 0) | (s.root != 0 ? kRooted : 0) |
                                       (deep ? kDeep : 0)));
  if (scaled) writer.real(s.prescale).real(s.postscale);
  if (s.root != 0) writer.fixed(static_cast<std::uint32_t>(s.root));
  for (std::size_t i = 0; i < shown; ++i) writer.varint(static_cast<std::uint64_t>(s.extents[i]));
  if (deep) writer.varint(s.elements).varint(s.row_elements);
  writer.fixed(s.extents_hash);
}

Signature take_signature(Reader& reader) {
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 56U;
  Signature s;
  s.kind = static_cast<Kind>(reader.fixed<std::uint8_t>());
  const auto op = reader.fixed<std::uint8_t>();
  const auto dtype = reader.fixed<std::uint8_t>();
  s.ndim = reader.fixed<std::uint8_t>();
  const auto flags = reader.fixed<std::uint8_t>();
  if (name(s.kind) == "unknown" || !is_reduce_op(op) || !is_dtype(dtype) || flags > kKnownFlags ||
      ((flags & kDeep) != 0) != (s.ndim > Signature::kDims)) {
    reader.refuse();
    return {};
  }
  s.op = static_cast<ReduceOp>(op);
  s.dtype = static_cast<DType>(dtype);
  if ((flags & kScaled) != 0) {
    s.prescale = reader.real();
    s.postscale = reader.real();
    if (s.prescale == 1 && s.postscale == 1) reader.refuse();
  }
  if ((flags & kRooted) != 0) {
    s.root = static_cast<std::int32_t>(reader.fixed<std::uint32_t>());
    if (s.root == 0) reader.refuse();
  }
  for (int i = 0; i < std::min<int>(s.ndim, Signature::kDims); ++i) {
    const auto extent = reader.varint(std::uint64_t{1} << 62U);
    s.extents[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(extent);
    if (extent != 0 && std::max(s.elements, s.row_elements) > kMostElements / extent)
      reader.refuse();
    s.elements *= extent;
    if (i > 0) s.row_elements *= extent;
  }
  if ((flags & kDeep) != 0) {
    s.elements = reader.varint(kMostElements);
    s.row_elements = reader.varint(kMostElements);
  }
  s.extents_hash = reader.fixed<std::uint64_t>();
  return s;
}

// -- Parts --------------------------------------------------------------------------------------

void put(Writer& writer, const Declaration& declaration) {
  if (declaration.number != kNoNumber) {
    writer.text("").varint(declaration.number);
  } else {
    writer.text(declaration.name).fixed(static_cast<std::uint8_t>(declaration.again ? 1 : 0));
  }
  writer.varint(declaration.variants.size());
  for (const auto& [signature, ranks] : declaration.variants) {
    writer.fixed(static_cast<std::uint8_t>(signature ? 1 : 0));
    if (signature) put(writer, *signature);
    put(writer, ranks);
  }
}

Declaration take_declaration(Reader& reader) {
  Declaration declaration{.name = reader.text(kMostNameBytes), .variants = {}};
  if (declaration.name.empty()) {
    declaration.number = static_cast<std::uint32_t>(reader.varint(kNoNumber - 1));
  } else {
    const auto again = reader.fixed<std::uint8_t>();
    if (again > 1) reader.refuse();
    declaration.again = again == 1;
  }
  const auto count = reader.count(3);
  for (std::size_t i = 0; i < count && reader.good(); ++i) {
    std::optional<Signature> signature;
    const auto has_signature = reader.fixed<std::uint8_t>();
    if (has_signature > 1) reader.refuse();
    if (has_signature == 1) signature = take_signature(reader);
    auto ranks = take_ranks(reader);
    auto& variants = declaration.variants;
    if (ranks.empty() ||
        (!variants.empty() && !variants.key_comp()(variants.rbegin()->first, signature)))
      reader.refuse();
    variants.emplace_hint(variants.end(), signature, std::move(ranks));
  }
  if (declaration.variants.empty()) reader.refuse();
  return declaration;
}

void put_rows(Writer& writer, const std::vector<std::uint64_t>& rows) {
  // Runs of equal counts: most ranks have the same.
  std::size_t runs = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) runs += i == 0 || rows[i] != rows[i - 1] ? 1 : 0;
  writer.varint(runs);
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i;
    while (end < rows.size() && rows[end] == rows[i]) ++end;
    writer.varint(end - i).varint(rows[i]);
    i = end;
  }
}

std::vector<std::uint64_t> take_rows(Reader& reader) {
  constexpr std::uint64_t kMostRows = std::uint64_t{1} << 24U;  // Of one entry.
  std::vector<std::uint64_t> rows;
  const auto runs = reader.count(2);
  for (std::size_t i = 0; i < runs && reader.good(); ++i) {
    const auto length = reader.varint(kMostRows);
    const auto value = reader.varint();
    if (length == 0 || rows.size() + length > kMostRows || (!rows.empty() && rows.back() == value))
      reader.refuse();
    if (reader.good()) rows.insert(rows.end(), static_cast<std::size_t>(length), value);
  }
  return rows;
}

void put(Writer& writer, const LogEntry& entry) {
  writer.varint(entry.set.value())
      .varint(entry.sequence)
      .fixed(static_cast<std::uint8_t>(entry.kind))
      .varint(entry.definitions.size());
  for (const auto& definition : entry.definitions) {
    writer.varint(definition.id).text(definition.name);
    put(writer, definition.signature);
  }
  put_ids(writer, entry.ids);
  switch (entry.kind) {
    case LogKind::work:
      put_rows(writer, entry.rows);
      break;
    case LogKind::mismatch:
      writer.text(entry.text);
      break;
    case LogKind::join:
    case LogKind::left:
      put(writer, entry.ranks);
      break;
  }
}

LogEntry take_entry(Reader& reader) {
  LogEntry entry;
  entry.set = take_set(reader);
  entry.sequence = reader.varint();
  entry.kind = static_cast<LogKind>(reader.fixed<std::uint8_t>());
  const auto count = reader.count(7);
  for (std::size_t i = 0; i < count && reader.good(); ++i) {
    Definition definition;
    definition.id = static_cast<std::uint32_t>(reader.varint(kNoNumber - 1));
    definition.name = reader.text(kMostNameBytes);
    definition.signature = take_signature(reader);
    if (definition.name.empty()) reader.refuse();
    entry.definitions.push_back(std::move(definition));
  }
  entry.ids = take_ids(reader);
  const bool about_tensors = entry.kind == LogKind::work || entry.kind == LogKind::mismatch;
  if (about_tensors == entry.ids.empty()) reader.refuse();
  switch (entry.kind) {
    case LogKind::work:
      entry.rows = take_rows(reader);
      if (!entry.ids.empty() && entry.rows.size() % entry.ids.size() != 0) reader.refuse();
      break;
    case LogKind::mismatch:
      entry.text = reader.text(kMostTextBytes);
      break;
    case LogKind::join:
    case LogKind::left:
      entry.ranks = take_ranks(reader);
      if (entry.ranks.empty()) reader.refuse();
      break;
    default:
      reader.refuse();
  }
  return entry;
}

Loss take_loss(Reader& reader) {
  Loss loss;
  loss.rank = Rank{static_cast<int>(reader.varint(kMostRanks)) - 1};
  const auto cause = reader.fixed<std::uint8_t>();
  if (cause == 0 || cause > static_cast<std::uint8_t>(kLastLossCause)) reader.refuse();
  loss.cause = static_cast<LossCause>(cause);
  loss.detail = reader.fixed<std::uint32_t>();
  loss.host = reader.text(kMostHostName);
  loss.text = reader.text(kMostTextBytes);
  return loss;
}

// -- Frames -------------------------------------------------------------------------------------

/// Numbers of the frames' types: positions in Frame, from 1.
struct Encoder {
  Writer& writer;

  void operator()(const Hello& hello) const { writer.varint(hello.host).fixed(hello.fingerprint); }

  void operator()(const Heartbeat& /*unused*/) const {}

  void operator()(const Declare& declare) const {
    writer.varint(declare.set.value()).varint(declare.tensors.size());
    for (const auto& tensor : declare.tensors) put(writer, tensor);
  }

  void operator()(const Ready& ready) const {
    writer.varint(ready.set.value());
    put_ids(writer, ready.ids);
  }

  void operator()(const Joined& joined) const {
    writer.varint(joined.set.value());
    put(writer, joined.ranks);
  }

  void operator()(const Leave& leave) const {
    writer.varint(leave.set.value());
    put(writer, leave.ranks);
  }

  void operator()(const Done& done) const { writer.varint(done.set.value()).varint(done.entries); }

  void operator()(const LogEntry& entry) const { put(writer, entry); }

  void operator()(const Loss& loss) const {
    writer.varint(static_cast<std::uint64_t>(loss.rank.value() + 1))
        .fixed(static_cast<std::uint8_t>(loss.cause))
        .fixed(loss.detail)
        .text(std::string_view(loss.host).substr(0, kMostHostName))
        .text(std::string_view(loss.text).substr(0, kMostTextBytes));
  }

  void operator()(const Bye& /*unused*/) const {}

  void operator()(const Question& question) const { put(writer, question); }

  void operator()(const Answer& answer) const { put(writer, answer); }
};

Declare take_declare(Reader& reader) {
  Declare declare{.set = take_set(reader), .tensors = {}};
  const auto count = reader.count(6);
  for (std::size_t i = 0; i < count && reader.good(); ++i)
    declare.tensors.push_back(take_declaration(reader));
  if (declare.tensors.empty()) reader.refuse();
  return declare;
}

RankRanges take_some_ranks(Reader& reader) {
  auto ranks = take_ranks(reader);
  if (ranks.empty()) reader.refuse();
  return ranks;
}

std::optional<Frame> take_frame(std::uint8_t type, Reader& reader) {
  switch (type) {
    case 1: {
      const auto host = static_cast<std::uint32_t>(reader.varint(0xffffffffU));
      return Hello{.host = host, .fingerprint = reader.fixed<std::uint64_t>()};
    }
    case 2:
      return Heartbeat{};
    case 3:
      return take_declare(reader);
    case 4: {
      Ready ready{.set = take_set(reader), .ids = take_ids(reader)};
      if (ready.ids.empty()) reader.refuse();
      return ready;
    }
    case 5: {
      const auto set = take_set(reader);
      return Joined{.set = set, .ranks = take_some_ranks(reader)};
    }
    case 6: {
      const auto set = take_set(reader);
      return Leave{.set = set, .ranks = take_some_ranks(reader)};
    }
    case 7: {
      const auto set = take_set(reader);
      return Done{.set = set, .entries = reader.varint()};
    }
    case 8:
      return take_entry(reader);
    case 9:
      return take_loss(reader);
    case 10:
      return Bye{};
    case 11:
      return take_question(reader);
    case 12:
      return take_answer(reader);
    default:
      return std::nullopt;
  }
}

}  // namespace

bool SignatureOrder::operator()(const std::optional<Signature>& a,
                                const std::optional<Signature>& b) const {
  if (!a || !b) return !a && b;
  const auto fields = [](const Signature& s) {
    return std::tuple(
        s.kind, s.dtype, s.op, s.ndim, s.root, std::bit_cast<std::uint64_t>(s.prescale),
        std::bit_cast<std::uint64_t>(s.postscale), s.elements, s.extents_hash, s.extents);
  };
  return fields(*a) < fields(*b);
}

std::string encode(Epoch epoch, const Frame& frame) {
  Writer writer;
  writer.fixed(static_cast<std::uint8_t>(frame.index() + 1)).varint(epoch.value());
  std::visit(Encoder{writer}, frame);
  return writer.take();
}

Result<Envelope> decode(BytesView payload) {
  if (payload.size() > kMostPayload) {
    return fail(Errc::protocol, "a frame of {} bytes; at most {} are allowed", payload.size(),
                kMostPayload);
  }
  Reader reader(payload);
  const auto type = reader.fixed<std::uint8_t>();
  const Epoch epoch{reader.varint()};
  auto frame = take_frame(type, reader);
  if (!frame || !reader.finished()) {
    return fail(Errc::protocol, "a frame of {} bytes that makes no sense (type {})", payload.size(),
                type);
  }
  return Envelope{.epoch = epoch, .frame = std::move(*frame)};
}

}  // namespace horo::runtime::tree
