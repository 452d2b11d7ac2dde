package vnode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/datapath/image"
	"sublet/plan"
	"sublet/vnet"
)

// Files of the request are there when the node begins, in place of the image's,
// and what the node writes to them stays until others are given. No link of the
// image leads them out of the node.
func TestFiles(t *testing.T) {
	p, h := newPart(t)
	offered, outside := images(t, p), t.TempDir()
	unpacked, err := p.Images.Get(t.Context(), "busybox.tar", image.Owner{})
	check(t, err)
	check(t, os.CopyFS(filepath.Join(offered, "plain"), os.DirFS(unpacked.Root)))
	check(t, os.Symlink(outside, filepath.Join(offered, "plain", "out")))
	check(t, os.Symlink(filepath.Join(outside, "file"), filepath.Join(offered, "plain", "etc", "link")))
	n := node("n0", 4242)
	s := plan.Setup{Lease: demo, Node: "n0", Setup: vnet.Setup{Image: "plain", Files: []vnet.File{
		{Path: "/etc/mine", Text: "given\n"},
		{Path: "/etc/link", Text: "in place of the link"},
		{Path: outside + "/made", Text: "x"}, // so that the link leads to something
		{Path: "/out/x", Text: "behind the link"},
		{Path: "/opt/a/run", Text: "#!/bin/sh\necho runs as $(id -u)\n", Mode: "0755"},
	}}}
	do(t, p, plan.Add, names(), n)
	give(t, p, s)
	has(t, p, names(), n, s)
	inside := func(want, command string) {
		t.Helper()
		if out, code := run(t, p, n, "/bin/sh", "-c", command); out != want || code != 0 {
			t.Errorf("%s: %d, %q, want %q", command, code, out, want)
		}
	}
	inside("given", "cat /etc/mine")
	inside("in place of the link", "cat /etc/link")
	inside("behind the link", "cat "+outside+"/x")
	inside("runs as 0", "/opt/a/run && echo more >>/opt/a/run && mkdir /opt/a/b && rm /etc/link")
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("the host has %v", left)
	}
	inside("", "echo changed >/etc/mine")
	next := partOn(h)
	t.Cleanup(next.Close)
	next.Images = p.Images
	has(t, next, names(), n, s)
	do(t, next, plan.Set, s)
	inside("changed", "cat /etc/mine")
	s.Files = []vnet.File{{Path: "/etc/mine", Text: "anew\n"}}
	do(t, next, plan.Set, s)
	inside("anew", "cat /etc/mine")
	s.Files = []vnet.File{{Path: "/opt/a", Text: "x"}}
	if err := next.Do(t.Context(), plan.Step{Op: plan.Set, Item: s}); err == nil || !strings.Contains(err.Error(), "files: /opt/a: directory not empty") {
		t.Errorf("error %v", err)
	}
}
