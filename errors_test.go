package tether_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/tetherkube/tether"
)

func TestTheErrorWrappersKeepTheErrorAndItsMessage(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(error) error{
		"Terminal":   tether.Terminal,
		"NoEffect":   tether.NoEffect,
		"RetryAfter": func(err error) error { return tether.RetryAfter(err, time.Second) },
		"Reason":     func(err error) error { return tether.Reason("SoldOut", err) },
	} {
		if wrap(nil) != nil {
			t.Errorf("%s(nil) is not nil", name)
		}
		err := wrap(fmt.Errorf("read: %w", io.ErrUnexpectedEOF))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s hides the error", name)
		}
		if err.Error() != "read: unexpected EOF" {
			t.Errorf("%s changes the message to %q", name, err)
		}
	}
}

func TestResultsNameThemselves(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]tether.Result{
		"done": tether.Done, "after 1m0s": tether.After(time.Minute), "after 0s": tether.After(-time.Minute),
		"backoff: Waiting": tether.Backoff("Waiting", "for the sun"),
	} {
		if r.String() != want {
			t.Errorf("got %q, want %q", r, want)
		}
	}
	if (tether.Result{}) != tether.Done {
		t.Error("Done is not the zero Result")
	}
}
