package vnode

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/plan"
)

// The helper is not the tenant's process; where it has to be, after a restart,
// and they stop it, they wait alone, and not for long.
func TestStoppedHelperHoldsNobodyUp(t *testing.T) {
	p, h := newPart(t)
	do(t, p, plan.Add, node("n0", 1000))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.owners.of(1000).maker.cmd.Process.Pid))
	check(t, err)
	if !strings.Contains(string(status), "Uid:\t0\t0\t0\t0") {
		t.Errorf("the helper runs as the tenant:\n%s", status)
	}
	p.Close()
	again := New(h)
	defer again.Close()
	do(t, again, plan.Add, node("n1", 1000))
	helper := again.owners.of(1000).maker.cmd.Process
	check(t, helper.Signal(syscall.SIGSTOP))
	wait(t, "stop", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", helper.Pid))
		return err == nil && strings.Contains(string(status), "State:\tT")
	})
	stopped := make(chan error)
	go func() {
		stopped <- again.Do(context.Background(), plan.Step{Op: plan.Add, Item: node("n2", 1000)})
	}()
	began := time.Now()
	do(t, again, plan.Add, node("n3", 1001))
	if took := time.Since(began); took > answerTime/2 {
		t.Errorf("another user waited %v", took)
	}
	if err := <-stopped; err == nil || time.Since(began) > 3*answerTime {
		t.Errorf("the stopped one: %v after %v", err, time.Since(began))
	}
	do(t, again, plan.Add, node("n2", 1000)) // by a new helper
	has(t, again, node("n0", 1000), node("n1", 1000), node("n2", 1000), node("n3", 1001))
}
