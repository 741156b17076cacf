#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "common/app/configuration.h"
#include "common/base/text.h"
#include "common/store/event_file.h"
#include "common/sys/atomic_file.h"
#include "common/sys/clock.h"
#include "common/sys/directory.h"
#include "ctl/cli/command.h"
#include "ctl/doctor/doctor.h"
#include "ctl/node/event_pods.h"
#include "ctl/node/usage_sampler.h"
#include "ctl/view/report_page.h"

namespace podqos::ctl {
namespace {

/// CAP_SYS_ADMIN reads the marks on cgroups (xattr(7)); the page may go to another user's
/// directory, as with sudo.
constexpr std::array kReportCapabilities = {CAP_SYS_ADMIN, CAP_DAC_OVERRIDE};

/// This machine's name.
std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this machine";
}

/// What is used over a second.
Result<UsageSample> sample_usage(const core::Settings& settings) {
  PODQOS_ASSIGN(auto sampler, UsageSampler::open(settings, 0));
  PODQOS_TRY(sampler.next());
  static_cast<void>(sys::kSteadyClock.poll({}, sys::kSteadyClock.now() + std::chrono::seconds{1}));
  return sampler.next();
}

/// The last 200.
Result<std::vector<core::Event>> last_events(const core::Settings& settings) {
  constexpr std::ptrdiff_t kMost = 200;
  PODQOS_ASSIGN(auto list, store::read_events(settings.state_dir));
  const auto surplus = std::max(std::ssize(list.events) - kMost, std::ptrdiff_t{0});
  list.events.erase(list.events.begin(), list.events.begin() + surplus);
  name_events(list.events, settings);
  return std::move(list.events);
}

/// Replaces a regular file, or makes one, for the caller alone.
Status write_file(const std::string& path, std::string_view text) {
  const std::size_t name_at = path.rfind('/') + 1;  // 0 without a slash
  const std::string name = path.substr(name_at);
  PODQOS_ASSIGN(const auto directory,
                sys::Directory::open(name_at == 0 ? "." : path.substr(0, name_at)));
  struct stat there{};
  const bool exists = ::fstatat(directory.fd(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && !S_ISREG(there.st_mode))
    return fail(ErrorCode::kConflict,
                cat(printable(path),
                    " is not a regular file; write to - (standard output), or to "
                    "another file"));
  return sys::replace_shared_file(directory, name, text);
}

Result<int> run_report(const std::string& file, const Cli& cli) {
  // Nothing untrusted is parsed before the restriction but what root has configured.
  const app::ConfigurationReport configuration = app::inspect_configuration(cli.config);
  const core::Settings& settings = configuration.settings;
  ProgramAnswers answers = ask_programs(settings.state_dir);
  std::string host = host_name();
  PODQOS_TRY(narrow(kReportCapabilities, sys::Filter::kTop));
  auto cgroups = cgroup::Cgroupfs::open({.access = cgroup::Access::kRead});
  const Report report{.host = std::move(host),
                      .time = sys::wall_clock(),
                      .diagnosis = diagnose(configuration, cgroups, std::move(answers)),
                      .usage = sample_usage(settings),
                      .events = last_events(settings)};
  int status = kDone;
  // Both for one cause, mostly.
  if (!report.usage)
    status = log_failure(report.usage.error());
  else if (!report.events)
    status = log_failure(report.events.error());
  const std::string page = format_report(report);
  if (file == "-") return std::max(status, print(page));
  PODQOS_TRY(write_file(file, page));
  return status;
}

}  // namespace

void add_report(Cli& cli) {
  auto file = std::make_shared<std::string>();
  CLI::App* sub = cli.app.add_subcommand(
      "report", "Write one page of HTML: what is wrong, what tiers and pods use, and events");
  sub->add_option("--output", *file, "The file, or - for standard output")
      ->required()
      ->type_name("FILE")
      ->check([](const std::string& path) {
        return path.ends_with('/') ? "expected the name of a file" : "";
      });
  sub->callback([file, &cli] { cli.status = run_report(*file, cli); });
}

}  // namespace podqos::ctl
