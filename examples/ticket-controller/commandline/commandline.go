// Package commandline has what the command lines of the controller and of the booking
// server have in common.
package commandline

import (
	"fmt"
	"strings"
)

// Variable is the environment variable of a flag: the flag's name in capitals, with
// underscores, after the program's prefix, as TICKET_CONTROLLER.
func Variable(prefix, flag string) string {
	return prefix + "_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
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
