#include "ctl/cli/command.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

#include "common/app/configuration.h"
#include "common/base/text.h"
#include "common/cgroup/node.h"
#include "common/codec/json_text.h"
#include "common/sys/directory.h"

namespace podqos::ctl {
Status narrow(std::span<const int> kept, sys::Filter filter) {
  PODQOS_TRY(sys::keep_capabilities(kept));
  return sys::install_filter(filter);
}

void block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    ::sigaddset(&signals, number);
  static_cast<void>(::pthread_sigmask(SIG_BLOCK, &signals, nullptr));
}

std::string_view why_unmanaged(const core::Settings& settings) {
  if (!settings.enabled) return kSwitchedOff;
  // Others than root only look.
  if (::geteuid() != 0 || cgroup::owns_host()) return "";
  return "this is a user namespace, in which podqos manages nothing: containers start unmanaged";
}

bool reads_configuration(const CLI::App& sub) {
  return !has_word("annotate configure version", sub.get_name());
}

Result<core::Settings> settings_in_force(const Cli& cli) {
  app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  // Only settings that were valid may change what lives.
  if (configuration.source == app::SettingsSource::kReadable)
    return fail(ErrorCode::kInvalidArgument, configuration.errors.front());
  if (!configuration.errors.empty()) warn(app::describe_errors(configuration));
  return std::move(configuration.settings);
}

void add_output(CLI::App& sub, OutputOptions& options) {
  sub.add_option("-o,--output", options.form, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
}

void add_coloured_output(CLI::App& sub, OutputOptions& options) {
  add_output(sub, options);
  sub.add_option("--color", options.colour, "auto (default), always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void add_wide(CLI::App& sub, OutputOptions& options) {
  sub.add_flag("-w,--wide", options.wide, "Show all, however wide the terminal is");
}

int print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return kDone;
  warn("cannot write to standard output");
  return kRefused;
}

Error for_root(Error error) {
  constexpr std::string_view kAsRoot = "; run it as root (sudo podqosctl …)";
  if (error.code == ErrorCode::kPermission && ::geteuid() != 0 && !error.message.ends_with(kAsRoot))
    error.message += kAsRoot;
  return error;
}

int log_failure(const Error& error) {
  warn(for_root(error).message);
  return kRefused;
}

void warn(std::string_view message) {
  const std::string line = cat("podqosctl: ", message, "\n");
  // A failure to write to standard error cannot be reported anywhere.
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

Error in_file(Error error, const std::string& path) {
  const std::string name = shown_name(path);
  return error.message.contains(name) ? error : std::move(error).with_context(name);
}

std::string shown_name(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

Result<File> open_input(const std::string& path) {
  File file{path == "-" ? stdin : std::fopen(path.c_str(), "re"), std::fclose};
  if (!file) return fail_errno(errno, cat("open ", path));
  return file;
}

namespace {

/// A text without its byte order mark, and in UTF-8 if that tells UTF-16; YAML 1.1, section 5.2.
std::string in_utf8(std::string text) {
  if (text.starts_with("\xef\xbb\xbf")) return text.substr(3);
  const bool big = text.starts_with("\xfe\xff");
  if (!big && !text.starts_with("\xff\xfe")) return text;
  constexpr unsigned kHigh = 0xd800;
  constexpr unsigned kLow = 0xdc00;
  constexpr unsigned kEndOfLow = 0xe000;
  std::string out;
  unsigned high = 0;
  for (std::size_t at = 2; at + 1 < text.size(); at += 2) {
    const unsigned first = static_cast<unsigned char>(text[at + (big ? 0 : 1)]);
    const unsigned second = static_cast<unsigned char>(text[at + (big ? 1 : 0)]);
    const unsigned unit = first << 8U | second;
    const bool is_high = unit >= kHigh && unit < kLow;
    if (is_high) high = unit;
    if (is_high) continue;
    const bool is_low = unit >= kLow && unit < kEndOfLow;
    codec::append_utf8(
        out, is_low ? 0x10000 + ((std::exchange(high, 0U) - kHigh) << 10U) + (unit - kLow) : unit);
  }
  return out;
}

}  // namespace

Result<std::string> read_input(const std::string& path, std::size_t limit) {
  PODQOS_ASSIGN(const File file, open_input(path));
  PODQOS_ASSIGN(auto text, sys::read_all(::fileno(file.get()), limit, shown_name(path)));
  return in_utf8(std::move(text));
}

}  // namespace podqos::ctl
