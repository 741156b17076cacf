// The least that a hook written in Go does: it parses the state and the bundle's config.json, and ends. The types have
// the fields of the runtime specification that engines fill, as hooks in Go get them from the specification's package.
package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

type state struct {
	Version     string            `json:"ociVersion"`
	ID          string            `json:"id"`
	Status      string            `json:"status"`
	Pid         int               `json:"pid,omitempty"`
	Bundle      string            `json:"bundle"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type spec struct {
	Version     string            `json:"ociVersion"`
	Process     *process          `json:"process,omitempty"`
	Root        *root             `json:"root,omitempty"`
	Hostname    string            `json:"hostname,omitempty"`
	Domainname  string            `json:"domainname,omitempty"`
	Mounts      []mount           `json:"mounts,omitempty"`
	Hooks       *hooks            `json:"hooks,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Linux       *linux            `json:"linux,omitempty"`
}

type process struct {
	Terminal bool `json:"terminal,omitempty"`
	User     struct {
		UID            uint32   `json:"uid"`
		GID            uint32   `json:"gid"`
		Umask          *uint32  `json:"umask,omitempty"`
		AdditionalGids []uint32 `json:"additionalGids,omitempty"`
	} `json:"user"`
	Args         []string `json:"args,omitempty"`
	Env          []string `json:"env,omitempty"`
	Cwd          string   `json:"cwd"`
	Capabilities *struct {
		Bounding    []string `json:"bounding,omitempty"`
		Effective   []string `json:"effective,omitempty"`
		Inheritable []string `json:"inheritable,omitempty"`
		Permitted   []string `json:"permitted,omitempty"`
		Ambient     []string `json:"ambient,omitempty"`
	} `json:"capabilities,omitempty"`
	Rlimits []struct {
		Type string `json:"type"`
		Hard uint64 `json:"hard"`
		Soft uint64 `json:"soft"`
	} `json:"rlimits,omitempty"`
	NoNewPrivileges bool   `json:"noNewPrivileges,omitempty"`
	ApparmorProfile string `json:"apparmorProfile,omitempty"`
	OOMScoreAdj     *int   `json:"oomScoreAdj,omitempty"`
	SelinuxLabel    string `json:"selinuxLabel,omitempty"`
}

type root struct {
	Path     string `json:"path"`
	Readonly bool   `json:"readonly,omitempty"`
}

type mount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type,omitempty"`
	Source      string   `json:"source,omitempty"`
	Options     []string `json:"options,omitempty"`
}

type hook struct {
	Path    string   `json:"path"`
	Args    []string `json:"args,omitempty"`
	Env     []string `json:"env,omitempty"`
	Timeout *int     `json:"timeout,omitempty"`
}

type hooks struct {
	Prestart        []hook `json:"prestart,omitempty"`
	CreateRuntime   []hook `json:"createRuntime,omitempty"`
	CreateContainer []hook `json:"createContainer,omitempty"`
	StartContainer  []hook `json:"startContainer,omitempty"`
	Poststart       []hook `json:"poststart,omitempty"`
	Poststop        []hook `json:"poststop,omitempty"`
}

type linux struct {
	Sysctl      map[string]string `json:"sysctl,omitempty"`
	Resources   *resources        `json:"resources,omitempty"`
	CgroupsPath string            `json:"cgroupsPath,omitempty"`
	Namespaces  []struct {
		Type string `json:"type"`
		Path string `json:"path,omitempty"`
	} `json:"namespaces,omitempty"`
	Seccomp *struct {
		DefaultAction   string   `json:"defaultAction"`
		DefaultErrnoRet *uint    `json:"defaultErrnoRet,omitempty"`
		Architectures   []string `json:"architectures,omitempty"`
		Syscalls        []struct {
			Names    []string `json:"names"`
			Action   string   `json:"action"`
			ErrnoRet *uint    `json:"errnoRet,omitempty"`
			Args     []struct {
				Index    uint   `json:"index"`
				Value    uint64 `json:"value"`
				ValueTwo uint64 `json:"valueTwo,omitempty"`
				Op       string `json:"op"`
			} `json:"args,omitempty"`
		} `json:"syscalls,omitempty"`
	} `json:"seccomp,omitempty"`
	RootfsPropagation string   `json:"rootfsPropagation,omitempty"`
	MaskedPaths       []string `json:"maskedPaths,omitempty"`
	ReadonlyPaths     []string `json:"readonlyPaths,omitempty"`
	MountLabel        string   `json:"mountLabel,omitempty"`
}

type resources struct {
	Devices []struct {
		Allow  bool   `json:"allow"`
		Type   string `json:"type,omitempty"`
		Major  *int64 `json:"major,omitempty"`
		Minor  *int64 `json:"minor,omitempty"`
		Access string `json:"access,omitempty"`
	} `json:"devices,omitempty"`
	Memory *struct {
		Limit       *int64 `json:"limit,omitempty"`
		Reservation *int64 `json:"reservation,omitempty"`
		Swap        *int64 `json:"swap,omitempty"`
	} `json:"memory,omitempty"`
	CPU *struct {
		Shares *uint64 `json:"shares,omitempty"`
		Quota  *int64  `json:"quota,omitempty"`
		Period *uint64 `json:"period,omitempty"`
		Cpus   string  `json:"cpus,omitempty"`
		Mems   string  `json:"mems,omitempty"`
	} `json:"cpu,omitempty"`
	Pids *struct {
		Limit int64 `json:"limit"`
	} `json:"pids,omitempty"`
	HugepageLimits []struct {
		Pagesize string `json:"pageSize"`
		Limit    uint64 `json:"limit"`
	} `json:"hugepageLimits,omitempty"`
	Unified map[string]string `json:"unified,omitempty"`
}

func main() {
	var s state
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		os.Exit(1)
	}
	text, err := os.ReadFile(filepath.Join(s.Bundle, "config.json"))
	if err != nil {
		os.Exit(1)
	}
	var c spec
	if err := json.Unmarshal(text, &c); err != nil {
		os.Exit(1)
	}
}
