package controller_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"sublet/openflow/controller"
)

// claimant is a controller that can be told another role.
type claimant struct {
	*controller.Forwarding
	at   netip.AddrPort
	role atomic.Pointer[controller.Role]
}

func newClaimant(t *testing.T, role controller.Role) *claimant {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c := &claimant{Forwarding: controller.NewForwarding(log)}
	c.role.Store(&role)
	c.Serve(1)
	c.Rest(1, 50000)
	c.at, _ = serve(t, controller.Config{
		Listen: netip.MustParseAddrPort("127.0.0.1:0"), App: c.App, Tick: c.Tick, Log: log, Role: func() controller.Role { return *c.role.Load() },
	})
	return c
}

// leads waits until a controller leads the switch, or does not.
func (c *claimant) leads(t *testing.T, want bool) {
	t.Helper()
	eventually(t, func() error {
		if _, err := c.Proven(1); (err == nil) != want {
			return fmt.Errorf("it leads the switch: %v, and %v is wanted", err == nil, want)
		}
		return nil
	})
}

// Of two controllers of a switch the one with the later generation is its master, also
// while the other believes to be: what that one says changes nothing, and it finds out.
// One that takes over leaves in force what both want.
func TestControllersTakeOver(t *testing.T) {
	t.Parallel()
	first, second := newClaimant(t, controller.Role{Master: true, Generation: 1}), newClaimant(t, controller.Role{Generation: 1})
	r := newRing(t, "OpenFlow13", "tcp:"+first.at.String())
	r.run("ovs-vsctl", r.db(), "del-controller", "br2", "--", "del-controller", "br3", "--", "set-controller", "br1", "tcp:"+first.at.String(), "tcp:"+second.at.String())
	first.leads(t, true)
	if err := first.Put(t.Context(), 1, passage(1, 1000, 2)); err != nil {
		t.Fatal(err)
	}
	roles := func(master, slave *claimant) {
		t.Helper()
		eventually(t, func() error {
			list := strings.ReplaceAll(r.run("ovs-vsctl", r.db(), "--format=csv", "--no-headings", "--columns=target,role", "list", "controller"), `"`, "")
			if !strings.Contains(list, master.at.String()+",master") || !strings.Contains(list, slave.at.String()+",slave") {
				return errors.New(list)
			}
			return nil
		})
	}
	roles(first, second)
	if _, err := second.Proven(1); !errors.Is(err, controller.ErrNotConnected) {
		t.Errorf("a slave leads: %v", err)
	}
	if err := second.Put(t.Context(), 1, passage(1, 1000, 2)); !errors.Is(err, controller.ErrNotConnected) { // it is told once it leads
		t.Errorf("a slave tells the switch: %v", err)
	}
	second.role.Store(&controller.Role{Master: true, Generation: 2})
	second.leads(t, true)
	roles(second, first)
	if err := first.Put(t.Context(), 1, passage(2, 2000, 3)); err == nil {
		t.Error("a master of a former generation changes the switch")
	}
	first.leads(t, false)
	eventually(t, func() error { return r.passages(",output:2") })

	first.role.Store(&controller.Role{Master: true, Generation: 1}) // of the past
	r.run("ovs-vsctl", r.db(), "set-controller", "br1", "tcp:"+second.at.String())
	r.run("ovs-vsctl", r.db(), "set-controller", "br1", "tcp:"+first.at.String(), "tcp:"+second.at.String())
	second.leads(t, true)
	first.leads(t, false)
	first.role.Store(&controller.Role{Master: true, Generation: 3})
	first.leads(t, true)
	eventually(t, func() error { return r.passages(",output:2", ",output:3") }) // what it wants comes with it
}
