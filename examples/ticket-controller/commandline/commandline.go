// Package commandline has what the command lines of the controller and of the booking
// server have in common.
package commandline

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Variable is the environment variable of a flag: the flag's name in capitals, with
// underscores, after the program's prefix, as TICKET_CONTROLLER.
func Variable(prefix, flag string) string {
	return prefix + "_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// ErrEmpty is of a flag that is given and says nothing, as where a variable of the
// shell was empty: to take it for the default would be a guess.
var ErrEmpty = errors.New("it is empty: give it a value, or leave the flag off")

// Address says what is wrong with an address to listen on, nil for nothing.
func Address(v string) error {
	host, port, err := net.SplitHostPort(v)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(host, " /") {
		return fmt.Errorf("%.60q is not an address: want host and port, as 127.0.0.1:8081", v)
	}
	return nil
}

// Readable says with two dashes, and with the remedy, what package flag says in its own
// way of a flag that does not exist or that lacks its value. Any other error is
// returned as it is.
func Readable(err error) error {
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		return fmt.Errorf("there is no flag --%.40s", strings.TrimPrefix(name, "-"))
	}
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return fmt.Errorf("--%s: wants a value", strings.TrimPrefix(name, "-"))
	}
	return err
}
