//go:build !planted

package main

import (
	"io"

	"github.com/alecthomas/kong"
)

// plantedCmds adds the commands of a program that bugs can be planted in: this one
// has none of them.
func plantedCmds() []kong.Option { return nil }

// mayRun says whether a command may be run: in a program without planted bugs
// every one may.
func mayRun(string, io.Writer) error { return nil }
