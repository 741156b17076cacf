#pragma once

#include <string>
#include <vector>

#include "ctl/manifest.h"

namespace podqos::ctl {

/// What is most likely a mistake in the pod of a document, although Kubernetes and podqos accept
/// it: fields that Kubernetes does not have, beside those that podqos reads; amounts that are not
/// whole bytes, which are rounded up; podqos.io annotations that podqos would refuse.
/// @param document  one that pod_of() accepts
/// @return a sentence each, with the path in the document or the annotation
[[nodiscard]] std::vector<std::string> manifest_warnings(const Document& document);

/// Prints the warnings of all pods of a manifest to standard error.
/// @param file  its name for the messages
void print_warnings(const Manifest& manifest, const std::string& file);

}  // namespace podqos::ctl
