package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// grace is how long a command may take to end when it is told to.
const grace = 10 * time.Second

// runCommand runs the command in the foreground, as a shell would, and answers
// with its status, or 128 and the number of the signal that ended it. Ctx ends
// when somebody asked to stop, or when the control plane has gone.
func runCommand(ctx, asked context.Context, again <-chan os.Signal, command []string, binDir string, env []string) (int, error) {
	path, err := lookPath(command[0], binDir)
	if err != nil {
		return 127, err
	}
	cmd := exec.Command(path, command[1:]...)
	cmd.Args[0] = command[0]
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = attributes()

	started, ended := make(chan error), make(chan error, 1)
	go func() {
		// The command is to end with this program, and Linux ties it to the
		// thread that started it.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return 126, err
	}
	select {
	case err = <-ended:
		return status(err)
	case <-ctx.Done():
	}
	var broken error
	if asked.Err() == nil { // the control plane is gone
		broken = context.Cause(ctx)
	}
	// A terminal sends a Ctrl-C to all that run in the foreground: the command
	// has it already, and a second one may mean more to it.
	if asked.Err() == nil || signalOf(asked) != syscall.SIGINT || !hasTerminal() {
		_ = cmd.Process.Signal(signalOf(asked)) // it may have ended just now
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err = <-ended:
	case <-again:
		err = kill(cmd, ended)
	case <-late.C:
		fmt.Fprintf(os.Stderr, "cluster: %s did not end within %s, and was killed\n", command[0], grace)
		err = kill(cmd, ended)
	}
	code, err := status(err)
	if broken != nil {
		code = max(code, 1)
	}
	return code, errors.Join(broken, err)
}

func kill(cmd *exec.Cmd, ended <-chan error) error {
	_ = cmd.Process.Kill() // it may have ended just now
	return <-ended
}

func status(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 1, err
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// lookPath looks where the command itself will: in the folder with the control
// plane's own kubectl before the rest of PATH.
func lookPath(name, binDir string) (string, error) {
	if !strings.ContainsRune(name, filepath.Separator) {
		if path, err := exec.LookPath(filepath.Join(binDir, name)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(name)
}

func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	return tty.Close() == nil
}
