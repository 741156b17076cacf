#pragma once

#include "nri/nri.pb.h"

namespace podqos::nri {

/// The messages of nri/nri.proto, with the package name of containerd/nri.
namespace api = ::nri::pkg::api::v1alpha1;

}  // namespace podqos::nri
