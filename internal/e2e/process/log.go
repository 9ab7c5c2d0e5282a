package process

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
)

// ErrEnded says that what was waited for cannot come any more.
var ErrEnded = errors.New("the process has ended")

// Log keeps lines, each under the index that it came with: 0, 1, and so on.
type Log struct {
	keep int

	// mu guards what follows.
	mu    sync.Mutex
	rest  []byte   // a line that has not ended yet
	lines []string // the last ones, at least keep of them and fewer than twice that
	first int      // index of lines[0]
	ended bool
	more  chan struct{} // closed, and made anew, whenever one of the above changes
}

func newLog(keep int) *Log { return &Log{keep: keep, more: make(chan struct{})} }

// Write takes output, cut anywhere.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			break
		}
		l.addLocked(string(line))
		l.rest = rest
	}
	l.changedLocked()
	return len(p), nil
}

func (l *Log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.addLocked(string(l.rest))
		l.rest = nil
	}
	l.ended = true
	l.changedLocked()
}

func (l *Log) addLocked(line string) {
	l.lines = append(l.lines, line)
	if len(l.lines) >= 2*l.keep { // seldom, since all that stay are copied
		over := len(l.lines) - l.keep
		l.lines = append(l.lines[:0:0], l.lines[over:]...)
		l.first += over
	}
}

func (l *Log) changedLocked() {
	close(l.more)
	l.more = make(chan struct{})
}

// Len is the index that the next line will get.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + len(l.lines)
}

// Since returns the kept lines from the index from on, as a copy.
func (l *Log) Since(from int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.sinceLocked(from)...)
}

func (l *Log) sinceLocked(from int) []string {
	return l.lines[min(max(from-l.first, 0), len(l.lines)):]
}

// Tail returns the last n lines as one text.
func (l *Log) Tail(n int) string { return strings.Join(l.Since(l.Len()-n), "\n") }

// WaitFor returns the first line with an index of at least from for which match
// is true, and the index after it. It answers ErrEnded when the process has
// ended without one, or ctx's cause.
func (l *Log) WaitFor(ctx context.Context, from int, match func(line string) bool) (line string, next int, err error) {
	for {
		l.mu.Lock()
		from = max(from, l.first)
		for _, line := range l.sinceLocked(from) {
			from++
			if match(line) {
				l.mu.Unlock()
				return line, from, nil
			}
		}
		ended, more := l.ended, l.more
		l.mu.Unlock()
		if ended {
			return "", from, ErrEnded
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", from, context.Cause(ctx)
		}
	}
}
