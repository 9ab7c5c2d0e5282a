//go:build unix && !linux

package process

func isFirstThread() bool { return false }
