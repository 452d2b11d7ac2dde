package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestOpenFlowExample runs every command of examples/openflow/README.md: switches
// of ours in a ring, some of which connect and one of which listens, under the
// controller that makes paths.
func TestOpenFlowExample(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("Open vSwitch's tools are not installed")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(examples+"openflow")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "sublet")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	script := "set -eux\n"
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a switch that it leaves behind keeps its output
	out, err := cmd.CombinedOutput()
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		for _, n := range []string{"sublet-of-a", "sublet-of-b", "sublet-of"} {
			_ = exec.Command("ip", "netns", "delete", n).Run()
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"s1-3-s3-2", "router blue and router green: both take packets of port 1"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nothing says %q:\n%s", want, out)
		}
	}
}
