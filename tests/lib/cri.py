"""A client of CRI, Kubernetes' interface to an engine, that says what a kubelet or crictl would say.

    engine = cri.Client("/run/podqos-test/containerd.sock")
    sandbox = engine.run_pod(cri.sandbox("web", uid="web-1"), handler="runc")
    container = engine.create(sandbox, cri.container("app", IMAGE, cpu_shares=256))
    engine.start(container)
    engine.pid(container)

One call is one HTTP/2 connection with Debian's python3-h2, and the few fields of the messages are told in a table: no
generated code, and neither gRPC's library nor protobuf's, which are twenty times as large.
"""

import json
import socket
import struct

import patience
import wire

SERVICE, IMAGES = "/runtime.v1.RuntimeService", "/runtime.v1.ImageService"
NODE = 2  # NamespaceMode: the machine's own
RUNNING, EXITED = 1, 2  # ContainerState
OK, UNIMPLEMENTED, UNAVAILABLE = 0, 12, 14  # statuses of gRPC

ID = {"container_id": (1, "text")}
SANDBOX_ID = {"pod_sandbox_id": (1, "text")}
SCHEMA = {  # messages without fields are not in it
    "PodSandboxMetadata": {"name": (1, "text"), "uid": (2, "text"), "namespace": (3, "text"), "attempt": (4, "int")},
    "NamespaceOption": {"network": (1, "int"), "pid": (2, "int"), "ipc": (3, "int")},
    "LinuxSandboxSecurityContext": {"namespace_options": (1, "NamespaceOption")},
    "LinuxContainerResources": {
        "cpu_period": (1, "int"), "cpu_quota": (2, "int"), "cpu_shares": (3, "int"),
        "memory_limit_in_bytes": (4, "int"), "oom_score_adj": (5, "int"), "unified": (9, "map")},
    "LinuxPodSandboxConfig": {
        "cgroup_parent": (1, "text"), "security_context": (2, "LinuxSandboxSecurityContext"),
        "overhead": (4, "LinuxContainerResources"), "resources": (5, "LinuxContainerResources")},
    "PodSandboxConfig": {
        "metadata": (1, "PodSandboxMetadata"), "log_directory": (3, "text"), "labels": (6, "map"),
        "annotations": (7, "map"), "linux": (8, "LinuxPodSandboxConfig")},
    "ContainerMetadata": {"name": (1, "text"), "attempt": (2, "int")},
    "Image": {"id": (1, "text")},
    "ImageSpec": {"image": (1, "text"), "user_specified_image": (18, "text")},
    "LinuxContainerSecurityContext": {
        "capabilities": (1, "Capability"), "privileged": (2, "int"), "namespace_options": (3, "NamespaceOption"),
        "selinux_options": (4, "SELinuxOption"), "run_as_user": (5, "Int64Value"), "readonly_rootfs": (7, "int"),
        "no_new_privs": (11, "int"), "run_as_group": (12, "Int64Value"), "masked_paths": (13, "*text"),
        "readonly_paths": (14, "*text"), "seccomp": (15, "SecurityProfile"), "apparmor": (16, "SecurityProfile")},
    "Capability": {"add_capabilities": (1, "*text"), "drop_capabilities": (2, "*text")},
    "SELinuxOption": {"type": (3, "text")},
    "Int64Value": {"value": (1, "int")},
    "SecurityProfile": {"profile_type": (1, "int")},
    "Mount": {"container_path": (1, "text"), "host_path": (2, "text"), "readonly": (3, "int")},
    "LinuxContainerConfig": {
        "resources": (1, "LinuxContainerResources"), "security_context": (2, "LinuxContainerSecurityContext")},
    "ContainerConfig": {
        "metadata": (1, "ContainerMetadata"), "image": (2, "ImageSpec"), "command": (3, "*text"),
        "args": (4, "*text"), "mounts": (7, "*Mount"), "labels": (9, "map"), "annotations": (10, "map"),
        "log_path": (11, "text"), "linux": (15, "LinuxContainerConfig")},
    "Container": {"id": (1, "text"), "state": (6, "int")},
    "ContainerStatus": {"id": (1, "text"), "state": (3, "int"), "exit_code": (7, "int")},
    "PodSandbox": {"id": (1, "text")},
    "RunPodSandboxRequest": {"config": (1, "PodSandboxConfig"), "runtime_handler": (2, "text")},
    "RunPodSandboxResponse": SANDBOX_ID,
    "StopPodSandboxRequest": SANDBOX_ID,
    "RemovePodSandboxRequest": SANDBOX_ID,
    "PodSandboxStatusRequest": {**SANDBOX_ID, "verbose": (2, "int")},
    "PodSandboxStatusResponse": {"info": (2, "map")},
    "ListPodSandboxResponse": {"items": (1, "*PodSandbox")},
    "CreateContainerRequest": {
        **SANDBOX_ID, "config": (2, "ContainerConfig"), "sandbox_config": (3, "PodSandboxConfig")},
    "CreateContainerResponse": ID,
    "StartContainerRequest": ID,
    "StopContainerRequest": {**ID, "timeout": (2, "int")},
    "RemoveContainerRequest": ID,
    "ListContainersResponse": {"containers": (1, "*Container")},
    "ContainerStatusRequest": {**ID, "verbose": (2, "int")},
    "ContainerStatusResponse": {"status": (1, "ContainerStatus"), "info": (2, "map")},
    "UpdateContainerResourcesRequest": {**ID, "linux": (2, "LinuxContainerResources")},
    "UpdatePodSandboxResourcesRequest": {
        **SANDBOX_ID, "overhead": (2, "LinuxContainerResources"), "resources": (3, "LinuxContainerResources")},
    "ImageStatusRequest": {"image": (1, "ImageSpec")},
    "ImageStatusResponse": {"image": (1, "Image")},
    "ExecSyncRequest": {**ID, "cmd": (2, "*text"), "timeout": (3, "int")},
    "ExecSyncResponse": {"stdout": (1, "bytes"), "stderr": (2, "bytes"), "exit_code": (3, "int")},
}


