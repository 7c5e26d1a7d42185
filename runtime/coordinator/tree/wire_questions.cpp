// SPDX-License-Identifier: Apache-2.0
#include "runtime/coordinator/tree/wire_questions.hpp"

namespace horo::runtime::tree {

namespace {

enum Flags : std::uint8_t { kUnderWay = 1, kEnds = 2, kKnownFlags = 3 };

std::uint32_t take_u32(Reader& reader) {
  return static_cast<std::uint32_t>(reader.varint(0xffffffffU));
}

}  // namespace

void put(Writer& writer, const Question& question) {
  writer.varint(question.set.value())
      .varint(question.number)
      .varint(question.least_ms)
      .varint(question.patience_ms)
      .fixed(static_cast<std::uint8_t>((question.under_way ? kUnderWay : 0) |
                                       (question.ends ? kEnds : 0)))
      .varint(question.more)
      .varint(question.names.size());
  for (const auto& name : question.names) writer.text(name);
}

Question take_question(Reader& reader) {
  Question question;
  question.set = take_set(reader);
  question.number = take_u32(reader);
  question.least_ms = take_u32(reader);
  question.patience_ms = take_u32(reader);
  const auto flags = reader.fixed<std::uint8_t>();
  if (flags > kKnownFlags) reader.refuse();
  question.under_way = (flags & kUnderWay) != 0;
  question.ends = (flags & kEnds) != 0;
  question.more = take_u32(reader);
  const auto count = reader.varint(kMostAsked);
  if (count == 0) reader.refuse();
  for (std::uint64_t i = 0; i < count && reader.good(); ++i)
    question.names.push_back(reader.text(kMostNameBytes));
  return question;
}

void put(Writer& writer, const Answer& answer) {
  writer.varint(answer.set.value()).varint(answer.number).varint(answer.lacking.size());
  for (const auto& lacking : answer.lacking) {
    writer.varint(lacking.waited_ms);
    put(writer, lacking.missing);
    put(writer, lacking.undeclared);
    writer.text(lacking.group);
  }
  writer.varint(answer.verdicts.size());
  for (const auto& verdict : answer.verdicts) {
    writer.varint(static_cast<std::uint64_t>(verdict.rank.value()))
        .text(std::string_view(verdict.host).substr(0, kMostHostName))
        .text(std::string_view(verdict.text).substr(0, kMostVerdictBytes));
  }
}

Answer take_answer(Reader& reader) {
  Answer answer;
  answer.set = take_set(reader);
  answer.number = take_u32(reader);
  const auto count = reader.varint(kMostAsked);
  for (std::uint64_t i = 0; i < count && reader.good(); ++i) {
    Lacking lacking{.waited_ms = take_u32(reader)};
    lacking.missing = take_ranks(reader);
    lacking.undeclared = take_ranks(reader);
    lacking.group = reader.text(kMostNameBytes);
    answer.lacking.push_back(std::move(lacking));
  }
  const auto verdicts = reader.varint(kMostVerdicts);
  for (std::uint64_t i = 0; i < verdicts && reader.good(); ++i) {
    Verdict verdict;
    verdict.rank = Rank{static_cast<int>(reader.varint(kMostRanks - 1))};
    verdict.host = reader.text(kMostHostName);
    verdict.text = reader.text(kMostVerdictBytes);
    if (!answer.verdicts.empty() && answer.verdicts.back().rank >= verdict.rank) reader.refuse();
    answer.verdicts.push_back(std::move(verdict));
  }
  return answer;
}

}  // namespace horo::runtime::tree
