#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace podqos::ctl {

/// The text of --help as CLI11 makes it, in lines of at most 80 columns.
class HelpFormatter final : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_description(const CLI::App* app) const override;
  [[nodiscard]] std::string make_option(const CLI::Option* option,
                                        bool is_positional) const override;
  [[nodiscard]] std::string make_subcommand(const CLI::App* sub) const override;
  [[nodiscard]] std::string make_footer(const CLI::App* app) const override;
};

}  // namespace podqos::ctl
