package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
)

// A node that may be stopped goes to another host when its own is drained: what runs in
// it is started there, and it is reached as before. One that says nothing stays.
//
//	x (h1 or h3) ---- y (h2)
func TestColdNodesMove(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "triangle")
	file := s.file("cold.yaml", `network: cold
colocate: forbidden
nodes:
  - {name: x, movable: cold, run: [{cmd: [sleep, "1000000"], restart: always}]}
  - {name: y, host: h2}
links: [{ends: [x, y], rate: 1Mbit}]
`)
	s.must("up", file)
	was := s.leases()[0].Mapping.Nodes["x"]
	there := func(host vnet.HostID) string { return filepath.Join(s.run, "netns", string(host), "root.cold.x") }
	if len(matches(there(was))) != 1 {
		t.Fatalf("x is not on %s", was)
	}
	if r := s.sublet("drain", "h2"); !strings.Contains(r.out+r.err, "y is there") {
		t.Errorf("drained below what stays: %s%s", r.out, r.err)
	}
	s.must("undrain", "h2")
	s.must("drain", string(was))
	s.ready(vnet.LeaseID{Tenant: "root", Network: "cold"})
	if is := s.leases()[0].Mapping.Nodes; is["x"] == was || is["y"] != "h2" {
		t.Errorf("from %s it went to %v", was, is)
	}
	eventually(t, 20*time.Second, func() error {
		r := s.sublet("exec", "cold/x", "--", "sh", "-c", "ping -c1 -W1 y >/dev/null && pgrep -f 1000000")
		if r.code != 0 {
			return fmt.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
		}
		return nil
	})
	eventually(t, 20*time.Second, func() error {
		if left := matches(there(was)); len(left) > 0 {
			return fmt.Errorf("%s still has %v", was, left)
		}
		return nil
	})
}

// A node with state keep goes to another host with its files: they come whole, with
// their owners, though the agent that sends them, the one that receives them or the
// server is killed in the middle. Its former host has nothing of it afterwards.
func TestKeptFilesMove(t *testing.T) { keptFilesMove(t, "to") }

func TestSoakKeptFilesMove(t *testing.T) { keptFilesMove(t, "", "from", "to", "server", "from") }

func keptFilesMove(t *testing.T, kills ...string) {
	t.Parallel()
	s := newSupervisor(t, meshOf(3))
	file := s.file("kept.yaml", `network: vault
colocate: forbidden
nodes:
  - {name: db, state: keep, disk: 256MiB, movable: cold, run: [{cmd: [sh, -c, "echo ran >>/srv/log; exec sleep 1000000"], restart: always}]}
  - {name: web, host: h1}
links: [{name: wire, ends: [web, db], rate: 10Mbit}]
`)
	s.must("up", file)
	id := vnet.LeaseID{Tenant: "root", Network: "vault"}
	s.ready(id)
	s.must("exec", "vault/db", "--", "sh", "-ec", "head -c 100000000 /dev/urandom >/srv/data; chown 33:44 /srv/data; chmod 640 /srv/data; rm /etc/hostname; sync")
	const look = "md5sum /srv/data; stat -c %u:%g:%a /srv/data; ls /etc/hostname 2>/dev/null || echo gone"
	want := s.must("exec", "vault/db", "--", "sh", "-c", look)
	where := func() vnet.HostID { return got(s.api.Lease(t.Context(), id))(t).Mapping.Nodes["db"] }
	for _, kill := range kills {
		was := where()
		s.must("drain", string(was))
		if kill != "" {
			eventually(t, patience, func() error {
				if m := got(s.api.Lease(t.Context(), id))(t).Move; m != nil && m.Phase == vnet.MoveCopies && len(matches(filepath.Join(s.run, "agent", "kept", "*", ".*"))) > 1 {
					return nil
				}
				return fmt.Errorf("nothing is copied")
			})
			s.restart(map[string]string{"from": agentOf(string(was)), "to": agentOf(string(where())), "server": "server"}[kill], 100*time.Millisecond)
		}
		s.moved(id)
		is := where()
		if is == was {
			t.Errorf("%q: db is still on %s", kill, was)
		}
		if has := s.must("exec", "vault/db", "--", "sh", "-c", look); has != want {
			t.Errorf("%q: from %s to %s: %q, not %q", kill, was, is, has, want)
		}
		s.must("undrain", string(was))
		eventually(t, patience, func() error {
			if left := matches(filepath.Join(s.run, "agent", "kept", string(was), "*")); len(left) > 0 {
				return fmt.Errorf("%s still has %v", was, left)
			}
			return nil
		})
	}
	if ran := s.must("exec", "vault/db", "--", "sh", "-c", "wc -l </srv/log"); strings.TrimSpace(ran) != fmt.Sprint(len(kills)+1) {
		t.Errorf("its program began %s times in %d moves", ran, len(kills))
	}
	s.must("exec", "vault/web", "--", "ping", "-c1", "-W2", "db")
	s.must("down", "vault")
	s.settled()
}
