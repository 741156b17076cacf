#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/app/preview.h"
#include "common/app/reconciler.h"
#include "common/base/text.h"
#include "ctl/cli/command.h"
#include "ctl/cli/json.h"

namespace podqos::ctl {
namespace {

/// CAP_DAC_OVERRIDE is for cgroup files that belong to other users, CAP_SYS_RESOURCE lowers OOM
/// scores, CAP_SYS_ADMIN accesses trusted.* attributes, CAP_SYS_PTRACE shows processes where /proc
/// is mounted with hidepid. The v1 cpuset controller requires CAP_SYS_NICE to move a monitor out of
/// an ended pod.
constexpr std::array kKeptCapabilities = {CAP_DAC_OVERRIDE, CAP_SYS_RESOURCE, CAP_SYS_ADMIN,
                                          CAP_SYS_PTRACE, CAP_SYS_NICE};

/// Values of the command line options.
struct ReconcileOptions {
  OutputOptions output;
  bool dry_run = false;
  bool quiet = false;
  std::int64_t converge = 0;  ///< seconds
};

/// The texts as lines that begin with `prefix`.
std::string lines_of(const std::vector<std::string>& texts, std::string_view prefix,
                     const Screen& screen) {
  std::string out;
  for (const std::string& text : texts)
    out += format_notice(prefix, text, screen);
  return out;
}

std::string format_changes(const std::vector<std::string>& changes, const Screen& screen) {
  std::string out;
  for (const std::string& change : changes)
    out += format_change(change, screen);
  return out;
}

/// The report for people: changes, of a dry run with what else it would do; warnings, and what
/// fails in a dry run; totals: "12 pods, 30 containers; 1 pod released, 0 records restored".
std::string format_text(const app::ReconcilePreview& done, bool dry, const Screen& screen) {
  const app::ReconcileReport& report = done.report;
  std::string out = format_changes(report.changes, screen);
  // Values are among the changes. Names of cgroups may have been chosen by others.
  for (const std::string& line : done.plan)
    if (!line.starts_with("write ")) out += format_notice("", app::one_line(line), screen);
  out += lines_of(report.warnings, "warning: ", screen);
  std::string totals;
  if (dry) {
    out += lines_of(report.failed, "error: ", screen);
    totals = cat("dry run: would make ", format_count(std::ssize(done.plan), "change"), "; ");
  }
  totals +=
      cat(format_count(report.pods, "pod"), ", ", format_count(report.containers, "container"),
          "; ", format_count(report.released, "pod"), dry ? " to release, " : " released, ",
          format_count(report.repaired, "record"), dry ? " to restore" : " restored");
  return out + fold(std::move(totals), "  ", screen.width);
}

/// The same for programs; of a dry run with "plan", all that it would do.
Json report_json(const app::ReconcilePreview& done, bool dry) {
  const app::ReconcileReport& report = done.report;
  Json json = {{"pods", report.pods},         {"containers", report.containers},
               {"released", report.released}, {"repaired", report.repaired},
               {"changes", report.changes},   {"warnings", report.warnings},
               {"failed", report.failed}};
  if (dry) json["plan"] = done.plan;
  return json;
}

/// Whether standard error leads to the journal and the log does as well: what is in the log would
/// be there twice, as under podqos-reconcile.service.
/// @note systemd.exec(5), $JOURNAL_STREAM: device and inode of the stream
bool logs_to_the_same_journal(const core::Settings& settings) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): podqosctl has one thread
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat file{};
  return settings.log_sink == "syslog" && stream != nullptr && ::fstat(STDERR_FILENO, &file) == 0 &&
         stream == cat(file.st_dev, ":", file.st_ino);
}

/// Drops all capabilities but kKeptCapabilities.
Result<int> run_reconcile(const ReconcileOptions& options, const Cli& cli) {
  const Screen screen = options.output.screen();
  PODQOS_TRY(narrow(kKeptCapabilities));
  PODQOS_ASSIGN(const auto settings, settings_in_force(cli));
  app::ReconcilePreview done;
  if (options.dry_run) {
    PODQOS_ASSIGN(auto node, app::view_node(settings));
    PODQOS_ASSIGN(done, app::preview_reconcile(settings, std::move(node)));
  } else {
    app::Log log{"podqosctl", settings};
    auto report = app::reconcile(settings, log,
                                 options.quiet ? app::Warnings::kReported : app::Warnings::kLogged,
                                 std::chrono::seconds{options.converge});
    if (!report) return fail(for_root(std::move(report).error()));
    done.report = *std::move(report);
  }
  const app::ReconcileReport& report = done.report;
  if (!options.dry_run && !logs_to_the_same_journal(settings))
    std::ranges::for_each(report.failed, warn);
  std::string out = options.quiet ? format_changes(report.changes, screen)
                                  : format_text(done, options.dry_run, screen);
  if (options.output.is_json()) out = dump(report_json(done, options.dry_run)) + "\n";
  const int status = print(out);
  return report.failed.empty() ? status : kRefused;
}

}  // namespace

void add_reconcile(Cli& cli) {
  auto options = std::make_shared<ReconcileOptions>();
  CLI::App* sub =
      cli.app.add_subcommand("reconcile", "Make state and cgroups match the running containers");
  add_coloured_output(*sub, options->output);
  add_wide(*sub, options->output);
  auto* dry_run =
      sub->add_flag("-n,--dry-run", options->dry_run, "Print the changes without making them");
  sub->add_flag("-q,--quiet", options->quiet, "Print and log only changes and failures")
      ->excludes(dry_run);
  constexpr std::int64_t kMostSeconds = 3600;
  sub->add_option("--converge", options->converge,
                  "Seconds for which to wait for usage to fall where it keeps a memory limit above "
                  "its rule (default 0)")
      ->check(CLI::Range(std::int64_t{0}, kMostSeconds))
      ->excludes(dry_run);
  sub->callback([options, &cli] { cli.status = run_reconcile(*options, cli); });
}

}  // namespace podqos::ctl
