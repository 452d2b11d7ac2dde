package vnode

import (
	"net"
	"testing"
)

// A text is found once, also across the pieces in which it is read.
func TestTextIsFoundAcrossPieces(t *testing.T) {
	for _, c := range []struct {
		awaited string
		pieces  []string
		at      int // piece; -1: none
	}{
		{"is up", []string{"server ", "is", " ", "up", " is up"}, 3},
		{"is up", []string{"is up\n", "is up\n"}, 0},
		{"aab", []string{"aa", "a", "b"}, 2},
		{"x", []string{"y", ""}, -1},
		{"", []string{"anything"}, -1},
	} {
		f, found := finder{awaited: c.awaited}, -1
		for i, piece := range c.pieces {
			if f.in([]byte(piece)) {
				if found >= 0 {
					t.Errorf("%q is found again in %q", c.awaited, c.pieces)
				}
				found = i
			}
		}
		if found != c.at {
			t.Errorf("%q in %q: piece %d, want %d", c.awaited, c.pieces, found, c.at)
		}
	}
}

// The kernel's table tells who listens, for both families.
func TestListenersAreFound(t *testing.T) {
	for _, c := range []struct{ address, table string }{{"127.0.0.1:0", "tcp"}, {"[::1]:0", "tcp6"}} {
		l, err := net.Listen("tcp", c.address)
		check(t, err)
		port := l.Addr().(*net.TCPAddr).Port
		if !listensIn("/proc/self/net/"+c.table, port) {
			t.Errorf("nobody listens on %s", l.Addr())
		}
		check(t, l.Close())
		if listensIn("/proc/self/net/"+c.table, port) {
			t.Errorf("somebody still listens on port %d", port)
		}
	}
}
