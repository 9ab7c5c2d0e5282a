//go:build race

package fake_test

// raceDetector: the tests run with it.
const raceDetector = true
