//go:build !race

package protocol

func raceless[T any](v, _ T) T { return v }
