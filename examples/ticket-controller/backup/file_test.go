package backup_test

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tetherkube/tether/examples/ticket-controller/backup"
)

var taken = time.Date(2026, 5, 1, 2, 3, 4, 0, time.UTC)

func ticket(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "flights.com/v1", "kind": "Ticket",
		"metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name},
		"spec":     map[string]any{"from": "ICN", "fieldOfTheFuture": int64(7)},
	}}
}

func tickets(n int, err error) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for i := range n {
			if !yield(ticket(fmt.Sprintf("t%d", i)), nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func written(t *testing.T, n int) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tickets.json")
	if got, err := backup.Create(path, backup.Header{Cluster: "c", Taken: taken}, tickets(n, nil)); err != nil || got != n {
		t.Fatal(got, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

func TestWhatWasWrittenIsReadAgainWithFieldsThatNobodyKnows(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 3} {
		path, _ := written(t, n)
		got, err := backup.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		want := backup.Backup{Header: backup.Header{Kind: backup.Kind, Version: backup.Version, Cluster: "c", Taken: taken}}
		for i := range n {
			want.Tickets = append(want.Tickets, ticket(fmt.Sprintf("t%d", i)))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d Tickets (-want +got):\n%s", n, d)
		}
	}
}

func TestAFileThatIsNotWholeIsNotRead(t *testing.T) {
	t.Parallel()
	path, content := written(t, 2)
	write := func(raw []byte) error {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backup.Open(path)
		return err
	}
	for n := range len(content) - 1 { // the last byte ends the last line
		if err := write(content[:n]); err == nil {
			t.Errorf("read, though cut after %d of %d bytes", n, len(content))
		}
	}
	for i := range content[:len(content)-1] {
		damaged := append([]byte{}, content...)
		damaged[i] ^= 1
		if err := write(damaged); err == nil {
			t.Errorf("read, though byte %d is %q and not %q", i, damaged[i], content[i])
		}
	}
	lines := strings.SplitAfter(string(content), "\n")
	for name, x := range map[string]struct{ content, want string }{
		"empty":           {"", "empty"},
		"other":           {"kind: Ticket\n", "line 1: it is no TicketBackup"},
		"newer":           {strings.Replace(string(content), `"version":1`, `"version":2`, 1), "version 2"},
		"a Ticket less":   {lines[0] + lines[1] + lines[3], "damaged"},
		"no last line":    {lines[0] + lines[1] + lines[2], "last line is missing"},
		"only a header":   {lines[0], "last line is missing"},
		"edited":          {strings.Replace(string(content), "ICN", "JFK", 1), "damaged, or was edited"},
		"a line too many": {string(content) + lines[1], "last line is missing"},
	} {
		if err := write([]byte(x.content)); err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want the file and %q", name, err, x.want)
		}
	}
}

func TestWhatStoodThereStaysUntilTheNewOneIsWhole(t *testing.T) {
	t.Parallel()
	path, content := written(t, 1)
	torn := errors.New("the list was torn")
	if _, err := backup.Create(path, backup.Header{}, tickets(2, torn)); !errors.Is(err, torn) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadFile(path)
	if err != nil || string(left) != string(content) {
		t.Errorf("%v: the old file is changed", err)
	}
	if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
	if hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.*")); len(hidden) != 0 {
		t.Errorf("left: %v", hidden)
	}
	dir := filepath.Dir(path)
	if _, err := backup.Create(dir, backup.Header{}, tickets(1, nil)); err == nil || !strings.HasPrefix(err.Error(), dir+": it is there, and no regular file (d") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := backup.Create(os.DevNull, backup.Header{}, tickets(1, nil)); err == nil || !strings.Contains(err.Error(), "name one, or one that is not there yet") {
		t.Errorf("a device: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Create(link, backup.Header{}, tickets(2, nil)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is a %v, %v", info.Mode(), err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) == string(content) {
		t.Errorf("%v: what the link leads to was not written", err)
	}
	folder := filepath.Join(path, "no")
	_, err = backup.Create(filepath.Join(folder, "such"), backup.Header{}, tickets(1, nil))
	if want := folder + ": no file can be made there: not a directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
