package kube

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

func TestAListThatFailsIsNoErrorOfTheReflectorsAsWell(t *testing.T) {
	t.Parallel()
	for verbosity, want := range []string{"", `"err"="refused"`} {
		var lines []string
		log := onceTold(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: verbosity}))
		log.WithName("x").WithValues("a", 1).Error(errors.New("refused"), failedToWatch, "reflector", "tickets")
		if got := strings.Join(lines, "\n"); (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, `"error"=`) {
			t.Errorf("at verbosity %d: %q", verbosity, got)
		}
		log.Error(errors.New("torn"), "Unable to understand watch event")
		if got := lines[len(lines)-1]; !strings.Contains(got, `"error"="torn"`) {
			t.Errorf("what only the Reflector tells is lost: %q", got)
		}
	}
	for verbosity, want := range []int{1, 2} {
		n := 0
		log := onceTold(funcr.New(func(string, string) { n++ }, funcr.Options{Verbosity: verbosity}))
		log.Info(bookmarkExpired, "err", "x")
		log.Info("something else")
		if n != want {
			t.Errorf("at verbosity %d: %d lines, want %d", verbosity, n, want)
		}
	}
	onceTold(logr.Discard()).Error(nil, failedToWatch)
}
