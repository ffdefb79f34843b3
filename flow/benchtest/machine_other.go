//go:build !linux

package benchtest

func fileSystem(string) string { return "unknown file system" }
