package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// written collects what a command prints while it runs.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// await waits until a command has printed something so many times.
func (w *written) await(t *testing.T, what string, times int) {
	t.Helper()
	for begin := time.Now(); strings.Count(w.String(), what) < times; time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("%q is not printed %d times:\n%s", what, times, w.String())
		}
	}
}

// With -w a list is printed at once, and again when it has changed, until interrupted.
func TestListsAreFollowed(t *testing.T) {
	dir := served(t, "fat-tree:2")
	as := func(line, stdin string) {
		t.Helper()
		if code, _, errs := sublet(t, stdin, append([]string{"--run", dir}, strings.Fields(line)...)...); code != exitDone {
			t.Fatalf("sublet %s: exit code %d: %s", line, code, errs)
		}
	}
	request := laterRequest("net", "one")
	as("up --no-wait -", request)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	lists, codes := make(map[string]*written), make(chan int)
	for _, line := range []string{"proof net -w", "leases net -w -o json", "leases net -w -o yaml", "link show net -w", "stage net -w", "substrate get -w"} {
		out := new(written)
		lists[line] = out
		go func() {
			codes <- run(ctx, append([]string{"--run", dir}, strings.Fields(line)...), strings.NewReader(""), out, io.Discard)
		}()
	}
	lists["proof net -w"].await(t, "10Mbit", 2) // of both directions
	lists["leases net -w -o json"].await(t, `"min_bps": 10000000,`, 2)
	lists["leases net -w -o yaml"].await(t, "min_bps: 10000000\n", 2)
	lists["link show net -w"].await(t, "a-b", 1)
	lists["stage net -w"].await(t, "second", 1)
	lists["substrate get -w"].await(t, "links:", 1)
	as("apply --no-wait -", strings.ReplaceAll(request, "10Mbit", "20Mbit"))
	lists["proof net -w"].await(t, "20Mbit", 2)
	lists["leases net -w -o json"].await(t, `"min_bps": 20000000,`, 2)
	lists["leases net -w -o yaml"].await(t, "---\n", 1)
	stop()
	for range lists {
		if code := <-codes; code != exitInterrupted {
			t.Errorf("exit code %d after an interruption", code)
		}
	}
	if n := strings.Count(lists["link show net -w"].String(), "a-b"); n != 1 {
		t.Errorf("a list that stays as it is was printed %d times", n)
	}
}
