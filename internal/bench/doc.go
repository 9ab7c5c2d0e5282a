// Package bench measures what is too slow, or too dependent on the machine, for a
// test: what [fake.APIServer] bears in writes, watches and memory.
//
//	go -C internal/bench test -bench=. -benchtime=5s
//	go -C internal/bench test -bench=Memory -benchtime=1x -args -objects=100000
//
// It is a module of its own, so that what it compares with later, controller-runtime
// first of all, is nobody's dependency.
package bench
