package test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// clockFile is a file with a duration by which a server takes its machine's clock to be
// ahead.
func (m *member) clockFile() string { return m.run + ".clock" }

func (c *control) setClock(m *member, ahead time.Duration) {
	c.t.Helper()
	whole := m.clockFile() + ".new"
	if err := os.WriteFile(whole, []byte(ahead.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(whole, m.clockFile()); err != nil {
		c.t.Fatal(err)
	}
}

// late is how much later, or earlier, than it says a window may end while clocks are wrong:
// a second that clocks may differ by, one until the clock's owner looks again, and what a
// busy machine takes.
const late = 10 * time.Second

// A server whose clock is set an hour ahead or back, or jumps, ends no lease and begins
// none: one that leads gives that up and says why, one that follows does not lead when the
// others fail, and the operator is told by `sublet servers` and an event.
func TestServersWithWrongClocks(t *testing.T) {
	t.Parallel()
	if !secluded(t) {
		return
	}
	c := newControl(t, 3, twoHosts)
	l := &lab{t: t, run: c.dir + "/operator"}
	lease := func(name, window string) {
		text := "network: %s\ntenant: bin\nnodes: [{name: a, cpu: 0.01, memory: 16MiB}]\nwindow: {%s}\n"
		c.must(t, c.addresses(), "up", "--no-wait", l.file("n.yaml", fmt.Sprintf(text, name, window)))
	}
	lease("ends-later", "for: 30m")
	lease("begins-later", "start: "+time.Now().Add(20*time.Minute).Format(time.RFC3339)+", for: 30m")
	stays := func(when string) {
		t.Helper()
		for name, state := range map[string]string{"ends-later": "deploying", "begins-later": "is booked"} {
			if out := c.must(t, c.addresses(), "leases", "bin/"+name); !strings.Contains(out, state) {
				t.Errorf("%s, bin/%s is not %s:\n%s", when, name, state, out)
			}
		}
	}
	wrong := c.leader()
	c.setClock(wrong, time.Hour)
	next := c.elected(t, wrong)
	stays("an hour ahead")
	if text := wrong.log.String(); !strings.Contains(text, "ahead of what most servers agree on") {
		t.Errorf("the server with the wrong clock says\n%s", text)
	}
	eventually(t, 20*time.Second, func() error {
		servers, events := c.must(t, c.addresses(), "servers"), c.must(t, c.addresses(), "events")
		if strings.Count(servers, "agrees") != 2 || !strings.Contains(servers, "1h0m0") || !strings.Contains(events, "clock differs") {
			return errors.New(servers + events)
		}
		return nil
	})
	_ = next.cmd.Process.Kill()
	_ = next.cmd.Wait()
	third := c.elected(t, next)
	if third == wrong {
		t.Error("a server with a wrong clock leads when the leader is killed")
	}
	c.start(next)
	stays("after the leader was killed")

	c.setClock(wrong, 0)
	soon := time.Now().Add(8 * time.Second)
	lease("ends-soon", "for: 8s")
	c.setClock(third, -time.Hour)
	for i := range 10 { // one that jumps meanwhile
		c.setClock(wrong, time.Duration(i%2*20-10)*time.Minute)
		time.Sleep(100 * time.Millisecond)
	}
	c.setClock(wrong, 0)
	c.elected(t, third)
	eventually(t, time.Minute, func() error {
		if r := c.operator(t, c.addresses(), "leases", "bin/ends-soon"); !strings.Contains(r.out, "draining") && !strings.Contains(r.out, "ended") {
			return errors.New(r.out + r.err)
		}
		return nil
	})
	if off := time.Since(soon); off < -late/4 || off > late {
		t.Errorf("a lease ended %s after its window", off)
	}
	stays("an hour behind")
	c.setClock(third, 0)
	eventually(t, 20*time.Second, func() error {
		if out := c.must(t, c.addresses(), "servers"); strings.Count(out, "agrees") != 3 {
			return errors.New(out)
		}
		return nil
	})
}

// elected waits until another server than the former one leads.
func (c *control) elected(t *testing.T, former *member) (leader *member) {
	t.Helper()
	eventually(t, 20*time.Second, func() error {
		if leader = c.leader(); leader == former {
			return fmt.Errorf("%s leads on", former.name)
		}
		return nil
	})
	return leader
}
