package vnode

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"sublet/internal/stall"
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
	again := partOn(h)
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
	other, one := stall.Start(), stall.Start()
	do(t, again, plan.Add, node("n3", 1001))
	other.InTime(t, answerTime/2, "another user's node")
	err = <-stopped
	if one.InTime(t, 3*answerTime, "the stopped one"); err == nil {
		t.Error("the stopped one was made")
	}
	do(t, again, plan.Add, node("n2", 1000)) // by a new helper
	has(t, again, node("n0", 1000), node("n1", 1000), node("n2", 1000), node("n3", 1001))
}
