package kube

import "github.com/go-logr/logr"

// onceTold is a logger for the Reflector. Why a list or a watch failed goes to
// [Sink].Trouble, which tells it once for as long as it lasts; the Reflector would
// log it as an error for each try.
func onceTold(l logr.Logger) logr.Logger {
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(&onceToldSink{l.GetSink()})
}

// bookmarkExpired is its message every ten seconds, while a first list hangs.
const bookmarkExpired = "Warning: event bookmark expired"

// failedToWatch is the Reflector's message for a list or a watch that failed.
const failedToWatch = "Failed to watch"

type onceToldSink struct{ logr.LogSink }

// Error is called for each try that failed.
func (s *onceToldSink) Error(err error, msg string, pairs ...any) {
	if msg != failedToWatch {
		s.LogSink.Error(err, msg, pairs...)
		return
	}
	const debug = 1
	if s.Enabled(debug) {
		s.Info(debug, msg, append(pairs, "err", err)...)
	}
}

// Info is called for all else.
func (s *onceToldSink) Info(level int, msg string, pairs ...any) {
	if msg == bookmarkExpired {
		level = max(level, 1)
	}
	if s.Enabled(level) {
		s.LogSink.Info(level, msg, pairs...)
	}
}

// WithValues keeps to it.
func (s *onceToldSink) WithValues(pairs ...any) logr.LogSink {
	return &onceToldSink{s.LogSink.WithValues(pairs...)}
}

// WithName keeps to it.
func (s *onceToldSink) WithName(name string) logr.LogSink {
	return &onceToldSink{s.LogSink.WithName(name)}
}
