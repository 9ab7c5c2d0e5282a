package machine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// cgroupRoot is where control groups are.
const cgroupRoot = "/sys/fs/cgroup"

// Cgroup makes a control group in every hierarchy that there is, as a kubelet
// wants to find it. The name is absolute and has one or more parts; the first one
// is swept.
func Cgroup(name string, sweeper *Sweeper) error {
	first := strings.Split(strings.Trim(name, "/"), "/")[0]
	unified, separate, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range append(separate, unified...) {
		// Also where nothing is made here: containers may be counted there.
		if err := sweeper.Cgroup(filepath.Join(root, first)); err != nil {
			return err
		}
	}
	if len(separate) == 0 && len(unified) > 0 {
		return unifiedGroup(unified[0], name)
	}
	for _, root := range separate {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return fmt.Errorf("making a control group: %w", err)
		}
	}
	return nil
}

// unifiedGroup makes a group of version 2 whose children have the controllers
// that its parent may give away.
func unifiedGroup(root, name string) error {
	dir := root
	for _, part := range strings.Split(strings.Trim(name, "/"), "/") {
		if err := giveControllers(dir); err != nil {
			return err
		}
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("making a control group: %w", err)
		}
	}
	return giveControllers(dir)
}

func giveControllers(dir string) error {
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(has)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("giving the controller %s to groups below %s: %w (processes in that group are in the way: move them to one below it)", controller, dir, err)
		}
	}
	return nil
}

// hierarchies are the mounts of version 2 and of version 1.
func hierarchies() (unified, separate []string, err error) {
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, nil, err
	}
	defer mounts.Close()
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		field := strings.Fields(lines.Text())
		if len(field) < 3 || !strings.HasPrefix(field[1], cgroupRoot) {
			continue
		}
		switch field[2] {
		case "cgroup2":
			unified = append(unified, field[1])
		case "cgroup":
			separate = append(separate, field[1])
		}
	}
	return unified, separate, lines.Err()
}