class Failed(AssertionError):
    """The engine refused a call, or nobody answered it."""

    def __init__(self, method, status, message):
        super().__init__(f"{method}: gRPC status {status}: {message}")
        self.status, self.message = status, message


def sandbox(name, uid, parent="", annotations=None, log_directory="/run/podqos-test/pod-logs"):
    """A pod that needs no network of its own; without a parent, as crictl and kubelets without pod cgroups ask."""
    linux = {"security_context": {"namespace_options": {"network": NODE}}}
    if parent:
        linux["cgroup_parent"] = parent
    metadata = {"name": name, "uid": uid, "namespace": "default", "attempt": 0}
    return {"metadata": metadata, "log_directory": log_directory, "annotations": annotations or {}, "linux": linux}


def container(name, image, command=("sleep", "1000000"), annotations=None, **resources):
    """A container; resources are fields of LinuxContainerResources. CRI-O asks for the name that the user gave."""
    linux = {"security_context": {"namespace_options": {"network": NODE}}}
    if resources:
        linux["resources"] = resources
    return {"metadata": {"name": name, "attempt": 0}, "image": {"image": image, "user_specified_image": image},
            "command": list(command), "annotations": annotations or {}, "log_path": f"{name}.log", "linux": linux}


class Client:
    """The engine behind a socket. A pod is what run_pod gives: a pair of its id and its configuration."""

    def __init__(self, path):
        self.path = str(path)

    def call(self, method, service=SERVICE, **fields):
        """One call; the answer as a dictionary."""
        request = wire.encode(SCHEMA, f"{method}Request", fields) if fields else b""
        try:
            status, message, body = exchange(self.path, f"{service}/{method}", request)
        except OSError as error:
            raise Failed(method, UNAVAILABLE, f"{self.path}: {error}") from error
        if status != OK:
            raise Failed(method, status, message)
        return wire.decode(SCHEMA, f"{method}Response", body) if f"{method}Response" in SCHEMA else {}

    def run_pod(self, config, handler):
        done = self.call("RunPodSandbox", config=config, runtime_handler=handler)
        return done["pod_sandbox_id"], config

    def create(self, pod, config):
        identifier, sandbox_config = pod
        done = self.call("CreateContainer", pod_sandbox_id=identifier, config=config, sandbox_config=sandbox_config)
        return done["container_id"]

    def start(self, identifier):
        self.call("StartContainer", container_id=identifier)

    def stop(self, identifier):
        """At once: as PID 1 a sleep does not hear SIGTERM."""
        self.call("StopContainer", container_id=identifier, timeout=0)

    def remove(self, identifier):
        self.call("RemoveContainer", container_id=identifier)

    def stop_pod(self, pod):
        self.call("StopPodSandbox", pod_sandbox_id=pod[0])

    def remove_pod(self, pod):
        """Its containers go with it."""
        self.call("RemovePodSandbox", pod_sandbox_id=pod[0])

    def update(self, identifier, **resources):
        self.call("UpdateContainerResources", container_id=identifier, linux=resources)

    def exec(self, identifier, *command, timeout=patience.PATIENCE):
        """Runs a command to its end; its standard output."""
        done = self.call("ExecSync", container_id=identifier, cmd=list(command), timeout=timeout)
        if done["exit_code"] != 0:
            raise AssertionError(f"{' '.join(command)}: exit {done['exit_code']}\n{done['stderr'].decode()}")
        return done["stdout"].decode()

    def status(self, identifier):
        """(what CRI says of the container, what the engine adds: its pid and the runtime's config)."""
        done = self.call("ContainerStatus", container_id=identifier, verbose=1)
        return done["status"], json.loads(done["info"]["info"])

    def pid(self, identifier):
        return self.status(identifier)[1]["pid"]

    def pod_info(self, pod):
        """What the engine says of a pod's own container: its pid and the runtime's config."""
        done = self.call("PodSandboxStatus", pod_sandbox_id=pod[0], verbose=1)
        return json.loads(done["info"]["info"])

    def has_image(self, name):
        """Whether a pod that names the image finds it without a registry."""
        return self.call("ImageStatus", service=IMAGES, image={"image": name})["image"] is not None

    def containers(self):
        """{id: state} of all."""
        return {each["id"]: each["state"] for each in self.call("ListContainers")["containers"]}

    def pods(self):
        """Ids of all."""
        return [each["id"] for each in self.call("ListPodSandbox")["items"]]

    def wait(self):
        """Until the engine answers."""
        for _ in patience.turns():
            try:
                return self.call("ListPodSandbox")  # Version is answered before the engine has seen to what it left
            except Failed as refused:
                last = refused
        raise last


