#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "common/sys/clock.h"
#include "common/sys/fd.h"
#include "common/sys/sandbox.h"
#include "ctl/cli/command.h"
#include "ctl/cli/raw_terminal.h"
#include "ctl/node/usage_sampler.h"
#include "ctl/view/top_view.h"

namespace podqos::ctl {
namespace {

using std::chrono::milliseconds;

/// Values of the command line options.
struct TopOptions {
  OutputOptions output;
  std::string delay;
  std::string sort = "cpu";
  std::string tier;
  std::string pod_namespace;
  std::string text;
  std::int64_t count = 0;  ///< samples; 0: not given
  bool flat = false;
  bool reversed = false;
  bool once = false;
  bool batch = false;
};

/// The view that the options ask for.
Result<TopView> view_of(const TopOptions& options) {
  TopView view{.sort = find_column(options.sort),
               .reversed = options.reversed,
               .tree = !options.flat,
               .filter = {.tier = core::parse_qos_class(options.tier),
                          .pod_namespace = options.pod_namespace,
                          .text = options.text}};
  if (options.once) view.delay = std::chrono::seconds{1};
  if (!options.delay.empty()) {
    PODQOS_ASSIGN(view.delay, parse_delay(options.delay));
  }
  return view;
}

/// Lets this process open as many files as it may.
/// @return how many of them cgroups may take
std::size_t raise_file_limit() {
  // Of two thousand cgroups, which take 64 MiB of the kernel's memory; those of others are opened
  // for each sample.
  constexpr rlim_t kMost = 16'384;
  constexpr rlim_t kOthers = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kMost)),
                      .rlim_max = limit.rlim_max};
  const rlim_t files = ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
  return std::min(files, kMost) - std::min(files, kOthers);
}

UsageSample next_filtered(UsageSample sample, const UsageFilter& filter) {
  sample.entries = filtered(std::move(sample.entries), filter);
  return sample;
}

/// Prints one sample after another.
Result<int> print_samples(const TopOptions& options, const TopView& view, UsageSampler& sampler) {
  const bool endless = options.batch && options.count == 0;
  const std::int64_t count = std::max<std::int64_t>(options.count, 1);
  const ColourMode mode = options.batch ? ColourMode::kPlain : options.output.mode();
  const std::size_t width = screen_width();
  auto at = sys::kSteadyClock.now();
  for (std::int64_t number = 0; endless || number < count; ++number) {
    at += view.delay;
    static_cast<void>(sys::kSteadyClock.poll({}, at));
    PODQOS_ASSIGN(auto sample, sampler.next());
    sample = next_filtered(std::move(sample), view.filter);
    std::string out;
    if (options.output.is_json())
      out = dump(usage_json(sample)) + "\n";
    else
      for (const std::string& line : format_top(sample, view, width, mode))
        out += line + "\n";
    if (number > 0 && !options.output.is_json()) out.insert(0, "\n");
    if (const int status = print(out); status != kDone) return status;
  }
  return kDone;
}

/// The signals that end the program or tell of a new size of the terminal. From then on they are
/// only read from the descriptor.
Result<sys::UniqueFd> open_top_signals() {
  sigset_t taken{};
  ::sigemptyset(&taken);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH})
    ::sigaddset(&taken, number);
  if (const int err = ::pthread_sigmask(SIG_BLOCK, &taken, nullptr); err != 0)
    return fail_errno(err, "block signals");
  sys::UniqueFd fd{::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd.valid()) return fail_errno(errno, "signalfd");
  return fd;
}

/// The screen of a person who presses keys.
class LiveTop {
 public:
  LiveTop(TopView view, ColourMode mode, int signals, UsageSampler& sampler)
      : view_(std::move(view)), mode_(mode), signals_(signals), sampler_(&sampler) {}

  /// Until a key or a signal ends it.
  Status run(UsageSample first) {
    sample_ = std::move(first);
    PODQOS_ASSIGN(RawTerminal terminal, RawTerminal::open());
    // Rates come with the second sample.
    constexpr milliseconds kFirst{500};
    auto next = sys::kSteadyClock.now() + std::min(view_.delay, kFirst);
    while (true) {
      const ScreenSize size = terminal_size();
      TopScreen screen = draw_top(next_filtered(sample_, view_.filter), view_, size, mode_);
      view_.first = screen.first;
      PODQOS_TRY(terminal.show(screen.lines));
      PODQOS_ASSIGN(const TopAction action, wait(next, size));
      if (action == TopAction::kQuit) return {};
      if (action == TopAction::kDraw && sys::kSteadyClock.now() < next) continue;
      PODQOS_ASSIGN(sample_, sampler_->next());
      next = sys::kSteadyClock.now() + view_.delay;
    }
  }

