#include "common/cgroup/kubelet.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace podqos::cgroup {
namespace {

using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

/// A file of a machine whose root is `root`, with the directories it lies in.
void put(const TemporaryDirectory& root, const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path{root.path(path)}.parent_path());
  root.write(path, content);
}

struct Trace {
  const char* name;
  const char* path;
  const char* content;
  const char* seen;  ///< below the root; nullptr: no kubelet
};
class FindKubelet : public TestWithParam<Trace> {};

TEST_P(FindKubelet, LooksAtFilesAndProcesses) {
  const TemporaryDirectory root;
  put(root, "proc/1/comm", "systemd\n");
  put(root, "proc/self/comm", "kubelet\n");
  put(root, "proc/version", "Linux\n");
  put(root, GetParam().path, GetParam().content);
  const auto seen = find_kubelet(root.path());
  if (GetParam().seen == nullptr) {
    EXPECT_EQ(seen, std::nullopt);
  } else if (*GetParam().seen == '/') {
    EXPECT_EQ(seen, root.path() + GetParam().seen);
  } else {
    EXPECT_EQ(seen, GetParam().seen);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, FindKubelet,
    ValuesIn<Trace>({
        {"Kubeadm", "var/lib/kubelet/config.yaml", "", "/var/lib/kubelet/config.yaml"},
        {"KubeadmsCredentials", "etc/kubernetes/kubelet.conf", "", "/etc/kubernetes/kubelet.conf"},
        {"TheStateOfAnyKubelet", "var/lib/kubelet/cpu_manager_state", "{}",
         "/var/lib/kubelet/cpu_manager_state"},
        {"K3s", "var/lib/rancher/k3s/agent/kubelet.kubeconfig", "",
         "/var/lib/rancher/k3s/agent/kubelet.kubeconfig"},
        {"Rke2", "var/lib/rancher/rke2/agent/kubelet.kubeconfig", "",
         "/var/lib/rancher/rke2/agent/kubelet.kubeconfig"},
        {"K0s", "var/lib/k0s/kubelet-config.yaml", "", "/var/lib/k0s/kubelet-config.yaml"},
        {"EksOnAmazonLinux2", "etc/kubernetes/kubelet/kubelet-config.json", "{}",
         "/etc/kubernetes/kubelet/kubelet-config.json"},
        {"EksOnAmazonLinux2023", "etc/kubernetes/kubelet/config.json", "{}",
         "/etc/kubernetes/kubelet/config.json"},
        {"Microk8s", "var/snap/microk8s/current/args/kubelet", "",
         "/var/snap/microk8s/current/args/kubelet"},
        {"AProcess", "proc/42/comm", "kubelet\n", "process 42 (kubelet)"},
        {"K3sAsAProcess", "proc/42/comm", "k3s-server\n", "process 42 (k3s-server)"},
        {"Rke2AsAProcess", "proc/42/comm", "rke2\n", "process 42 (rke2)"},
        {"K0sAsAProcess", "proc/42/comm", "k0s\n", "process 42 (k0s)"},
        {"Microk8sAsAProcess", "proc/42/comm", "kubelite\n", "process 42 (kubelite)"},
        {"AnotherProcess", "proc/42/comm", "kubelet-exporte\n", nullptr},
        {"AnotherFile", "var/lib/kubelet/other", "", nullptr},
    }),
    [](const TestParamInfo<Trace>& row) { return std::string{row.param.name}; });

/// Any user may give a process such a name.
TEST(FindKubeletAlone, SeesNoProcessOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  const TemporaryDirectory root;
  put(root, "proc/42/comm", "k3s\n");
  ASSERT_EQ(find_kubelet(root.path()), "process 42 (k3s)");
  ASSERT_EQ(::chown(root.path("proc/42").c_str(), 65534, 65534), 0);
  EXPECT_EQ(find_kubelet(root.path()), std::nullopt);
}

TEST(FindKubeletAlone, SeesNoneWithoutProc) {
  const TemporaryDirectory root;
  EXPECT_EQ(find_kubelet(root.path()), std::nullopt);
}

}  // namespace
}  // namespace podqos::cgroup
