#include "common/app/reconcile.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/base/text.h"
#include "ctl/command.h"
#include "ctl/json.h"

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
};

/// Pods and records for which a reconciliation fails.
std::vector<std::string> failures_of(const app::ReconcileReport& report) {
  std::vector<std::string> failures = report.unreadable;
  failures.insert(failures.end(), report.failed.begin(), report.failed.end());
  return failures;
}

/// The texts as lines that begin with `prefix`.
std::string lines_of(const std::vector<std::string>& texts, std::string_view prefix) {
  std::string out;
  for (const std::string& text : texts)
    out += cat(prefix, text, "\n");
  return out;
}

/// @param plan  of a dry run, one line each; else nullptr
std::string format_json(const app::ReconcileReport& report, const std::vector<std::string>* plan) {
  Json json = {{"pods", report.pods},          {"containers", report.containers},
               {"released", report.released},  {"repaired", report.repaired},
               {"changes", report.changes},    {"warnings", report.warnings},
               {"failed", failures_of(report)}};
  if (plan != nullptr) json["plan"] = *plan;
  return dump(json) + "\n";
}

/// The report for people, one line each: changes, of a dry run as comments in front of its plan;
/// warnings, and what fails in a dry run; totals: "12 pods, 30 containers; 1 pod released, 0
/// records restored".
std::string format_text(const app::ReconcileReport& report, const std::vector<std::string>* plan) {
  const bool dry = plan != nullptr;
  std::string out = lines_of(report.changes, dry ? "# " : "");
  // Names of cgroups may have been chosen by others.
  for (const std::string& line : dry ? *plan : std::vector<std::string>{})
    out += cat(app::one_line(line), "\n");
  out += lines_of(report.warnings, "warning: ");
  if (dry)
    out += cat(lines_of(failures_of(report), "error: "), "dry run: would make ",
               format_count(std::ssize(*plan), "change"), "; ");
  return cat(out, format_count(report.pods, "pod"), ", ",
             format_count(report.containers, "container"), "; ",
             format_count(report.released, "pod"), dry ? " to release, " : " released, ",
             format_count(report.repaired, "record"), dry ? " to restore\n" : " restored\n");
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

/// Reconciles under the lock.
Result<app::ReconcileReport> reconcile(const core::Settings& settings, app::Warnings warnings) {
  app::Log log{"podqosctl", settings};
  auto report = app::reconcile(settings, log, warnings);
  if (!report) return fail(for_root(std::move(report).error()));
  if (!logs_to_the_same_journal(settings)) {
    for (const std::string& failure : failures_of(*report))
      log_failure({ErrorCode::kIo, failure});
  }
  return report;
}

/// Drops all capabilities but kKeptCapabilities.
Result<int> run_reconcile(const ReconcileOptions& options, const Cli& cli) {
  PODQOS_TRY(narrow(kKeptCapabilities));
  PODQOS_ASSIGN(const auto settings, app::load_settings(cli.config));
  app::ReconcilePreview done;
  if (options.dry_run) {
    PODQOS_ASSIGN(done, app::preview_reconcile(settings));
  } else {
    PODQOS_ASSIGN(done.report, reconcile(settings, options.quiet ? app::Warnings::kReported
                                                                 : app::Warnings::kLogged));
  }
  const auto* const plan = options.dry_run ? &done.plan : nullptr;
  const auto format = options.output.is_json() ? format_json : format_text;
  const int status =
      finish(print(options.quiet && !options.output.is_json() ? lines_of(done.report.changes, "")
                                                              : format(done.report, plan)));
  return status == kDone && !failures_of(done.report).empty() ? kRefused : status;
}

}  // namespace

void add_reconcile(Cli& cli) {
  auto options = std::make_shared<ReconcileOptions>();
  CLI::App* sub =
      cli.app.add_subcommand("reconcile", "Make state and cgroups match the running containers");
  add_output(*sub, options->output);
  auto* dry_run =
      sub->add_flag("-n,--dry-run", options->dry_run, "Print the changes without making them");
  sub->add_flag("-q,--quiet", options->quiet, "Print and log only changes and failures")
      ->excludes(dry_run);
  sub->callback([options, &cli] { cli.status = run_reconcile(*options, cli); });
}

}  // namespace podqos::ctl
