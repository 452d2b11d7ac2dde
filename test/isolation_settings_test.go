package test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// settingsInside changes every number of the network's settings that it may.
func settingsInside([]string) error {
	changed := 0
	_ = filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ofTheKernel {
			return nil
		}
		text, _ := os.ReadFile(path)
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return nil
		}
		for _, value := range []int64{n + 1, n / 2, 1 - n} {
			if os.WriteFile(path, []byte(fmt.Sprint(value)), 0) == nil {
				changed++
				break
			}
		}
		return nil
	})
	fmt.Println(changed)
	return nil
}

// ofTheKernel is the one setting that Linux lets root of any namespace set for
// all of them, once and for good; datapath/vnode/README.md names it.
const ofTheKernel = "nf_hooks_lwtunnel"

// settings reads all of a namespace's.
func settings(t *testing.T, namespace string) map[string]string {
	t.Helper()
	all := map[string]string{}
	within(t, namespace, func() error {
		return filepath.WalkDir("/proc/sys/net", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if text, err := os.ReadFile(path); err == nil {
					all[path] = string(text)
				}
			}
			return nil
		})
	})
	return all
}

// A tenant sets whatever they may: no setting of a host, of the machine, of a
// fabric or of the other tenant moves.
func TestSettingsAreTheNodesOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	both := l.tenants(alice, bob)
	for _, c := range both {
		c.up(pair("net", "max: 10Mbit"))
	}
	spaces := []string{here, l.host("h1"), both[0].fabric("h1", "net"), both[1].node("h1", "net", "a"), both[1].fabric("h1", "net")}
	before := map[string]map[string]string{}
	for _, space := range spaces {
		before[space] = settings(t, space)
	}
	r := both[0].attack("net/a", "settings")
	if n, _ := strconv.Atoi(strings.TrimSpace(r.out)); n < 50 {
		t.Errorf("only %d settings were changed: the test shows nothing: %s", n, r.err)
	}
	for _, space := range spaces {
		for path, now := range settings(t, space) {
			if was := before[space][path]; was != now && !counts(path) {
				t.Errorf("%s in %s was %q and is %q", path, space, was, now)
			}
		}
	}
	if r := both[1].shell("net/a", "ping -qc1 -W2 b"); r.code != 0 {
		t.Errorf("the other tenant's peer does not answer: %s", r.out)
	}
}

// counts says whether a setting is a counter that the kernel moves.
func counts(path string) bool { return strings.HasSuffix(path, "_count") }
