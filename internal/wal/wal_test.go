package wal_test

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tetherkube/tether/internal/wal"
)

func records(texts ...string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, s := range texts {
			if !yield([]byte(s)) {
				return
			}
		}
	}
}

func create(t *testing.T, path string, o wal.Options, snapshot ...string) *wal.Log {
	t.Helper()
	l, err := wal.Create(path, records(snapshot...), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func add(t *testing.T, l *wal.Log, texts ...string) {
	t.Helper()
	if err := l.Append(slices.Collect(records(texts...))...); err != nil {
		t.Fatal(err)
	}
}

// read is what a file has.
func read(path string) (found []string, tail wal.Tail, err error) {
	tail, err = wal.Read(path, func(r []byte) error {
		found = append(found, string(r))
		return nil
	})
	return found, tail, err
}

func TestWhatWasAppendedIsReadInOrder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	l := create(t, path, wal.Options{}, "a", "")
	add(t, l, "b", "c")
	add(t, l, strings.Repeat("d", 3<<20))
	got, tail, err := read(path)
	if err != nil || tail.Lost != 0 {
		t.Fatalf("%v, %v", tail, err)
	}
	if diff := cmp.Diff([]string{"a", "", "b", "c", strings.Repeat("d", 3<<20)}, got); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: want a file of mode 0600", info.Mode(), err)
	}
	if _, _, err := read(path + "no"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// sizes are the lengths of the file after its snapshot and after each frame.
func written(t *testing.T) (data []byte, sizes []int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	size := func() {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data, sizes = raw, append(sizes, len(raw))
	}
	l := create(t, path, wal.Options{}, `{"snapshot":1}`, `{"snapshot":2}`)
	size()
	for i := range 4 {
		add(t, l, fmt.Sprintf(`{"first of":%d}`, i), fmt.Sprintf(`{"second of":%d}`, i))
		size()
	}
	return data, sizes
}

func TestAFileThatIsCutAnywhereHasAllFramesBeforeTheCutAndNoPartOfOne(t *testing.T) {
	t.Parallel()
	data, sizes := written(t)
	path := filepath.Join(t.TempDir(), "log")
	for n := range len(data) + 1 {
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		got, tail, err := read(path)
		if n < sizes[0] {
			if corrupt := (*wal.CorruptError)(nil); !errors.As(err, &corrupt) || corrupt.Path != path {
				t.Errorf("cut at %d, within the snapshot: %v", n, err)
			}
			continue
		}
		frames := 0
		for frames+1 < len(sizes) && sizes[frames+1] <= n {
			frames++
		}
		want := wal.Tail{Path: path, Offset: int64(sizes[frames]), Lost: int64(n - sizes[frames])}
		if err != nil || len(got) != 2+2*frames || tail != want {
			t.Errorf("cut at %d: %d records, %+v, %v; want %+v", n, len(got), tail, err, want)
		}
	}
}

func TestAByteThatIsWrongIsAnErrorUnlessItIsInTheLastFrame(t *testing.T) {
	t.Parallel()
	data, sizes := written(t)
	path := filepath.Join(t.TempDir(), "log")
	last := sizes[len(sizes)-2]
	for i := range data {
		for _, bit := range []byte{1, 0x80, 0xff} {
			broken := slices.Clone(data)
			broken[i] ^= bit
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			got, tail, err := read(path)
			if i < last {
				if corrupt := (*wal.CorruptError)(nil); !errors.As(err, &corrupt) || corrupt.Offset > int64(i) {
					t.Errorf("byte %d ^ %#x: %v, %v, want an error that names a place before it", i, bit, tail, err)
				}
				continue
			}
			if err != nil || tail.Offset != int64(last) || tail.Lost != int64(len(data)-last) || len(got) != 2+2*3 {
				t.Errorf("byte %d ^ %#x of the last frame: %d records, %v, %v", i, bit, len(got), tail, err)
			}
		}
	}
}

func TestAFrameThatIsMissingOrThereTwiceIsAnError(t *testing.T) {
	t.Parallel()
	data, sizes := written(t)
	path := filepath.Join(t.TempDir(), "log")
	for name, broken := range map[string][]byte{
		"missing": slices.Concat(data[:sizes[1]], data[sizes[2]:]),
		"twice":   slices.Concat(data[:sizes[2]], data[sizes[1]:]),
		"empty":   {},
	} {
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(path); !errors.As(err, new(*wal.CorruptError)) || !strings.Contains(err.Error(), "restore the file from a copy") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARecordThatMeansNothingIsAnErrorThatNamesItsPlace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	add(t, create(t, path, wal.Options{}, "a"), "b")
	_, err := wal.Read(path, func(r []byte) error {
		if string(r) == "b" {
			return errors.New("no sense")
		}
		return nil
	})
	if corrupt := (*wal.CorruptError)(nil); !errors.As(err, &corrupt) || corrupt.Offset == 0 || !strings.Contains(err.Error(), "no sense") {
		t.Errorf("got %v", err)
	}
}

// disk is one that does as it is told: so many bytes fit, and then no more.
type disk struct {
	wal.File
	space       int
	sync, trunc error
}

var errFull = fmt.Errorf("test: %w", syscall.ENOSPC)

func (d *disk) WriteAt(b []byte, at int64) (int, error) {
	if len(b) > d.space {
		n, err := d.File.WriteAt(b[:d.space], at)
		d.space = 0
		return n, errors.Join(err, errFull)
	}
	d.space -= len(b)
	return d.File.WriteAt(b, at)
}

func (d *disk) Sync() error { return errors.Join(d.sync, d.File.Sync()) }

func (d *disk) Truncate(n int64) error {
	if d.trunc != nil {
		return d.trunc
	}
	return d.File.Truncate(n)
}

const plenty = 1 << 30

func TestAWriteThatFailsLeavesNothingAndTheNextOneGoesOn(t *testing.T) {
	t.Parallel()
	failing := errors.New("input/output error")
	for name, c := range map[string]struct {
		breaks func(*disk)
		mends  func(*disk)
		want   error
	}{
		"a full disk":                          {func(d *disk) { d.space = 30 }, func(d *disk) { d.space = plenty }, syscall.ENOSPC},
		"a sync that fails":                    {func(d *disk) { d.sync = failing }, func(d *disk) { d.sync = nil }, failing},
		"a full disk where nothing can be cut": {func(d *disk) { d.space, d.trunc = 30, failing }, func(d *disk) { d.space, d.trunc = plenty, nil }, failing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			d := &disk{space: plenty}
			l := create(t, path, wal.Options{Wrap: func(f wal.File) wal.File { d.File = f; return d }}, "a")
			add(t, l, "b")
			c.breaks(d)
			for range 3 {
				err := l.Append([]byte("lost: " + strings.Repeat("x", 40)))
				if failed := (*wal.WriteError)(nil); !errors.As(err, &failed) || !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
					t.Fatalf("got %v, want %v", err, c.want)
				}
				if got, _, err := read(path); err != nil || !slices.Equal(got[:2], []string{"a", "b"}) {
					t.Fatalf("meanwhile: %q, %v", got, err)
				}
			}
			c.mends(d)
			add(t, l, "c")
			got, tail, err := read(path)
			if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" || err != nil || tail.Lost != 0 {
				t.Error(diff, err, tail)
			}
		})
	}
}

func TestAFileThatCannotBeReplacedIsAsItWas(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "log")
	if err := create(t, path, wal.Options{}, "a").Close(); err != nil {
		t.Fatal(err)
	}
	full := wal.Options{Wrap: func(f wal.File) wal.File { return &disk{File: f, space: 10} }}
	if _, err := wal.Create(path, records("b"), full); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	got, _, err := read(path)
	left, _ := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || !slices.Equal(got, []string{"a"}) || len(left) != 1 {
		t.Errorf("it has %q, %v; in the folder there is %q", got, err, left)
	}
}

func TestAClosedLogTakesNothing(t *testing.T) {
	t.Parallel()
	l := create(t, filepath.Join(t.TempDir(), "log"), wal.Options{})
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Append([]byte("a")); !errors.As(err, new(*wal.WriteError)) {
		t.Errorf("got %v", err)
	}
}

func FuzzReadTakesAnyFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "log")
	l, err := wal.Create(path, records("a", "b"), wal.Options{})
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(l.Append([]byte("c")), l.Append([]byte("d")), l.Close()); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, tail, err := read(path)
		if err == nil && tail.Offset+tail.Lost != int64(len(data)) {
			t.Errorf("%+v of %d bytes", tail, len(data))
		}
	})
}