def exchange(path, method, message):
    """One gRPC call, whose message follows a byte for "not compressed" and its length: (status, reason, answer)."""
    import h2.connection  # here, for only the guest's root has it
    import h2.events

    connection = h2.connection.H2Connection()
    connection.initiate_connection()
    stream = connection.get_next_available_stream_id()
    connection.send_headers(stream, [
        (":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", method),
        ("content-type", "application/grpc"), ("te", "trailers")])
    connection.send_data(stream, struct.pack(">BI", 0, len(message)) + message, end_stream=True)
    headers, body, ended = {}, b"", False
    with socket.socket(socket.AF_UNIX) as transport:
        transport.settimeout(patience.PATIENCE)
        transport.connect(path)
        while not ended:
            transport.sendall(connection.data_to_send())
            received = transport.recv(65536)
            if not received:
                raise ConnectionResetError(f"{method}: the engine has hung up")
            for event in connection.receive_data(received):
                if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                    headers.update((_text(name), _text(value)) for name, value in event.headers)
                elif isinstance(event, h2.events.DataReceived):
                    body += event.data
                    connection.acknowledge_received_data(event.flow_controlled_length, stream)
                elif isinstance(event, h2.events.StreamReset):
                    raise ConnectionResetError(f"{method}: HTTP/2 error {event.error_code}")
                ended = ended or isinstance(event, h2.events.StreamEnded)
    return int(headers["grpc-status"]), headers.get("grpc-message", ""), body[5:]


def _text(word):
    return word.decode() if isinstance(word, bytes) else word
