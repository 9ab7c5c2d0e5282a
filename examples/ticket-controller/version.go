package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is the release's, which the linker sets: -X main.version=v1.2.3.
var version = "unreleased"

// versions tells what this program was built from, by what the linker knows.
func versions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	setting := func(key string) string {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
		return ""
	}
	commit := setting("vcs.revision")
	switch {
	case commit == "":
		commit = "unknown: it was built outside of its repository"
	case setting("vcs.modified") == "true":
		commit += ", and changes that are not committed"
	}
	kubernetes := "unknown"
	for _, m := range info.Deps {
		if m.Path == "k8s.io/client-go" {
			kubernetes = strings.Replace(m.Version, "v0.", "v1.", 1)
		}
	}
	return fmt.Sprintf("ticket-controller %s\ncommit     %s\ngo         %s %s/%s\nkubernetes %s\n",
		version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, kubernetes)
}
