// SPDX-License-Identifier: Apache-2.0
#include "base/cli/arguments.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "base/knobs/nearest.hpp"

namespace horo::cli {

namespace {

/// A flag and one of its names.
struct Name {
  const Flag* flag = nullptr;
  std::string text;
};

/// Calls `visit(flag, name)` for every long spelling of every flag.
template <typename Visit>
void each_name(const CommandRow& command, Visit visit) {
  for (const auto& flag : command.flags) {
    visit(flag, flag.name);
    for (const auto& other : flag.also) visit(flag, other);
    if (!flag.negatable) continue;
    visit(flag, "no-" + flag.name);
    for (const auto& other : flag.also) visit(flag, "no-" + other);
  }
}

std::optional<Name> find_exact(const CommandRow& command, std::string_view word) {
  std::optional<Name> found;
  each_name(command, [&](const Flag& flag, const std::string& name) {
    if (name == word) found = Name{&flag, name};
  });
  return found;
}

const Flag* find_letter(const CommandRow& command, char letter) {
  const auto found = std::find_if(command.flags.begin(), command.flags.end(),
                                  [letter](const Flag& flag) { return flag.letter == letter; });
  return found == command.flags.end() ? nullptr : &*found;
}

/// An option of another launcher, and what to write instead.
struct Foreign {
  std::string_view name;  ///< With "-" for "_".
  std::string_view instead;
};

constexpr std::array kForeign{
    Foreign{"nproc-per-node", "torchrun's; write '-np N', or '--ranks-per-host N' with hosts"},
    Foreign{"nnodes", "torchrun's; name the hosts with '-H' or '--hostfile'"},
    Foreign{"node-rank", "torchrun's; one 'horo run' starts the ranks of all hosts"},
    Foreign{"rdzv-backend", "torchrun's; horo needs no rendezvous of the user's"},
    Foreign{"rdzv-endpoint", "torchrun's; horo needs no rendezvous of the user's"},
    Foreign{"rdzv-id", "torchrun's; horo needs no rendezvous of the user's"},
    Foreign{"master-addr", "torchrun's; horo sets MASTER_ADDR for the ranks"},
    Foreign{"master-port", "torchrun's; horo sets MASTER_PORT for the ranks"},
    Foreign{"standalone", "torchrun's; horo runs on this machine when no hosts are named"},
    Foreign{"machinefile", "mpirun's; write '--hostfile FILE'"},
    Foreign{"oversubscribe", "mpirun's; give a host more slots: '-H NAME:SLOTS'"},
    Foreign{"genv", "mpirun's; ranks get the launcher's environment: see --env-allow"},
    Foreign{"x", "mpirun's; ranks get the launcher's environment: see --env-allow"},
};

std::string hint_for_foreign(std::string_view word) {
  std::string dashed(word);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  const auto found = std::find_if(kForeign.begin(), kForeign.end(),
                                  [&](const Foreign& one) { return one.name == dashed; });
  return found == kForeign.end() ? "" : fmt::format("; it is {}", found->instead);
}

Failure unknown(const CommandRow& command, std::string_view written, std::string_view word) {
  if (const auto hint = hint_for_foreign(word); !hint.empty())
    return fail(Errc::invalid_argument, "unknown option '{}'{}", written, hint);
  std::vector<std::string> names;
  each_name(command, [&](const Flag& flag, const std::string& name) {
    if (!flag.hidden) names.push_back(fmt::format("--{}", name));
  });
  return fail(Errc::invalid_argument, "unknown option '{}'{}", written,
              did_you_mean(fmt::format("--{}", word), {names.begin(), names.end()}));
}

/// Finds a long option by its name or by an unambiguous beginning of it.
Result<Name> find_long(const CommandRow& command, std::string_view word) {
  if (auto exact = find_exact(command, word)) return std::move(*exact);
  std::vector<Name> matches;
  each_name(command, [&](const Flag& flag, const std::string& name) {
    if (name.starts_with(word)) matches.push_back({&flag, name});
  });
  if (matches.empty() || word.empty()) return unknown(command, fmt::format("--{}", word), word);
  const bool same = std::all_of(matches.begin(), matches.end(), [&](const Name& match) {
    return match.flag == matches.front().flag &&
           (match.flag->knob == nullptr || match_flag(match.text).spelling.inverted ==
                                               match_flag(matches.front().text).spelling.inverted);
  });
  if (same) return std::move(matches.front());
  std::string list;
  for (const auto& match : matches)
    list += fmt::format("{}--{}", list.empty() ? "" : ", ", match.text);
  return fail(Errc::invalid_argument, "option '--{}' could be {}", word, list);
}

/// -n, -np, -hostfile.
Result<Name> find_short(const CommandRow& command, std::string_view word) {
  if (word.size() == 1) {
    if (const Flag* flag = find_letter(command, word.front())) return Name{flag, flag->name};
  } else if (auto exact = find_exact(command, word)) {
    return std::move(*exact);
  }
  const auto written = fmt::format("-{}", word);
  for (const auto* option : {"np", "n", "H"}) {
    const std::string_view start(option);
    if (word == start)
      return fail(Errc::invalid_argument, "unknown option '{}'; it is one of 'horo run'", written);
    if (word.starts_with(start) &&
        (start != "n" || std::isdigit(static_cast<unsigned char>(word[1])) != 0)) {
      return fail(Errc::invalid_argument, "unknown option '{}'; write '-{} {}'", written, start,
                  word.substr(start.size()));
    }
  }
  return unknown(command, written, word);
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

/// Whether a word can be the value of the option before it: "-1" is a number, "--verbose" is not a
/// value.
bool is_value(std::string_view word) {
  return !is_option(word) || std::isdigit(static_cast<unsigned char>(word[1])) != 0 ||
         word[1] == '.';
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

const Option* Arguments::find(std::string_view flag) const {
  const auto found = std::find_if(options.rbegin(), options.rend(), [flag](const Option& option) {
    return option.flag->name == flag;
  });
  return found == options.rend() ? nullptr : &*found;
}

Result<Arguments> parse_arguments(const CommandRow& command, std::span<const char* const> words) {
  Arguments arguments;
  std::size_t i = 0;
  for (; i < words.size() && is_option(words[i]); ++i) {
    std::string_view word(words[i]);
    if (word == "--") {
      ++i;
      break;
    }
    const bool is_long = word.starts_with("--");
    word.remove_prefix(is_long ? 2 : 1);
    const auto equals = word.find('=');
    HORO_TRY(auto name, is_long ? find_long(command, word.substr(0, equals))
                                : find_short(command, word.substr(0, equals)));
    const Flag& flag = *name.flag;
    Option option{.flag = &flag, .name = std::move(name.text), .value = "true"};
    if (equals != std::string_view::npos) {
      if (flag.value.empty() && !flag.negatable) {
        return fail(Errc::invalid_argument, "option '--{}' takes no value", option.name);
      }
      option.value = word.substr(equals + 1);
    } else if (!flag.value.empty()) {
      if (i + 1 >= words.size() || !is_value(words[i + 1])) {
        return fail(Errc::invalid_argument, "option '--{}' needs a value: {}", option.name,
                    flag.value);
      }
      option.value = words[++i];
      if (flag.joins_numbers && i + 1 < words.size() && is_number(option.value) &&
          is_number(words[i + 1])) {
        option.value += fmt::format(",{}", words[++i]);
      }
    }
    arguments.options.push_back(std::move(option));
  }
  arguments.rest.assign(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  if (command.tail.empty() && !arguments.rest.empty()) {
    return fail(Errc::invalid_argument, "unexpected argument '{}'", arguments.rest.front());
  }
  return arguments;
}

}  // namespace horo::cli
