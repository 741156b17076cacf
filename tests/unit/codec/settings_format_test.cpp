#include <cstddef>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/codec/settings_json.h"
#include "common/codec/settings_table.h"
#include "tests/unit/codec/every_setting.h"

namespace podqos::codec {
namespace {

using core::Settings;
using every_setting::at_path;
using every_setting::everything;
using every_setting::kFields;

TEST(SettingsTable, KnowsEveryFieldWithItsDefault) {
  const auto fields = settings_table();
  ASSERT_EQ(fields.size(), kFields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Setting& field = fields[i];
    const std::string standard = format_value(field.kind, field.get(Settings{}));
    EXPECT_EQ(field.path, kFields[i].path);
    EXPECT_EQ(merge_settings(Settings{}, at_path(field.path, standard)), Settings{}) << field.path;
  }
}

TEST(FormatSettings, PrintsWhatMergeReadsBack) {
  EXPECT_EQ(merge_settings({}, format_settings(everything())), everything());
  EXPECT_EQ(merge_settings(everything(), format_settings({})), Settings{});
}

TEST(FormatSettings, PrintsEveryFieldInTheUnitsOfPeople) {
  const auto all = nlohmann::ordered_json::parse(R"({
    "enabled": true, "scope": "pods", "trustAnnotations": "engine-checked",
    "allowQosOverride": false, "cgroupRoot": "/podqos", "cgroupDriver": "auto",
    "placement": {"onMisplaced": "rewrite", "withoutParent": null}, "onError": "admit",
    "nodeMemory": null, "nodeCpu": null,
    "reserved": {"system": {"cpu": "0", "memory": "0"}, "kube": {"cpu": "0", "memory": "0"}},
    "enforceNodeAllocatable": ["pods"], "rootCpuWeight": "kubelet",
    "admission": {"memory": "warn", "cpu": "warn", "pids": "warn"},
    "qosReserved": {"memory": null}, "maxPodClaim": "100%", "cpuCFSQuota": true,
    "cpuCFSQuotaPeriod": "100ms", "weightFormula": "auto", "podPidsLimit": null,
    "ioWeight": {"guaranteed": null, "burstable": null, "bestEffort": null},
    "memorySwap": {"swapBehavior": "NoSwap"}, "singleProcessOOMKill": false,
    "releaseDelay": "30s", "tierMemoryFloor": "64Mi",
    "runtimes": ["/usr/bin/runc", "/usr/sbin/runc", "/usr/bin/crun", "/usr/libexec/crio/crun"],
    "chargeMonitor": false, "stateDir": "/run/podqos", "lockDeadline": "5s",
    "nri": {"metrics": null}, "log": {"sink": "syslog", "level": "info"}
  })");
  EXPECT_EQ(format_settings({}), all.dump(2) + "\n");
}

}  // namespace
}  // namespace podqos::codec
