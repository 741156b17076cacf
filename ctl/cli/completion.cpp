#include "ctl/cli/completion.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "common/base/text.h"
#include "ctl/cli/command.h"

namespace podqos::ctl {
namespace {

/// A choice and what it does.
struct Choice {
  std::string word;
  std::string description = {};
};

/// Where the cursor is.
struct Cursor {
  const CLI::App* command = nullptr;     ///< the subcommand in front of it
  const CLI::Option* pending = nullptr;  ///< whose value comes next
  std::size_t arguments = 0;             ///< without dash, since the subcommand
};

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_max() > 0;
}

/// The option of this name, which may be one of the commands above.
const CLI::Option* find_option(const CLI::App* command, std::string_view name) {
  while (command != nullptr) {
    if (const CLI::Option* found = command->get_option_no_throw(std::string{name})) return found;
    command = command->get_parent();
  }
  return nullptr;
}

std::vector<const CLI::App*> subcommands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

Cursor find_cursor(const CLI::App& root, const std::vector<std::string>& words) {
  Cursor cursor{.command = &root};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (cursor.pending != nullptr) {
      cursor.pending = nullptr;
    } else if (word.starts_with('-')) {
      const CLI::Option* option = find_option(cursor.command, word);
      if (takes_value(option)) cursor.pending = option;
    } else {
      const auto subs = subcommands(*cursor.command);
      const auto sub = std::ranges::find(subs, word, &CLI::App::get_name);
      if (sub == subs.end())
        ++cursor.arguments;
      else
        cursor = {.command = *sub};
    }
  }
  return cursor;
}

/// The values of an option or argument, by what --help shows of its type: "TEXT:{text,json}" or
/// "FILE".
std::vector<Choice> values_of(const CLI::Option& option) {
  const bool is_argument = option.get_positional();
  const std::string type =
      is_argument ? cat(option.get_name(), ":", option.get_type_name()) : option.get_type_name();
  std::vector<Choice> found;
  const auto kinds = parts_of(type, ':');
  const auto has = [&](std::string_view kind) { return std::ranges::count(kinds, kind) != 0; };
  if (has("FILE")) found.push_back({":file"});
  if (has("DIR")) found.push_back({":dir"});
  for (const std::string& kind : kinds)
    if (kind.starts_with('{') && kind.ends_with('}'))
      for (std::string& value : parts_of(kind.substr(1, kind.size() - 2), ','))
        found.push_back({std::move(value)});
  return found;
}

/// The options of a command, and of those above it what may stand behind its name, too.
std::vector<Choice> options_of(const CLI::App& command) {
  std::vector<Choice> found;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      const bool is_above = app != &command;
      const bool is_own = option == app->get_help_ptr() || option == app->get_version_ptr();
      const bool is_refused = option->check_lname("config") && !reads_configuration(command);
      if (option->get_lnames().empty() || (is_above && (is_own || is_refused))) continue;
      found.push_back({cat("--", option->get_lnames().front()), option->get_description()});
    }
  }
  return found;
}

/// Subcommands, or the values of the next argument.
std::vector<Choice> arguments_of(const Cursor& cursor) {
  std::vector<Choice> found;
  if (cursor.arguments == 0)
    for (const CLI::App* sub : subcommands(*cursor.command))
      found.push_back({sub->get_name(), sub->get_description()});
  const auto arguments = cursor.command->get_options(
      [](const CLI::Option* option) { return option->get_positional(); });
  if (arguments.empty()) return found;
  const std::size_t last = arguments.size() - 1;
  if (cursor.arguments > last && !arguments[last]->get_allow_extra_args()) return found;
  return values_of(*arguments[std::min(cursor.arguments, last)]);
}

std::vector<Choice> choices(const Cursor& cursor, std::string_view word, std::string& front) {
  if (cursor.pending != nullptr) return values_of(*cursor.pending);
  if (const std::size_t equals = word.find('=');
      word.starts_with("--") && equals != std::string_view::npos) {
    front = word.substr(0, equals + 1);
    const CLI::Option* option = find_option(cursor.command, word.substr(0, equals));
    return option == nullptr ? std::vector<Choice>{} : values_of(*option);
  }
  if (word.starts_with('-')) return options_of(*cursor.command);
  auto found = arguments_of(cursor);
  return found.empty() && word.empty() ? options_of(*cursor.command) : found;
}

}  // namespace

std::string completions(const CLI::App& root, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  std::string front;  // "--driver=" of a word that has its value behind it
  std::string lines;
  for (const Choice& choice : choices(find_cursor(root, words), last, front)) {
    const bool is_kind = choice.word.starts_with(':');
    const std::string word = is_kind ? choice.word : front + choice.word;
    if (!is_kind && !word.starts_with(last)) continue;
    lines += word;
    if (!choice.description.empty()) lines += cat("\t", choice.description);
    lines += "\n";
  }
  return lines;
}

}  // namespace podqos::ctl
