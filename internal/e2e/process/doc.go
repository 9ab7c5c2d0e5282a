// Package process runs programs for tests and for the cluster command: servers,
// and the controller under test.
//
// A process that was started here ends with the one that started it, even where
// that one is killed. Its output is kept in lines that a test can wait for, so
// that no test has to sleep.
package process
