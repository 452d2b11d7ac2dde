package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guides are followed in this order.
var guides = []string{"install", "operate", "teach", "experiment", "ci", "chains"}

var block = regexp.MustCompile("(?ms)^```sh\n# run\n(.*?)^```$")

// Who follows the guides word by word comes to their end: every block of commands
// that is marked is run as it stands, in a lab, from the top of the sources.
func TestSoakGuides(t *testing.T) {
	for _, program := range []string{"openssl", "iperf3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("needs " + program)
		}
	}
	l := newLab(t, "demo")
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "sublet")); err != nil {
		t.Fatal(err)
	}
	for _, name := range guides {
		text, err := os.ReadFile("../docs/guides/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		blocks := block.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			t.Errorf("%s.md has nothing that is run", name)
		}
		for _, b := range blocks {
			cmd := exec.CommandContext(t.Context(), "sh", "-euc", b[1])
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SUBLET_RUN="+l.run)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s.md: %v\n%s\nsays:\n%s", name, err, strings.TrimSpace(b[1]), out)
			}
		}
	}
}

// The guide to several servers is followed on one machine.
func TestSoakServersGuide(t *testing.T) {
	t.Parallel()
	if !secluded(t) {
		return
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("needs openssl")
	}
	if out, err := exec.Command("ip", "link", "set", "dev", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := filepath.Dir(shortDir(t))
	if err := os.Symlink(program, filepath.Join(dir, "sublet")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../docs/guides/servers.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killServers(t, dir) })
	for _, b := range block.FindAllStringSubmatch(string(text), -1) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, "sh", "-euc", b[1])
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := os.Create(filepath.Join(dir, "said")) // a pipe would wait for the servers
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = out, out
		err = cmd.Run()
		cancel()
		if said, _ := os.ReadFile(out.Name()); err != nil {
			t.Fatalf("%v\n%s\nsays:\n%s", err, strings.TrimSpace(b[1]), said)
		}
		out.Close()
	}
}

// killServers ends what the blocks of the guide have left.
func killServers(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "s*.pid"))
	if err != nil || len(files) < 4 && !t.Failed() {
		t.Errorf("the guide has started %v, %v", files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Error(err)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
