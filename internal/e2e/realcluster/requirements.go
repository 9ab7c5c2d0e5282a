package realcluster

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// A requirement is a program of the system and the Debian package that has it.
type requirement struct{ program, pkg string }

func requirements() []requirement {
	return []requirement{{"runc", "runc"}, {"nft", "nftables"}, {"ip", "iproute2"}, {"mount", "mount"}}
}

// CheckRequirements says what is missing here for a cluster with nodes, and how
// to get it.
func CheckRequirements() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("nodes want Linux, and this is %s", runtime.GOOS)
	}
	return missing(os.Geteuid(), exec.LookPath)
}

func missing(uid int, lookPath func(string) (string, error)) error {
	var programs, packages []string
	for _, r := range requirements() {
		if _, err := lookPath(r.program); err != nil {
			programs, packages = append(programs, r.program), append(packages, r.pkg)
		}
	}
	var lacks, remedies []string
	if len(programs) > 0 {
		lacks = append(lacks, "these programs, which are not on PATH: "+strings.Join(programs, ", "))
		remedies = append(remedies, "apt-get install --no-install-recommends "+strings.Join(packages, " "))
	}
	if uid != 0 {
		lacks = append(lacks, "the rights of root, to make namespaces, mounts and control groups")
		remedies = append(remedies, "run it as root")
	}
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("nodes want %s (%s)", strings.Join(lacks, ", and "), strings.Join(remedies, "; "))
}
