//go:build !race

package e2e

// raceDetector: the tests run without it, and so does what they build.
const raceDetector = false
