#include <string>

#include <gtest/gtest.h>

#include "common/core/events/admission.h"

namespace podqos::core {
namespace {

constexpr const char* kAdmittedTo = "/podqos/kubepods/burstable/pod42";

ContainerRecord container_at(const std::string& id) {
  ContainerRecord out;
  out.id = id;
  out.bundle = "/run/" + id;
  out.name = "web";
  out.cgroup = std::string{kAdmittedTo} + "/" + id;
  return out;
}

/// Container "c1" is admitted to pod 42, where it is alone.
Admission admission_of_c1() {
  Admission admission;
  admission.container = container_at("c1");
  admission.record.pod.uid = "42";
  admission.record.qos_class = QosClass::kBurstable;
  admission.record.cgroup = kAdmittedTo;
  admission.record.granted = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{67'108'864}};
  admission.record.containers = {admission.container};
  return admission;
}

TEST(IsFirst, IsTheOnlyContainerOfItsPod) {
  Admission admission = admission_of_c1();
  EXPECT_TRUE(is_first(admission));
  admission.record.containers.push_back(container_at("c2"));
  EXPECT_FALSE(is_first(admission));
}

TEST(DescribeAdmission, TellsClassPlaceAndWhatCounts) {
  EXPECT_EQ(describe_admission(admission_of_c1()),
            "pod 42: Burstable, container web (c1) at /podqos/kubepods/burstable/pod42/c1, cpu "
            "100m, memory 64Mi requested");
}

TEST(DescribeAdmission, NamesThePodAndEscapesWhatItsAuthorWrites) {
  Admission admission = admission_of_c1();
  admission.record.pod.name = "front";
  admission.record.pod.pod_namespace = "shop";
  admission.record.qos_class = QosClass::kGuaranteed;
  admission.container.name = "a\nb";
  admission.container.id = "c\"1";
  EXPECT_EQ(describe_admission(admission),
            "pod 42 (shop/front): Guaranteed, container a\\x0ab (c\\\"1) at "
            "/podqos/kubepods/burstable/pod42/c1, cpu 100m, memory 64Mi requested");
}

}  // namespace
}  // namespace podqos::core
