#include "hook/runtime_argv.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/text.h"
#include "common/base/units.h"

namespace podqos::hook {

namespace {

// Names are separated by spaces.

/// Options before the subcommand that take a value in the next argument. A value such as a log file
/// named "create" must not be mistaken for the subcommand.
constexpr std::string_view kGlobalValues =
    "root r log l log-format log-level criu rootless cgroup-manager config";

/// Options after the subcommand that take a value.
constexpr std::string_view kVerbValues =
    "bundle b config f console-socket c pidfd-socket pid-file p preserve-fds image-path work-path "
    "parent-path manage-cgroups-mode empty-ns lsm-profile lsm-mount-context status-fd";

/// Options of `update` that take a value, but for those of kLimits.
constexpr std::string_view kUpdateValues =
    "resources r blkio-weight cpu-burst cpu-rt-period cpu-rt-runtime cpuset-cpus cpuset-mems "
    "kernel-memory kernel-memory-tcp memory-reservation memory-swap pids-limit l3-cache-schema "
    "mem-bw-schema cpu-idle";

/// Options of `update` that a pod follows.
struct LimitOption {
  std::string_view name;
  std::optional<std::int64_t> core::EngineResources::* value;
};
constexpr std::array<LimitOption, 4> kLimits{{
    {"cpu-share", &core::EngineResources::cpu_shares},
    {"cpu-quota", &core::EngineResources::cpu_quota},
    {"cpu-period", &core::EngineResources::cpu_period},
    {"memory", &core::EngineResources::memory_limit},
}};

/// Options that only print text: no container is created.
constexpr std::string_view kQuestions = "help h ? usage version v V";

/// Values that Go's flag parser reads as false (strconv.ParseBool).
constexpr std::string_view kFalse = "0 f F false FALSE False";

/// Subcommands that create a container from a bundle.
constexpr std::string_view kPlacingVerbs = "create run restore";

/// A number, or one of bytes with a unit: "-1", "512m", "2GiB". What is neither, or 0, which leaves
/// the value as it is, is none.
/// @note github.com/docker/go-units, RAMInBytes
std::optional<std::int64_t> parse_limit(std::string_view text) {
  constexpr std::string_view kUnits = "bkmgt";
  const std::size_t digits = text.find_first_not_of("-0123456789");
  const auto number = parse_int(text.substr(0, digits));
  if (!number || *number == 0) return std::nullopt;
  if (digits == std::string_view::npos) return number;
  const char unit = static_cast<char>(text[digits] | 0x20);
  const std::size_t power = kUnits.find(unit);
  if (power == std::string_view::npos) return std::nullopt;
  return mul_div(*number, std::int64_t{1} << (10U * power), 1);
}

/// One option word of the command line.
struct Option {
  std::string_view name;                  ///< without dashes
  std::optional<std::string_view> value;  ///< from "--name=value" or "-bDIR"
};

/// Parses "-x", "--x" or "--x=v"; nullopt for a word that is not an option.
std::optional<Option> parse_option(std::string_view word) {
  if (word.size() < 2 || word[0] != '-' || word == "--") return std::nullopt;
  const bool is_long = word.starts_with("--");
  word.remove_prefix(is_long ? 2 : 1);
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  // "-bDIR" as argp and clap accept it, where DIR may contain '='; Go's parser accepts only
  // "-b DIR" and "-b=DIR".
  if (!is_long && name.size() > 1 && (word[0] == 'b' || word[0] == 'f') &&
      !has_word(kVerbValues, name))
    return Option{word.substr(0, 1), word.substr(1)};
  if (equals == std::string_view::npos) return Option{name, std::nullopt};
  return Option{name, word.substr(equals + 1)};
}

/// Walks over the arguments once, from podqos's own option to the container id.
class Parser {
 public:
  explicit Parser(std::span<const char* const> args) : args_(args) {}

  RuntimeCall parse() {
    read_own_option();
    const std::string_view verb = skip_globals();
    const bool updates = verb == "update";
    if (!updates && !has_word(kPlacingVerbs, verb)) return std::move(call_);
    read_verb_arguments(updates ? &Parser::read_update_option : &Parser::read_placing_option);
    if (updates) {
      call_.updates = !call_.id.empty();
      return std::move(call_);
    }
    // Without an id, or with --help, nothing is to be placed; with the cgroup manager disabled the
    // container gets no cgroup. crun takes only this very name for the bundle's file (src/run.c).
    call_.places = !call_.id.empty() && !without_cgroups_ && config_name_ == "config.json";
    return std::move(call_);
  }

