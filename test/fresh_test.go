package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// packagesOfGuides are what guides tell to install, and what they use.
const packagesOfGuides = "iproute2,iputils-ping,util-linux,procps,openssl,iperf3,jq,frr"

// Guides that need no second host, in this order.
var freshGuides = []string{"install", "teach", "chains"}

var (
	firstYAML = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	shell     = regexp.MustCompile("(?ms)^```sh\n# (run|fresh|background)\n(.*?)^```$")
)

// Who has a Debian with nothing but what the guides tell to install, and follows them
// word by word, has a machine that leases networks: the program is installed, the
// server started, and every marked block run, in a tree of its own.
//
//	here: serve --agent ; the networks of the guides within it
func TestSoakFreshDebian(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making namespaces takes root")
	}
	for _, program := range []string{"mmdebstrap", "unshare", "pivot_root"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	tree := freshDebian(t)
	home := filepath.Join(tree, "root")
	need(t, os.CopyFS(filepath.Join(home, "examples"), os.DirFS("../examples")))
	need(t, os.MkdirAll(filepath.Join(home, "bin"), 0o755))
	binary, err := os.ReadFile(program)
	need(t, err)
	need(t, os.WriteFile(filepath.Join(home, "bin/sublet"), binary, 0o755))
	need(t, os.WriteFile(filepath.Join(home, "follow"), []byte(toFollow(t, home)), 0o755))

	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--uts", "--ipc", "--pid", "--net", "--fork", "--kill-child", "fresh/enter", tree, "/root/follow")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n+ echo followed\n") {
		log, _ := os.ReadFile(filepath.Join(tree, "tmp/background.log"))
		t.Errorf("%v: %s\nthe server says:\n%s", err, last(out, 6000), last(log, 4000))
	}
}

// freshDebian makes the tree.
func freshDebian(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sublet-fresh")
	need(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	tree := filepath.Join(dir, "debian")
	cmd := exec.CommandContext(t.Context(), "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include="+packagesOfGuides, "bookworm", tree)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("Debian cannot be had: %v\n%s", err, last(out, 1000))
	}
	return tree
}

// toFollow is what the guides tell to type, one after another, and writes the
// substrate that the first one shows.
func toFollow(t *testing.T, home string) string {
	t.Helper()
	script := ""
	for _, name := range freshGuides {
		text, err := os.ReadFile("../docs/guides/" + name + ".md")
		need(t, err)
		if name == "install" {
			yaml := firstYAML.FindSubmatch(text)
			if yaml == nil {
				t.Fatal("install.md shows no substrate")
			}
			need(t, os.WriteFile(filepath.Join(home, "substrate.yaml"), yaml[1], 0o644))
		}
		blocks := shell.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			t.Errorf("%s.md has nothing that is run", name)
		}
		for _, b := range blocks {
			if b[1] == "background" {
				script += "(" + strings.TrimSpace(b[2]) + ") >/tmp/background.log 2>&1 &\nuntil sublet hosts; do sleep 1; done\n"
				continue
			}
			script += "(\n" + b[2] + ")\n"
		}
	}
	return script + "echo followed\n"
}

// last is the end of a text.
func last(text []byte, most int) string { return string(text[max(0, len(text)-most):]) }
