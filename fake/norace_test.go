//go:build !race

package fake_test

// raceDetector: the tests run without it.
const raceDetector = false
