//go:build nodeinit

package main

import _ "embed"

// The program cmd/nodeinit, which make builds first.
//
//go:embed nodeinit.elf
var builtIn []byte

func init() { nodeProgram = builtIn }
