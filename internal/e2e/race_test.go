//go:build race

package e2e

// raceDetector: the tests run with it, and so does what they build.
const raceDetector = true
