package vnet

import (
	"regexp"
	"sync"
)

// lazy is a pattern that is compiled when it is first asked for: processes in nodes
// import this room and mostly ask none.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
