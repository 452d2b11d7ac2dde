package test

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Every part's kind of sample is seen as it is counted, of the lease that it is
// of, and states as they change.
//
//	h1:  x --- s ----- relays ----- e --- r --- y   :h3
//
// s is a switch, e one of kind vxswitch, r a router.
func TestWatchShowsEveryPart(t *testing.T) {
	t.Parallel()
	needFabric(t)
	l := newLab(t, twoSpines)
	w := l.watching()
	l.up(`network: n
nodes: [{name: x, host: h1}, {name: y, host: h3}]
routers: [{name: r, host: h3}]
switches: [{name: s, host: h1}, {name: e, kind: vxswitch, host: h3}]
links:
  - {name: near, ends: [x, s], rate: 5Mbit}
  - {name: far, ends: [s, e], rate: 5Mbit}
  - {ends: [e, r], rate: 5Mbit}
  - {ends: [r, y], rate: 5Mbit}
`)
	id := w.lease(vnet.Running)
	l.must("exec", "n/x", "--", "ping", "-q", "-c", "60", "-i", "0.02", "y") // some go by the stack, as long as neighbours are not known
	for kind, counter := range map[plan.Kind]string{
		plan.KindVxLink: report.Entered, plan.KindOverlay: report.Sent, plan.KindVxRouter: report.Forwarded,
		plan.KindSwitchPort: report.Forwarded, plan.KindVxSwitchPort: report.Forwarded, plan.KindSpread: report.Sent,
	} {
		s := w.until("packets of "+string(kind), func(s report.Sample) bool { return s.Kind == kind && s.Value(counter, report.Packets) >= 20 })
		if s.Lease != id || s.Host != "h1" && s.Host != "h3" || s.Key == "" {
			t.Errorf("%+v is not of %s", s, id)
		}
	}
	w.until("nodes that reach each other", func(s report.Sample) bool {
		return s.Kind == plan.KindReach && s.State == report.Reached && s.Lease == id
	})
	l.must("fail", "link", "h1-leaf1")
	w.until("broken link", func(s report.Sample) bool { return s.Kind == report.KindLink && s.State == report.Down })
	l.must("down", "n")
	w.lease(vnet.Ended)
}

// watching is a sublet watch that runs until the test ends, which it shall by
// an interrupt.
type watching struct {
	t     *testing.T
	lines chan report.Sample
}

func (l *lab) watching() *watching {
	l.t.Helper()
	cmd := exec.Command(program, "--run", l.run, "watch", "-o", "json")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	w := &watching{l.t, make(chan report.Sample, 100_000)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s report.Sample
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				l.t.Errorf("%s: %v", lines.Bytes(), err)
			}
			w.lines <- s
		}
	}()
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		<-read
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
			l.t.Errorf("interrupted, watch exits with %d", cmd.ProcessState.ExitCode())
		}
	})
	return w
}

// until waits for a sample.
func (w *watching) until(what string, is func(report.Sample) bool) report.Sample {
	w.t.Helper()
	end := time.After(60 * time.Second)
	for {
		select {
		case s := <-w.lines:
			if is(s) {
				return s
			}
		case <-end:
			w.t.Fatalf("%s was not seen", what)
		}
	}
}

// lease waits for a state of the only lease.
func (w *watching) lease(state vnet.State) vnet.LeaseID {
	w.t.Helper()
	return w.until("lease that is "+string(state), func(s report.Sample) bool {
		return s.Kind == report.KindLease && s.State == report.State(state)
	}).Lease
}