 private:
  [[nodiscard]] bool done() const { return at_ >= args_.size(); }
  [[nodiscard]] std::string_view word() const { return args_[at_]; }

  /// podqos's own --config, recognised as the first argument only; all others are the runtime's.
  void read_own_option() {
    constexpr std::string_view kOwn = "--config";
    if (!done() && word() == kOwn && at_ + 1 < args_.size()) {
      call_.podqos_config = args_[1];
      at_ = 2;
    } else if (!done() && word().starts_with("--config=")) {
      call_.podqos_config = std::string{word().substr(kOwn.size() + 1)};
      at_ = 1;
    }
    const auto rest = args_.subspan(at_);
    call_.runtime_args.assign(rest.begin(), rest.end());
  }

  /// The option's value: the one after '=', or the next word, which is consumed.
  std::string value_of(const Option& option) {
    if (option.value) return std::string{*option.value};
    if (at_ + 1 >= args_.size()) return {};
    ++at_;
    return std::string{word()};
  }

  /// Reads the options before the subcommand.
  /// @return the subcommand; "" if there is none or only text is requested.
  std::string_view skip_globals() {
    for (; !done(); ++at_) {
      if (word() == "--") continue;
      const auto option = parse_option(word());
      if (!option) return args_[at_++];
      if (has_word(kQuestions, option->name)) return {};
      read_global(*option);
    }
    return {};
  }

  /// Reads one option before the subcommand, with its value.
  void read_global(const Option& option) {
    if (option.name == "systemd-cgroup" || option.name == "s") {
      call_.systemd = !has_word(kFalse, option.value.value_or("true"));
      return;
    }
    if (!has_word(kGlobalValues, option.name)) return;
    const std::string value = value_of(option);
    if (option.name == "cgroup-manager") {
      call_.systemd = value == "systemd";
      without_cgroups_ = value == "disabled";
    }
    if (option.name == "log" || option.name == "l") call_.log_file = value;
    if (option.name == "log-format") call_.log_json = value == "json";
  }

  /// Reads one option of create, run or restore, with its value.
  void read_placing_option(const Option& option) {
    if (!has_word(kVerbValues, option.name)) return;
    const std::string value = value_of(option);
    if (option.name == "bundle" || option.name == "b") call_.bundle = value;
    if (option.name == "config" || option.name == "f") config_name_ = value;
  }

  /// Reads one option of update, with its value.
  void read_update_option(const Option& option) {
    const auto* const limit = std::ranges::find(kLimits, option.name, &LimitOption::name);
    if (limit != kLimits.end()) {
      call_.limits.*limit->value = parse_limit(value_of(option));
    } else if (has_word(kUpdateValues, option.name)) {
      const std::string value = value_of(option);
      const bool is_file = option.name == "resources" || option.name == "r";
      if (is_file && !value.empty()) call_.resources = value;
    }
  }

  /// Reads options and words after the subcommand; the last word is the container id.
  void read_verb_arguments(void (Parser::*read_option)(const Option&)) {
    bool only_words = false;
    for (; !done(); ++at_) {
      const auto option = only_words ? std::nullopt : parse_option(word());
      if (!only_words && word() == "--") {
        only_words = true;
      } else if (!option) {
        call_.id = word();
      } else if (has_word(kQuestions, option->name)) {
        return call_.id.clear();
      } else {
        (this->*read_option)(*option);
      }
    }
  }

  std::span<const char* const> args_;
  std::size_t at_ = 0;
  bool without_cgroups_ = false;             ///< crun's --cgroup-manager=disabled
  std::string config_name_ = "config.json";  ///< crun's --config
  RuntimeCall call_;
};

}  // namespace

RuntimeCall parse_runtime_argv(std::span<const char* const> args) {
  return Parser{args}.parse();
}

codec::MemberNames member_names_of(std::string_view runtime) {
  const std::string_view name = runtime.substr(runtime.rfind('/') + 1);
  const bool exact =
      name.starts_with("crun") || name.starts_with("krun") || name.starts_with("youki");
  return exact ? codec::MemberNames::kExact : codec::MemberNames::kAnyCase;
}

}  // namespace podqos::hook
