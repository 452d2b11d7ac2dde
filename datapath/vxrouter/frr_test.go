package vxrouter

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// TestPasswordsOfNeighboursAreTheTenants: of what lies on the host for a router, no
// file that somebody else can read has a word of its tenant's configuration.
func TestPasswordsOfNeighboursAreTheTenants(t *testing.T) {
	b := newBench(t)
	if _, err := os.Stat(kernel.FRR("bgpd")); err != nil {
		b.Skip("FRR is not installed")
	}
	b.node("r")
	const secret = "not-for-others"
	r := router("r")
	r.Forward, r.FRR = true, &plan.FRR{
		Daemons: []plan.Daemon{{Name: "zebra", Config: "ip forwarding\n"}, {Name: "bgpd"}},
		Config:  "router bgp 65001\n neighbor 10.0.0.2 remote-as 65002\n neighbor 10.0.0.2 password " + secret + "\n",
	}
	b.do(plan.Add, r)
	b.has(r)
	found := 0
	b.check(filepath.WalkDir(b.part.dir(r.Key()), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), secret) {
			return err
		}
		found++
		var stat syscall.Stat_t
		b.check(syscall.Lstat(path, &stat))
		if stat.Mode&0o077 != 0 || stat.Uid != 0 && stat.Uid != firstTenant {
			t.Errorf("%s has the password, belongs to user %d and has mode %o", path, stat.Uid, stat.Mode)
		}
		return nil
	}))
	if found == 0 {
		t.Error("the configuration is nowhere")
	}
	b.do(plan.Delete, r)
	b.has()
}

// TestWordsOfTenants: what a tenant's socket says in a daemon's place moves no
// terminal of the operator's.
func TestWordsOfTenants(t *testing.T) {
	if got := wordsIn(strings.NewReader("line 3:\x1b]0;x\x07\u202e %  bad\xff\n\x00end\u009b")); got != "line 3: ]0;x % bad? end" {
		t.Errorf("%q", got)
	}
}
