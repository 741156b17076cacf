#include "nri/options.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

#include "common/base/text.h"
#include "common/codec/metrics_address.h"
#include "common/sys/unix_address.h"
#include "nri/sockets.h"

namespace podqos::nri {

namespace {

/// The result of a validator of CLI11: a message, or "" for a valid value.
template <class Value>
std::string fault_of(const Result<Value>& value) {
  return value ? "" : value.error().message;
}

/// Validates an index by the rule of containerd/nri, pkg/api/plugin.go, CheckPluginIndex.
std::string index_fault(const std::string& index) {
  if (index.size() == 2 && std::ranges::all_of(index, is_digit)) return "";
  return cat("expected a plugin index of two digits, found \"", printable(index), "\"");
}

/// Validates a name by the rule of CheckPluginName there.
std::string name_fault(const std::string& name) {
  const auto is_of_name = [](char c) {
    return is_alphanumeric(c) || std::string_view{"_.+-"}.contains(c);
  };
  if (!name.empty() && std::ranges::all_of(name, is_of_name)) return "";
  return cat("expected a plugin name of letters, digits and _.+-, found \"", printable(name), "\"");
}

}  // namespace

std::variant<Options, Answer> parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app{"NRI plugin that gives each pod its Kubernetes QoS cgroups.", "podqos-nri"};
  app.set_version_flag("--version", "podqos-nri " PODQOS_VERSION);
  app.add_option("--socket", options.socket,
                 cat("Connect to the runtime at this path instead\nof ", kDefaultSocket))
      ->type_name("PATH")
      ->check([](const std::string& path) { return fault_of(sys::UnixAddress::make(path)); });
  app.add_option("--config", options.config,
                 "Read this configuration file instead of\n/etc/podqos/podqos.json and conf.d")
      ->type_name("FILE");
  app.add_option(
         "--index", options.index,
         cat("Two digits: position of this plugin in the call\norder (", options.index, ")"))
      ->type_name("NN")
      ->check(index_fault);
  app.add_option("--name", options.name, cat("The plugin's name (", options.name, ")"))
      ->type_name("NAME")
      ->check(name_fault);
  app.add_option_function<std::string>(
         "--metrics",
         [&](const std::string& text) { options.metrics = *codec::parse_metrics_address(text); },
         "Serve metrics and health over HTTP at this\n"
         "address instead of the configured one: unix:PATH,\n"
         "127.0.0.1:PORT or [::1]:PORT; in a pod also\n"
         "0.0.0.0:PORT or [::]:PORT")
      ->type_name("ADDRESS")
      ->check([](const std::string& text) { return fault_of(codec::parse_metrics_address(text)); });
  app.footer(
      "SIGHUP reloads the configuration.\n"
      "Exit status: 0 stopped, 1 failed, 2 usage error.\n"
      "See podqos-nri(8), podqos.json(5).");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Answer{.status = 0, .text = app.help()};
  } catch (const CLI::CallForVersion&) {
    return Answer{.status = 0, .text = "podqos-nri " PODQOS_VERSION "\n"};
  } catch (const CLI::ParseError& error) {
    return Answer{.status = 2,
                  .text = cat("podqos-nri: ", error.what(), "; use --help to list the options\n")};
  }
  return options;
}

}  // namespace podqos::nri
