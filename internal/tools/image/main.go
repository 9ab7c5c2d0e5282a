// Command image does for the controller's image what a container engine does not:
//
//	image roots                              prints the certificates of public authorities, as PEM
//	image settle -moment SECONDS < IN > OUT  takes out of a saved image whatever tells when and
//	                                         where it was built, so that the same content is the
//	                                         same image
//
// The authorities are those of the Go project's copy of Mozilla's list, at the version
// that this module's go.mod pins.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "roots":
		return roots(out)
	case len(args) > 0 && args[0] == "settle":
		flags := flag.NewFlagSet("settle", flag.ContinueOnError)
		moment := flags.Int64("moment", 0, "what is written down as the time of all, in seconds since 1970")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return settle(in, out, time.Unix(*moment, 0).UTC())
	}
	return errors.New("want one of: roots, settle -moment SECONDS")
}
