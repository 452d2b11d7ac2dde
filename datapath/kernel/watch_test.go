package kernel

import (
	"context"
	"os"
	"testing"
	"time"
)

// A change in a namespace of the host is heard, in one made later too.
func TestWatch(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces takes root")
	}
	h, err := NewHost(Config{Host: "h", Run: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, stop := context.WithCancel(t.Context())
	events, ended := make(chan struct{}, 1), make(chan error)
	go func() { ended <- Watch(ctx, h, events) }()
	ns, err := NewNamespace(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := Bind(ns, h.Path("later")); err != nil {
		t.Fatal(err)
	}
	defer Unbind(h.Path("later"))
	heard := false
	for deadline := time.Now().Add(5 * time.Second); !heard && time.Now().Before(deadline); {
		if err := In(ns, toggleLoopback); err != nil {
			t.Fatal(err)
		}
		select {
		case <-events:
			heard = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	if !heard {
		t.Error("five seconds of changes were not heard")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// toggleLoopback changes the device of the calling thread's namespace.
func toggleLoopback() error {
	c, err := Dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Do(UpLink(1)); err != nil {
		return err
	}
	return c.Do(DownLink(1))
}
