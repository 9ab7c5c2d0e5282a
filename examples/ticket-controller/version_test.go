package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestVersionTellsWhatTheProgramWasBuiltFrom(t *testing.T) {
	t.Parallel()
	var out, complaint strings.Builder
	if code := dispatch(t.Context(), []string{"version"}, &out, &complaint, os.Getenv, nil); code != 0 || complaint.Len() > 0 {
		t.Errorf("status %d, %s", code, &complaint)
	}
	want := regexp.MustCompile(`^ticket-controller unreleased\ncommit     \S.*\ngo         go1\.\S+ \w+/\w+\nkubernetes \S+\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("it says\n%s", &out)
	}
}
