#include "ctl/help.h"

#include <cstddef>
#include <string_view>

#include "common/base/text.h"
#include "ctl/table.h"

namespace podqos::ctl {

namespace {

constexpr std::size_t kWidth = 80;

/// A name and the text about it, which begins at `column`, below a name that does not end before.
std::string row(std::string_view name, std::string_view text, std::size_t column) {
  constexpr std::string_view kName = "  ";
  constexpr std::string_view kRestOfName = "      ";
  std::string out = cat(kName, fill(name, kRestOfName, kWidth).substr(kRestOfName.size()));
  if (text.empty()) return out;
  const std::string about = fill(text, std::string(column, ' '), kWidth);
  if (out.size() > column) return out + about;
  out.pop_back();
  return out + about.substr(out.size());
}

}  // namespace

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return fill(app->get_description(), "", kWidth);
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return row(make_option_name(option, is_positional) + make_option_opts(option),
             make_option_desc(option), get_column_width());
}

std::string HelpFormatter::make_subcommand(const CLI::App* sub) const {
  return row(sub->get_name(), sub->get_description(), get_column_width());
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  return fill(app->get_footer(), "", kWidth);
}

}  // namespace podqos::ctl
