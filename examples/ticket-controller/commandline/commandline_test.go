package commandline

import (
	"errors"
	"flag"
	"io"
	"testing"
)

func TestWhatPackageFlagSaysIsSaidReadably(t *testing.T) {
	t.Parallel()
	other := errors.New("something else")
	if got := Readable(other); !errors.Is(got, other) {
		t.Errorf("got %v", got)
	}
	for want, args := range map[string][]string{"there is no flag --no-such": {"--no-such"}, "--file: wants a value": {"--file"}} {
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		fs.String("file", "", "")
		if got := Readable(fs.Parse(args)); got.Error() != want {
			t.Errorf("%q: got %v, want %s", args, got, want)
		}
	}
}

func TestAFlagsVariable(t *testing.T) {
	t.Parallel()
	if got := Variable("BOOKING_SERVER", "reference-lag"); got != "BOOKING_SERVER_REFERENCE_LAG" {
		t.Errorf("got %s", got)
	}
}

func TestAnAddressHasAHostAndAPort(t *testing.T) {
	t.Parallel()
	for v, good := range map[string]bool{
		"127.0.0.1:8081": true, ":1": true, "[::1]:0": true, "name.example:65535": true,
		"": false, "here": false, "8081": false, "127.0.0.1:": false, "127.0.0.1:65536": false, "a b:1": false, "http://x:1": false,
	} {
		if err := Address(v); (err == nil) != good {
			t.Errorf("%q: %v", v, err)
		}
	}
}
