#include "common/store/record_store.h"

#include "common/codec/record_json.h"

namespace podqos::store {

Status RecordStore::put_pod(const core::PodRecord& record) {
  return put_pod(record.pod.uid, codec::format_pod_record(record));
}

}  // namespace podqos::store
