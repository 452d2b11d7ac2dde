package test

import "testing"

// What `get` writes of a network that runs is a request for the same network;
// as a topology of containerlab it can be imported again.
func TestGetIsARequest(t *testing.T) {
	l := newLab(t, "demo")
	l.must("up", "../examples/hello.yaml")
	first := l.must("get", "hello")
	topology := l.file("hello.clab.yml", "")
	l.must("get", "hello", "-o", "clab", "--lossy", "-w", topology)
	if r := l.sublet("get", "hello", "-o", "clab"); r.code != 1 || r.out != "" {
		t.Errorf("rates are lost, and the exit code is %d: %s", r.code, r.out)
	}
	l.must("down", "hello")
	l.up(first)
	if again := l.must("get", "hello"); again != first {
		t.Errorf("it was\n%s\nand is\n%s", first, again)
	}
	l.must("down", "hello")
	l.up(l.must("import", topology))
	l.must("exec", "hello/ping", "--", "ping", "-q", "-c", "1", "pong")
	l.must("down", "hello")
}