 private:
  /// Waits for keys, signals or the time of the next sample.
  Result<TopAction> wait(sys::Clock::TimePoint until, ScreenSize size) {
    std::array<pollfd, 2> polled = {{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                     {.fd = signals_, .events = POLLIN, .revents = 0}}};
    if (sys::kSteadyClock.poll(polled, until) < 0 && errno != EINTR)
      return fail_errno(errno, "poll");
    signalfd_siginfo signal{};
    while (::read(signals_, &signal, sizeof signal) == sizeof signal)
      if (signal.ssi_signo != SIGWINCH) return TopAction::kQuit;
    return polled.front().revents == 0 ? TopAction::kDraw : read_keys(size);
  }

  Result<TopAction> read_keys(ScreenSize size) {
    constexpr std::size_t kMostBytes = 256;
    constexpr int kRest = 50;  // milliseconds
    std::array<char, kMostBytes> bytes{};
    std::string typed;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    do {
      const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      // The terminal has gone.
      if (count <= 0) return TopAction::kQuit;
      typed.append(bytes.data(), static_cast<std::size_t>(count));
    } while (is_cut_off(typed) && ::poll(&input, 1, kRest) > 0);
    TopAction last = TopAction::kDraw;
    for (const KeyPress& press : parse_keys(typed)) {
      const TopAction action = apply_key(press, size.height, view_);
      if (action == TopAction::kQuit) return action;
      if (action == TopAction::kSample) last = action;
    }
    return last;
  }

  TopView view_;
  ColourMode mode_;
  int signals_;
  UsageSampler* sampler_;
  UsageSample sample_;
};

Result<int> run_top(const TopOptions& options, const Cli& cli) {
  const auto view = view_of(options);
  if (!view) {
    log_failure(view.error());
    return kUsage;
  }
  const bool live = !options.once && !options.batch && options.count == 0 &&
                    !options.output.is_json() && has_terminal(STDIN_FILENO);
  const std::size_t most_files = raise_file_limit();
  sys::UniqueFd signals;
  if (live) {
    PODQOS_ASSIGN(signals, open_top_signals());
  }
  PODQOS_TRY(narrow({}, sys::Filter::kTop));
  const app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  std::ranges::for_each(configuration.errors, warn);
  PODQOS_ASSIGN(auto sampler, UsageSampler::open(configuration.settings, most_files));
  PODQOS_ASSIGN(auto first, sampler.next());
  for (const std::string& warning : sampler.warnings())
    warn(app::one_line(warning));
  int status = kDone;
  if (live) {
    PODQOS_TRY(LiveTop{*view, options.output.mode(), signals.get(), sampler}.run(std::move(first)));
  } else {
    PODQOS_ASSIGN(status, print_samples(options, *view, sampler));
  }
  return configuration.errors.empty() && sampler.warnings().empty() ? status : kRefused;
}

}  // namespace

void add_top(Cli& cli) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* sub =
      cli.app.add_subcommand("top", "Show what tiers, pods and containers use, again and again");
  add_coloured_output(*sub, options->output);
  std::vector<std::string> words = {"name"};
  for (const TopColumn& column : top_columns())
    words.emplace_back(column.word);
  sub->add_option("-d,--delay", options->delay,
                  "Seconds between two samples (default 2; 1 with --once)")
      ->type_name("SECONDS");
  auto* const count =
      sub->add_option("-n,--iterations", options->count, "End after so many samples")
          ->type_name("N")
          ->check(CLI::Range(1, 1'000'000'000));
  auto* const batch = sub->add_flag("-b,--batch", options->batch,
                                    "Print one sample after another, without a screen");
  sub->add_flag("-1,--once", options->once, "Print one sample and end")
      ->excludes(count)
      ->excludes(batch);
  // CLI11 would print the words once more, in one line.
  const auto known = [words](const std::string& word) {
    return std::ranges::count(words, word) > 0
               ? std::string{}
               : cat("\"", printable(word), "\"",
                     codec::hint_for(word, {words.begin(), words.end()}));
  };
  sub->add_option("-s,--sort", options->sort, cat("Sort by ", join(words, ", ")))
      ->type_name("COLUMN")
      ->check(known);
  sub->add_flag("-r,--reverse", options->reversed, "Smallest first");
  sub->add_flag("--flat", options->flat, "List containers, without tiers and pods");
  sub->add_option("--tier", options->tier, "Only one of Guaranteed, Burstable, BestEffort")
      ->transform(CLI::IsMember({"Guaranteed", "Burstable", "BestEffort"}, CLI::ignore_case));
  sub->add_option("--namespace", options->pod_namespace, "Only pods of this namespace")
      ->type_name("NAME");
  sub->add_option("--filter", options->text, "Only names and ids with this text");
  sub->callback([options, &cli] { cli.status = run_top(*options, cli); });
}

}  // namespace podqos::ctl
