"""What a kubelet asks an engine for when it starts a pod of a manifest, as far as the pod of podqos-nri goes.

    made = manifest_pod.ManifestPod(daemon_set["spec"]["template"], {"podqos": {"podqos.json": "{}"}}, directory)
    sandbox, container = made.sandbox("podqos-nri-1"), made.container()

It follows Kubernetes 1.36: pkg/kubelet/kuberuntime (security_context.go, kuberuntime_container.go), and for volumes
pkg/volume/hostpath. What it does not know of a manifest it refuses, so that no field goes unheeded.
"""

import pathlib

import cri

PROFILES = {"RuntimeDefault": 0, "Unconfined": 1}  # SecurityProfile.ProfileType
# pkg/securitycontext/util.go, for ProcMount "Default".
MASKED = ("/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
          "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap")
READONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
DIRECTORY_MODE = 0o755  # of what DirectoryOrCreate makes
# What says nothing to an engine: scheduling, probes, and what the kubelet does with the pod later.
UNHEARD_OF_POD = {"priorityClassName", "automountServiceAccountToken", "enableServiceLinks", "nodeSelector", "tolerations",
                  "terminationGracePeriodSeconds"}
UNHEARD_OF_CONTAINER = {"imagePullPolicy", "ports", "livenessProbe", "readinessProbe"}


def taken(fields, known):
    """The fields by name; a manifest that has others is refused."""
    if others := set(fields) - set(known):
        raise ValueError(f"nothing here knows what a kubelet does with {', '.join(sorted(others))}")
    return fields


class ManifestPod:
    """A pod template with one container, and the ConfigMaps ({name: data}) that it mounts.

    These, and logs below the pod's uid, are put into the directory.
    """

    def __init__(self, template, config_maps, directory):
        self.annotations = template["metadata"].get("annotations", {})
        self.labels = template["metadata"]["labels"]
        self.spec = taken(template["spec"], {"hostPID", "containers", "volumes", *UNHEARD_OF_POD})
        (self.main,) = self.spec["containers"]
        taken(self.main, {"name", "image", "resources", "securityContext", "volumeMounts", *UNHEARD_OF_CONTAINER})
        self.config_maps, self.directory = config_maps, pathlib.Path(directory)

    def namespaces(self):
        return {"pid": cri.NODE} if self.spec.get("hostPID") else {"pid": 1}  # NamespaceMode CONTAINER

    def sandbox(self, uid, parent):
        config = cri.sandbox(uid, uid, parent, self.annotations, log_directory=str(self.directory / uid))
        config["labels"] = {**self.labels, "io.kubernetes.pod.name": uid, "io.kubernetes.pod.uid": uid}
        # A network of its own.
        config["linux"]["security_context"] = {"namespace_options": self.namespaces()}
        return config

    def container(self):
        main = self.main
        config = cri.container(main["name"], main["image"], command=(), **self.resources())
        config.update(mounts=[self.mount(each) for each in main["volumeMounts"]])
        config["linux"]["security_context"] = self.security_context()
        return config

    def resources(self):
        """Of a container without a CPU limit that is critical to the node."""
        wanted = taken(self.main["resources"], {"requests", "limits"})
        cores = int(wanted["requests"]["cpu"].removesuffix("m"))
        limits = taken(wanted["limits"], {"memory"})
        return {"cpu_shares": max(2, cores * 1024 // 1000), "oom_score_adj": -997,
                "memory_limit_in_bytes": int(limits["memory"].removesuffix("Mi")) << 20}

    def security_context(self):
        known = {"privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsUser", "runAsGroup",
                 "capabilities", "seccompProfile", "appArmorProfile", "seLinuxOptions"}
        asked = taken(self.main["securityContext"], known)
        return {"privileged": int(asked["privileged"]), "readonly_rootfs": int(asked["readOnlyRootFilesystem"]),
                "no_new_privs": int(not asked["allowPrivilegeEscalation"]), "namespace_options": self.namespaces(),
                "run_as_user": {"value": asked["runAsUser"]}, "run_as_group": {"value": asked["runAsGroup"]},
                "capabilities": {"add_capabilities": asked["capabilities"]["add"],
                                 "drop_capabilities": asked["capabilities"]["drop"]},
                "seccomp": {"profile_type": PROFILES[asked["seccompProfile"]["type"]]},
                "apparmor": {"profile_type": PROFILES[asked["appArmorProfile"]["type"]]},
                "selinux_options": {"type": asked["seLinuxOptions"]["type"]},
                "masked_paths": list(MASKED), "readonly_paths": list(READONLY)}

    def mount(self, wanted):
        taken(wanted, {"name", "mountPath", "readOnly"})
        (volume,) = (each for each in self.spec["volumes"] if each["name"] == wanted["name"])
        return {"container_path": wanted["mountPath"], "host_path": str(self.source(volume)),
                "readonly": int(wanted.get("readOnly", False))}

    def source(self, volume):
        """Where the volume is on the node; it is made if that is asked for."""
        if "configMap" in taken(volume, {"name", "configMap", "hostPath"}):
            name = volume["configMap"]["name"]
            place = self.directory / name
            place.mkdir(parents=True, exist_ok=True)
            for file, text in self.config_maps[name].items():
                (place / file).write_text(text, encoding="utf-8")
            return place
        place = pathlib.Path(volume["hostPath"]["path"])
        if volume["hostPath"]["type"] == "DirectoryOrCreate" and not place.exists():
            place.mkdir(parents=True)
            place.chmod(DIRECTORY_MODE)
        if not place.is_dir():
            raise ValueError(f"{place} is no directory")
        return place
